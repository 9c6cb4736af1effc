"""params.yaml: every mistake is named, with the nearest valid key or value."""

from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
import yaml

from lexveil import ParameterError
from lexveil.base import paths
from lexveil.base.levels import BaseEpsilon, RecoveryTarget, noise_in, parse_noise, stage_name
from lexveil.base.parameters import validated
from lexveil.core.mechanisms import mechanism_names
from lexveil.io.config import GridParams, load_params, parse_params

ROOT = Path(__file__).parents[2]
GOOD = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))


def changed(path, value):
    raw = yaml.safe_load(yaml.safe_dump(GOOD))
    *groups, key = path.split(".")
    inner = reduce(getitem, groups, raw)
    if value is None:
        del inner[key]
    else:
        inner[key] = value
    return raw


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "collocations.min_pmy",
            2.0,
            r"unknown key collocations\.min_pmy; did you mean collocations\.min_pmi\?",
        ),
        ("sede", 1, r"unknown key sede; did you mean seed\?"),
        (
            "sample.memory_limit",
            "2GB",
            r"unknown key sample\.memory_limit; this key stands in lexveil\.toml \[machine\]$",
        ),
        (
            "grid.epsilon",
            1.0,
            r"did you mean grid\.epsilons\? The key epsilon stands in lexveil\.toml \[inbox\]",
        ),
        ("seed", None, "seed is missing"),
        ("embeddings.epochs", 0, "must lie between 1 and 1000"),
        (
            "embeddings.scale",
            "length",
            r"embeddings\.scale is 'length'; it must be one of none, unit, frequency",
        ),
        (
            "embeddings.scale_list",
            "names.csv",
            r"embeddings\.scale_list is 'names\.csv'.*FILE@HASH",
        ),
        (
            "embeddings.purposes",
            {"sentiment": 0},
            r"purposes\.sentiment is 0; it must lie between 0",
        ),
        ("word_orders.models", ["own", "glove"], r"word_orders\.models\[1\] is 'glove'.*NAME@HASH"),
        ("word_orders.models", ["glove@12"], "NAME@HASH"),
        (
            "embeddings.word_model",
            "gst",
            r"embeddings\.word_model is 'gst'; it must be own, or NAME@HASH",
        ),
        ("evaluation.sensitive", "names.txt", r"evaluation\.sensitive is 'names\.txt'.*FILE@HASH"),
        ("collocations", [1], "collocations must be a mapping"),
        ("collocations.measures", ["llr"], r"collocations\.measures must name pmi"),
        ("policy.stopwords", "papr", "nearest: paper"),
        (
            "grid.strategies",
            ["S1", "S5"],
            r"grid\.strategies\[1\] is 'S5'; strategy S5 writes .*by tem alone.* grid\.sentences",
        ),
        ("grid.sentences", ["r0.3"], r"grid\.sentences\[0\] .*r0\.05 \(strong\)"),
        ("grid.sentences", [10.0], r"grid\.sentences\[0\] .*r0\.2 \(balanced\)"),
        ("grid.strategies", ["S1", "S1"], r"grid\.strategies is .*; it repeats S1"),
        (
            "grid.segmentations",
            ["gst", "mst"],
            r"lacks word, but strategy S1 needs it; write \[word, gst, mst\]",
        ),
        ("grid.strategies", ["S1", "S4"], "lacks mst, but strategy S4 needs"),
        ("grid.mechanisms", ["vikrey"], "nearest: vickrey"),
        (
            "mechanisms.mahalanobis.lambda",
            1.0,
            r"mechanisms\.mahalanobis\.lambda is 1\.0; it must lie between 0",
        ),
        ("grid.epsilons", [5, 5.0], r"grid\.epsilons is .*; it repeats 5"),
        ("grid.epsilons", [float("nan")], "is nan; it must be finite and greater than 0"),
        ("grid.epsilons", [10**400], "finite and greater than 0"),
        ("grid.epsilons", [], "grid.epsilons must be a list with at least one entry"),
        (
            "grid.epsilons",
            [1.0, "r1.0"],
            r"grid\.epsilons\[1\] is 'r1\.0'; it must be a number, such as 10",
        ),
        ("grid.epsilons", ["r0.2", "r.2"], r"grid\.epsilons is .*; it repeats r0\.2"),
        ("count.min_count", 3, "raise the first or lower the second"),
    ],
)
def test_mistakes_are_named(path, value, message):
    with pytest.raises(ParameterError, match=message):
        parse_params(changed(path, value))


