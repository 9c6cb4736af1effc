"""Any bytes that are given as a file are read or refused, and nothing else."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bad_inputs import BAD, packed, parquet, texts
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.properties import ENDINGS, check_file, check_message, check_texts, read, small_limits

FUZZ = Path(__file__).parents[1] / "fuzz"
EXAMPLES = settings(max_examples=150)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.lists(st.dictionaries(st.sampled_from(["text", "id", "a"]), VALUES, max_size=3) | VALUES, max_size=5).map(
    lambda rows: "\n".join(json.dumps(row) for row in rows).encode()
)
PARTS = ["text", "id", ",", "\t", '"', '""', "\n", "\r\n", "\r", "a", " ", "é", "\0", "=1"]
DELIMITED = st.tuples(st.sampled_from(["text,id\n", "id\ttext\n"]), st.lists(st.sampled_from(PARTS), max_size=30)).map(
    lambda parts: (parts[0] + "".join(parts[1])).encode()
)
CONTENT = st.binary(max_size=200) | st.text(max_size=100).map(str.encode) | OBJECTS | DELIMITED


@EXAMPLES
@given(st.sampled_from([ending for ending in ENDINGS if ending != "parquet"]), CONTENT, st.data())
def test_any_bytes_are_read_or_refused(ending: str, content: bytes, data: st.DataObject) -> None:
    """Packed rightly, or not at all, or cut somewhere."""
    packing = ending.rpartition(".")[2]
    if packing in ("gz", "zst") and data.draw(st.booleans()):
        content = packed(content, packing)
    cut = data.draw(st.none() | st.integers(0, len(content)))
    with small_limits():
        check_file(content[:cut], ending)


WHOLE = [parquet(texts("a", None, "b"), compression=packing) for packing in ("none", "snappy", "zstd")]
WHOLE += [BAD[case].content for case in ("not UTF-8, Parquet", "bytes, Parquet")]


@EXAMPLES
@given(st.sampled_from(WHOLE), st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=4), st.data())
def test_any_parquet_is_read_or_refused(whole: bytes, changes: list[tuple[int, int]], data: st.DataObject) -> None:
    """A whole file of which some bytes are others, or which is cut."""
    content = bytearray(whole)
    for at, byte in changes:
        content[at % len(content)] = byte
    cut = data.draw(st.none() | st.integers(0, len(content)))
    with small_limits():
        check_file(bytes(content[:cut]), "parquet")


@pytest.mark.parametrize("target", ["readers", "tokenizer"])
def test_what_was_found_once(target: str) -> None:
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
                check_texts([part.decode("utf-8", "ignore") for part in content.split(b"\xff")])
    assert target == "tokenizer" or 10 < n_read < len(files)


def test_the_properties_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that dies of a fault, a message that quotes, a writer that loses a text, a tokenizer that differs."""
    check_message("f.csv, line 2: 3 fields where the header has 2", b"Zanzibar")
    with pytest.raises(AssertionError):
        check_message("f.csv: there is no column `Zanzibar`", b"Zanzibar,text")
    assert read(b'{"text": "a"}\n{"text": null}\n', "jsonl") == [["a"], [None]]
    assert read(b'{"text": 5}\n', "jsonl") is None
    monkeypatch.setattr("lexveil.formats.json_lines.JsonLines.encode", lambda *_: '{"text": "b"}\n')
    with pytest.raises(AssertionError):
        check_file(b'{"text": "a"}\n', "jsonl")
    monkeypatch.setattr("tests.fuzz.properties.sentences", lambda text: [[text]])
    with pytest.raises(AssertionError):
        check_texts(["a b"])


@pytest.mark.nightly
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is installed for a search only")
@pytest.mark.parametrize("target", ["readers", "tokenizer"])
def test_a_search_guided_by_coverage_finds_nothing(tmp_path: Path, target: str) -> None:
    """Twenty minutes from the inputs above; one that breaks something is left in the file of the message."""
    (tmp_path / "new").mkdir()
    command = ["-m", "tests.fuzz.search", target, str(tmp_path / "new"), str(FUZZ / "corpus" / target)]
    environment = os.environ | {"PYTHONPATH": str(FUZZ.parents[1])}
    done = subprocess.run(
        [sys.executable, *command, "-max_total_time=1200"], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
