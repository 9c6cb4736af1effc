"""Any bytes that are given as a file, and any request of a caller: read or served, or refused, and
nothing else."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from bad_inputs import BAD, lines, packed, parquet, texts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lexveil import MECHANISMS, LexveilError, Model, inspect, privatize
from lexveil.core.accounting.budgets import DocumentBudget
from lexveil.io.config import load_params, parse_params
from lexveil.io.request import Request
from lexveil.lab.lineage.release_lineage import read_record as lineage_record
from lexveil.release.inbox.archive import RECORD, read_record
from lexveil.release.ledger import anchor
from lexveil.release.ledger.verification import verify
from lexveil.release.preconditions import find_valid_audit
from lexveil.release.settings import settings_of
from tests.fuzz.properties import ENDINGS, check_file, check_message, read, small_limits
from tests.text.reference_tokenizer import assert_same

FUZZ = Path(__file__).parents[1] / "fuzz"

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.lists(
    st.dictionaries(st.sampled_from(["text", "id", "a"]), VALUES, max_size=3) | VALUES, max_size=5
).map(lambda rows: "\n".join(json.dumps(row) for row in rows).encode())
PARTS = ["text", "id", ",", "\t", '"', '""', "\n", "\r\n", "\r", "a", " ", "é", "\0", "=1"]
DELIMITED = st.tuples(
    st.sampled_from(["text,id\n", "id\ttext\n"]), st.lists(st.sampled_from(PARTS), max_size=30)
).map(lambda parts: (parts[0] + "".join(parts[1])).encode())
CONTENT = st.binary(max_size=200) | st.text(max_size=100).map(str.encode) | OBJECTS | DELIMITED


@given(st.sampled_from([ending for ending in ENDINGS if ending != "parquet"]), CONTENT, st.data())
def test_any_bytes_are_read_or_refused(ending, content, data):
    """Packed rightly, or not at all, or cut somewhere."""
    packing = ending.rpartition(".")[2]
    if packing in ("gz", "zst") and data.draw(st.booleans()):
        content = packed(content, packing)
    cut = data.draw(st.none() | st.integers(0, len(content)))
    with small_limits():
        check_file(content[:cut], ending)


WHOLE = [
    parquet(texts("a", None, "b"), compression=packing) for packing in ("none", "snappy", "zstd")
]
WHOLE += [BAD[case].content for case in ("not UTF-8, Parquet", "a column of bytes, Parquet")]


@given(
    st.sampled_from(WHOLE),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=4),
    st.data(),
)
def test_any_parquet_is_read_or_refused(whole, changes, data):
    """A whole file of which some bytes are others, or which is cut."""
    content = bytearray(whole)
    for at, byte in changes:
        content[at % len(content)] = byte
    cut = data.draw(st.none() | st.integers(0, len(content)))
    with small_limits():
        check_file(bytes(content[:cut]), "parquet")


@pytest.mark.parametrize("target", ["readers", "tokenizer"])
def test_what_was_found_once(target):
    """The inputs that the fuzzer starts from, those among them that broke something."""
    files = sorted((FUZZ / "corpus" / target).iterdir())
    assert len(files) > 20 and sum(file.stat().st_size for file in files) < 200_000
    n_read = 0
    with small_limits():
        for file in files:
            content = file.read_bytes()
            if target == "readers":
                n_read += check_file(content[1:], ENDINGS[content[0] % len(ENDINGS)])
            else:
                assert_same([part.decode("utf-8", "ignore") for part in content.split(b"\xff")])
    assert target == "tokenizer" or 10 < n_read < len(files)


def test_the_properties_can_fail(monkeypatch):
    """A reader that dies of a fault, a message that quotes, a writer that loses a text, a tokenizer
    that differs."""
    check_message("f.csv, line 2: 3 fields where the header has 2", b"Zanzibar")
    with pytest.raises(AssertionError):
        check_message("f.csv: there is no column `Zanzibar`", b"Zanzibar,text")
    assert read(b'{"text": "a"}\n{"text": null}\n', "jsonl") == [["a"], [None]]
    assert read(b'{"text": 5}\n', "jsonl") is None
    monkeypatch.setattr(
        "lexveil.io.formats.json_lines.JsonLines.encode", lambda *_: '{"text": "b"}\n'
    )
    with pytest.raises(AssertionError):
        check_file(b'{"text": "a"}\n', "jsonl")
    monkeypatch.setattr("tests.text.reference_tokenizer.sentences", lambda text, _: [[text]])
    with pytest.raises(AssertionError):
        assert_same(["a b"])


@pytest.mark.nightly
@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris is installed for a search only"
)
@pytest.mark.parametrize("target", ["readers", "tokenizer"])
def test_a_search_guided_by_coverage_finds_nothing(tmp_path, target):
    """Twenty minutes from the inputs above; one that breaks something is left in the file of the
    message."""
    (tmp_path / "new").mkdir()
    command = [
        "-m",
        "tests.fuzz.search",
        target,
        str(tmp_path / "new"),
        str(FUZZ / "corpus" / target),
    ]
    environment = os.environ | {"PYTHONPATH": str(FUZZ.parents[1])}
    done = subprocess.run(
        [sys.executable, *command, "-max_total_time=1200"],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


REQUESTS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
RIGHT = {
    "mechanism": "tem",
    "strategy": "S1",
    "epsilon": 10.0,
    "mode": "experiment",
}
CHOICES = {
    "mechanism": [*MECHANISMS, "none", "nothing"],
    "strategy": ["S2", "S3", "S4", "none", "S9"],
    "epsilon": [None, 1e-9, 1e9, 0, -1.0, float("nan"), float("inf")],
    "document_budget": [None, 5.0, 1e-9, 1e12],
    "average_words": [20.0, "data", 0, "other"],
    "max_token_epsilon": [1.0, "none", -1.0, "other"],
    "mode": ["release", "other", None],
    "seed": [0, 2**62, -1, 2**70],
    **{name: [False, True] for name in ("without_guarantee", "keep_layout", "consistent")},
    **{
        name: ["paper", "perturb", "keep", "drop", "sample", "other"]
        for name in ("stopwords", "punctuation", "oov")
    },
}
HOW = st.lists(
    st.one_of(
        *(
            st.tuples(st.just(name), st.sampled_from(some) | VALUES)
            for name, some in CHOICES.items()
        )
    ),
    max_size=3,
).map(lambda changes: RIGHT | dict(changes))
TEXTS = st.lists(st.text(max_size=24) | VALUES | st.binary(max_size=8), max_size=4)


def served(call):
    """Return whether a request is served. If not, the refusal must be brief."""
    try:
        call()
    except LexveilError as error:
        assert 0 < len(str(error)) < 4000 and "Traceback" not in str(error)
        return False
    return True


def changed(values, data):
    """Return a copy of JSON values with some of them changed."""
    made = json.loads(json.dumps(values))
    for _ in range(data.draw(st.integers(0, 3))):
        part = made
        name = data.draw(st.sampled_from([*part, "unknown"]))
        while isinstance(part.get(name), dict) and part[name] and data.draw(st.integers(0, 3)):
            part = part[name]
            name = data.draw(st.sampled_from([*part, "unknown"]))
        part[name] = data.draw(VALUES)
    return made


@REQUESTS
@given(st.data())
def test_any_parameters(built, data):
    served(
        lambda: parse_params(changed(load_params().model_dump(mode="json", by_alias=True), data))
    )


@REQUESTS
@given(TEXTS | VALUES, st.none() | TEXTS, HOW)
def test_any_arguments(built, values, subjects, how):
    model = Model.load(built)
    served(
        lambda: json.dumps(
            privatize(values, subjects=subjects, project=model, workers=1, **how).record.to_dict()
        )
    )
    Path("in.jsonl").write_bytes(lines({"text": "the market", "id": 1}))
    served(lambda: inspect("in.jsonl", subject_column="id", project=model, workers=1, **how))


@pytest.mark.parametrize(
    "name", [RECORD, "out.record.json", "ledger.record.json", "tem-S1-10.json", "anchor"]
)
@REQUESTS
@given(st.data())
def test_any_record(ready, name, data):
    """Readers survive any content of records, audits and anchors beside outputs and ledgers."""
    model = Model.load(ready)
    record = {
        "mode": "release",
        "made_with": {},
        "guarantee": {},
        "publication": {"id_column": "id"},
        "withdrawn": 0,
    }
    engine = SimpleNamespace(
        settings=settings_of(Request(**RIGHT | {"mode": "release"}), model.project),
        model=SimpleNamespace(
            configuration=model.configuration, project=SimpleNamespace(audits=ready / "read")
        ),
        prepared=SimpleNamespace(parameters={}),
    )
    budget = DocumentBudget(1.0, 1.0)
    reference = model.reference("S1")
    readers = {
        RECORD: (record, lambda file: read_record(file.parent)),
        "out.record.json": (record, lineage_record),
        "ledger.record.json": (
            {"release": {"id": "a", "head": "0" * 64}},
            lambda file: verify(Path(".lexveil/ledger"), [file]),
        ),
        "tem-S1-10.json": (
            {"parameters": {}, "violation": False, "epsilon": 1.0, "mode": "release"},
            lambda file: find_valid_audit(engine, budget, reference, {}),
        ),
        "anchor": ({"entries": 3, "head": "0" * 64, "salt": "0" * 64}, anchor.read),
    }
    values, read = readers[name]
    (ready / "read").mkdir(exist_ok=True)
    broken = data.draw(
        st.none()
        | st.sampled_from([b"", b"[" * 100_000, b'{"a": ' * 100_000])
        | st.binary(max_size=20)
    )
    file = ready / "read" / name
    file.write_bytes(json.dumps(changed(values, data)).encode() if broken is None else broken)
    served(lambda: read(file))