def test_the_committed_file_has_the_defaults():
    """Sections that may be missing have their defaults in the committed file. It has a section for
    each mechanism, because DVC would otherwise run no stage with the mechanism.
    """
    assert parse_params({"seed": GOOD["seed"]}) == parse_params(GOOD)
    assert GOOD["mechanisms"].keys() == {*mechanism_names(), "rank_remap"}


def test_a_model_of_the_evaluation_needs_its_folder():
    for key, chosen, folder in (
        ("classifier", "transformer", "transformer_model"),
        ("language_model", "gpt2", "gpt2_model"),
    ):
        raw = changed(f"evaluation.{key}", chosen)
        with pytest.raises(ParameterError, match=folder):
            parse_params(raw | {"evaluation": raw["evaluation"] | {folder: ""}})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [", r"yaml, line \d: not valid YAML in UTF-8 \(did not find expected node content"),
        (b"password: *hunter22", r"YAML in UTF-8 \(found undefined alias( a value)?\)$"),
        (b"\xff", "UTF-8"),
        (b"a: 2026-02-30", "YAML"),
        (b"", "mapping"),
        (b"seed: 1\ngrid: {}\nseed: 2\n", r"yaml, line 3: the key seed is a duplicate of line 1"),
        (
            b"seed: 1\ngrid:\n  a: 1\n  b: 1\n  a: 2\n",
            r"line 5: the key a is a duplicate of line 3",
        ),
        (None, "does not exist"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, content, message):
    if content is not None:
        (tmp_path / "params.yaml").write_bytes(content)
    with pytest.raises(ParameterError, match=message):
        load_params(tmp_path / "params.yaml")


def test_a_whole_epsilon_is_the_number_and_keeps_its_text_in_names():
    (written,) = validated(GridParams, {"epsilons": [5]}, "").epsilons
    (again,) = validated(GridParams, {"epsilons": [written]}, "").epsilons
    assert written == BaseEpsilon(5.0) and {
        str(paths.private("tem", "S1", one)) for one in (written, again, parse_noise("5"))
    } == {"artifacts/private/tem/S1/5"}
    assert stage_name("privatize", "tem", "S1", again) == "privatize@tem-S1-5"


def test_levels_stand_among_epsilons():
    """A level is written with its prefix and is no epsilon, so that no two runs have one name."""
    grid = GridParams(
        mechanisms=["tem"],
        strategies=["S3"],
        epsilons=[BaseEpsilon(0.5), RecoveryTarget(0.5), RecoveryTarget(0.05)],
    )
    assert [str(at) for _, _, at in grid.runs()] == ["0.5", "r0.5", "r0.05"]
    assert len(set(grid.runs())) == 3 and grid.runs()[0] != grid.runs()[1]
    assert (grid.base_epsilons, grid.levels) == (
        [BaseEpsilon(0.5)],
        [RecoveryTarget(0.5), RecoveryTarget(0.05)],
    )
    assert validated(GridParams, {"epsilons": ["r0.2"]}, "").runs()[0] == (
        "madlib",
        "S1",
        RecoveryTarget(0.2),
    )


def test_a_grid_is_written_as_params_yaml_has_it():
    grid = validated(GridParams, {"epsilons": [5, 0.5, "r0.2"]}, "")
    written = yaml.safe_load(yaml.safe_dump(grid.model_dump()))
    assert written["epsilons"] == [5.0, 0.5, "r0.2"]


def test_base_epsilons_come_before_levels_and_each_rises():
    settings = [parse_noise(written) for written in ("r0.5", "10", "r0.05", "0.5", "20.0")]
    assert [str(noise) for noise in sorted(settings)] == ["0.5", "10", "20.0", "r0.05", "r0.5"]


def test_a_level_is_the_same_run_before_and_after_its_epsilon_is_known():
    assert {RecoveryTarget(0.2): "run"}[RecoveryTarget(0.2, 7.5)] == "run"


@pytest.mark.parametrize(
    ("record", "written", "text"),
    [
        pytest.param({"epsilon": 10.0}, "10.0", "10", id="base epsilon"),
        pytest.param({"epsilon": 8.111, "level": 0.2}, "r0.2", "20%, ε 8.11", id="level"),
    ],
)
def test_a_record_says_how_the_noise_of_its_run_is_set(record, written, text):
    noise = noise_in(record)
    assert (str(noise), noise.text) == (written, text)
    assert {"epsilon": noise.epsilon} | noise.level_entry == record
