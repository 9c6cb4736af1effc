"""lexveil.toml: mistakes are named, and what is left out has its default."""

from pathlib import Path

import duckdb
import pytest

from lexveil import ParameterError
from lexveil.io.config import (
    Configuration,
    load_configuration,
    load_params,
    parse_configuration,
    parse_params,
)
from lexveil.io.config.toml_text import as_toml
from lexveil.io.execution.duckdb_session import memory_bytes

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("section", "key", "value", "message"),
    [
        (
            "machine",
            "dask_scheduler",
            "10.0.0.5",
            r"^configuration: machine\.dask_scheduler is '10.0.0.5'.*tcp://HOST:PORT",
        ),
        ("machine", "workers", 0, r"machine\.workers is 0; it must lie between 1 and 1024"),
        ("machine", "worker", 1, r"unknown key machine\.worker; did you mean machine\.workers\?"),
        ("machine", "stage_minutes", "never", r"machine\.stage_minutes is 'never'"),
        ("machin", "workers", 1, r"unknown key machin; did you mean machine\?"),
        ("grid", "epsilons", [1.0], r"unknown key grid; this key stands in params\.yaml$"),
        (
            "release",
            "min_npmi",
            1,
            r"unknown key release\.min_npmi; this key stands in params\.yaml, collocations$",
        ),
        ("ledger", "pii", True, r"ledger\.pii; this key stands in lexveil\.toml \[inbox\.gate\]"),
        ("machine", "memory_limit", "2 gigs", r"memory_limit is '2 gigs'; it must be a number"),
        ("machine", "memory_limit", "0GB", r"a number above 0 with a unit"),
        ("operation", "webhook", "chat.example.org", r"operation\.webhook must be an address"),
        ("inbox", "mechanism", "TEM", "nearest: tem\\)"),
        ("release", "shares", {"list": "names.txt"}, r"release\.shares\.list is .*FILE@HASH"),
        ("detection", "types", {"PERSON": "hide"}, r"detection\.types\.PERSON is 'hide'"),
    ],
)
def test_mistakes_are_named(section, key, value, message):
    with pytest.raises(ParameterError, match=message):
        parse_configuration({section: {key: value}})


@pytest.mark.parametrize(
    ("limit", "n_bytes"),
    [
        ("2GB", 2 * 10**9),
        ("1.5 gib", 3 * 2**29),
        ("500MiB", 500 * 2**20),
        ("80kb", 80_000),
        ("1 TB", 10**12),
    ],
)
def test_a_memory_limit_has_the_forms_that_duckdb_takes(limit, n_bytes):
    machine = parse_configuration({"machine": {"memory_limit": limit}}).machine
    assert memory_bytes(machine) == n_bytes
    with duckdb.connect(config={"memory_limit": limit}):
        pass


def test_without_the_file_everything_has_its_default(tmp_path):
    assert load_configuration(tmp_path / "lexveil.toml") == Configuration()


def test_the_committed_file_has_the_defaults():
    assert load_configuration(ROOT / "lexveil.toml") == Configuration()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b'[ledger]\nkeys = "plain"\ndatabase = null\n',
            r"lexveil\.toml, line 3: .*omit a key",
        ),
        (b"\xff", "UTF-8"),
        (b"[ledger]\n[ledger]\n", "line 2"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, content, message):
    (tmp_path / "lexveil.toml").write_bytes(content)
    with pytest.raises(ParameterError, match=message):
        load_configuration(tmp_path / "lexveil.toml")


def test_a_limit_is_lifted_by_a_word(tmp_path):
    configuration = parse_configuration(
        {"machine": {"stage_minutes": "none"}, "inbox": {"gate": {"min_coverage": "none"}}}
    )
    assert configuration.machine.stage_minutes is configuration.inbox.gate.min_coverage is None
    (tmp_path / "lexveil.toml").write_text(as_toml(configuration), encoding="utf-8")
    assert load_configuration(tmp_path / "lexveil.toml") == configuration


def test_the_text_of_a_file_is_read_as_the_same_settings(tmp_path):
    """Among them quotes, other scripts, control characters, lists and tables of names."""
    configuration = parse_configuration(
        {
            "ledger": {"cap": "unlimited", "folder": 'a "quoted" #\\ name\x7f\x01é'},
            "release": {"max_token_epsilon": 1e-7, "shares": {"numbers": 0.5}},
            "detection": {"types": {"PERSON": "drop"}, "presidio": {"entities": ["A", "B"]}},
        }
    )
    (tmp_path / "lexveil.toml").write_text(as_toml(configuration), encoding="utf-8")
    assert load_configuration(tmp_path / "lexveil.toml") == configuration


def test_examples_of_keys_without_a_value_are_valid(tmp_path):
    text = as_toml(Configuration())
    examples = [line for line in text.splitlines() if line.startswith("#") and line[1:2] != " "]
    assert len(examples) > 15
    for line in examples:
        if not line.startswith(("#attach", "#subject_column")):  # which need another key
            (tmp_path / "lexveil.toml").write_text(text.replace(line, line[1:]), encoding="utf-8")
            name = line[1:].partition(" ")[0]
            try:
                load_configuration(tmp_path / "lexveil.toml")
            except ParameterError as error:
                assert name in ("source", "sql") and "set one of inbox" in str(error)


def test_releases_need_an_embedding_that_the_experiment_makes():
    released = parse_configuration({"inbox": {"source": "in", "epsilon": 1.0, "strategy": "S4"}})
    with pytest.raises(ParameterError, match=r"S4, which needs .* mst; .*\[word, gst, mst\]"):
        released.require_segmentation(parse_params({"seed": 1}))
    grid = {"segmentations": ["word", "gst", "mst"]}
    released.require_segmentation(parse_params({"seed": 1, "grid": grid}))


@pytest.mark.parametrize(
    "old", ["machine:\n  workers: 1\n", "inbox: {}\n", "policy:\n  protect: null\n"]
)
def test_a_file_of_an_earlier_version_is_refused(tmp_path, old):
    (tmp_path / "params.yaml").write_text(f"seed: 1\n{old}", encoding="utf-8")
    with pytest.raises(ParameterError, match=r"moved to lexveil\.toml; `lexveil init --upgrade`"):
        load_params(tmp_path / "params.yaml")
