"""JSON lines read and written by compiled code are those that Python reads and writes, with the same faults."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexveil.errors import RequestError
from lexveil.formats import json_lines, json_tables
from lexveil.formats.base import TableRequest
from lexveil.formats.lines import LineWriter
from lexveil.formats.registry import as_source

SOURCE = as_source(Path("a.jsonl"))
REQUESTS = [TableRequest(["t"]), TableRequest(["u", "t"], "s")]
ODD = 'a"\\/\b\f\n\r\té“😀\u2028\x7f\x01'
GOOD = [
    '{"t": "plain", "u": null, "s": "x"}',
    ' {"s":7.0 , "n": -1.5e+3,"u" :"", "t":"\\ud83d\\ude00\\u00e9\\/"} \r',
    json.dumps({"u": ODD, "s": True, "t": ODD}),
    json.dumps({"u": ODD, "s": 12, "t": ODD}, ensure_ascii=False),
    '{"t": "nested", "o": {"t": [1, "}"]}, "u": "u", "s": "x"}',
    '{"\\u0074": "an escaped key", "u": "u", "s": "x", "x": "", "x": NaN}',
    "",
    "\u2003",
]
BAD = [
    '{"t": "a", "t": "b", "u": "c", "s": "x"}',
    '{"t": "a", "u": "c", "s": ""}',
    '{"t": "a", "u": 7, "s": "x"}',
    '{"t": 1, "u": "c", "s": "x"}',
    '{"u": "no text", "s": "x"}',
    '{"t": "\\ud83d alone", "u": "c", "s": "x"}',
    '{"t": "a\\u0000", "u": "c", "s": "x"}',
    '{"t": "a\tb", "u": "c", "s": "x"}',
    '{"t": "a\\x", "u": "c", "s": "x"}',
    '{"t": "a", "u": "c", "s": "x", "n": 01}',
    '{"t": "a", "u": "c", "s": "x", "n": 1.}',
    '{"t": "a", "u": "c", "s": "x", "n": nul}',
    '{"t": "a", "u": "c", "s": "x",}',
    '{"t": "a", "u": "c", "s": "x"} {}',
    '{"t": "a", "u": "c", "s": "x"',
    '["t"]',
]


def read(
    monkeypatch: pytest.MonkeyPatch, content: bytes, request: TableRequest, *, compiled: bool, for_writing: bool = True
) -> tuple[list[Any], bytes, str]:
    """What is read chunk by chunk, what is written of it with other texts, and the fault."""
    assert SOURCE is not None
    monkeypatch.setattr(json_lines, "worth_kernels", lambda _: compiled)
    chunks, out, fault = list[Any](), io.BytesIO(), ""
    try:
        table = SOURCE.format.table(io.BytesIO(content), SOURCE, request)
        writer = LineWriter(json_lines.JsonLines(), table, request.texts, out, "keep")
        for chunk in SOURCE.format.chunks(table, request, for_writing):
            assert (type(chunk.texts) is not list) == compiled
            rows: Sequence[list[str | None]] = [*chunk.texts]
            chunks.append((chunk.first, [*chunk.places], rows, chunk.subjects))
            if for_writing:
                new = [[text and f"{text[::-1]}{ODD}" for text in row] for row in rows]
                writer.write(chunk, new, np.arange(len(rows)) % 3 != 1)
    except RequestError as error:
        fault = str(error)
    return chunks, out.getvalue(), fault


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ROWS", 5), ("CHARACTERS", 60)):
        monkeypatch.setattr(f"lexveil.formats.chunks.{name}", value)
    monkeypatch.setattr(json_tables, "BLOCK", 100)


@pytest.mark.parametrize("request_", REQUESTS, ids=["one", "two"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_the_same_rows_and_bytes(monkeypatch: pytest.MonkeyPatch, request_: TableRequest, end: str) -> None:
    content = ("\ufeff" + "\n".join([*GOOD, *GOOD[::-1], *GOOD]) + end).encode()
    compiled = read(monkeypatch, content, request_, compiled=True)
    assert compiled == read(monkeypatch, content, request_, compiled=False)
    assert not compiled[2] and len(compiled[0]) > 3
    written = [json.loads(line) for line in compiled[1].split(b"\n")[:-1]]
    assert written and all(row["t"].endswith(ODD) for row in written)


@pytest.mark.parametrize("for_writing", [True, False])
@pytest.mark.parametrize("line", [*BAD, b"\xff", b'{"t": "\xed\xa0\x80", "u": "", "s": "x"}'])
def test_the_same_faults(monkeypatch: pytest.MonkeyPatch, line: str | bytes, for_writing: bool) -> None:
    raw = line.encode() if isinstance(line, str) else line
    content = b"\n".join([*(good.encode() for good in GOOD), raw, *(good.encode() for good in GOOD)])
    for request in REQUESTS:
        found = [
            read(monkeypatch, content, request, compiled=compiled, for_writing=for_writing)
            for compiled in (True, False)
        ]
        assert found[0] == found[1]
    assert found[0][2] or not for_writing
