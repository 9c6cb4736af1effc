"""What a CSV file of a spreadsheet has beside its fields."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lexveil.errors import RequestError
from lexveil.formats.readers import Reader, open_writer
from lexveil.formats.registry import as_source


def rewritten(content: bytes, folder: Path) -> bytes:
    (folder / "in.csv").write_bytes(content)
    source = as_source(folder / "in.csv")
    assert source is not None
    reader = Reader(source, ("text",))
    (chunk,) = reader.chunks()
    writer = open_writer(reader, folder / "out.csv")
    writer.write(chunk, [["new"] for _ in chunk.texts], np.ones(len(chunk), dtype=np.bool_))
    writer.__exit__(None, None, None)
    return (folder / "out.csv").read_bytes()


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_byte_order_mark_and_line_ends_stay(mark: bytes, end: bytes, tmp_path: Path) -> None:
    """By the mark Excel knows UTF-8; of a first column in quotes, too."""
    rows = [b"id,text", b"1,old", b"2,old"]
    assert rewritten(mark + end.join([*rows, b""]), tmp_path) == mark + end.join([b"id,text", b"1,new", b"2,new", b""])
    assert rewritten(mark + b'"text"' + end + b"old" + end, tmp_path) == mark + b"text" + end + b"new" + end


def test_semicolons_in_place_of_commas_are_pointed_out(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"in.csv: its first line has semicolons where CSV has a comma"):
        rewritten(b"id;text\n1;old\n", tmp_path)
