"""What a CSV file of a spreadsheet has beside its fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from lexveil.errors import RequestError
from tests.formats.rewriting import rewritten


def rewrite(content: bytes, folder: Path) -> bytes:
    (folder / "in.csv").write_bytes(content)
    return rewritten(folder / "in.csv", lambda row: "new").read_bytes()


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_byte_order_mark_and_line_ends_stay(mark: bytes, end: bytes, tmp_path: Path) -> None:
    """By the mark Excel knows UTF-8; of a first column in quotes, too."""
    rows = [b"id,text", b"1,old", b"2,old"]
    assert rewrite(mark + end.join([*rows, b""]), tmp_path) == mark + end.join([b"id,text", b"1,new", b"2,new", b""])
    assert rewrite(mark + b'"text"' + end + b"old" + end, tmp_path) == mark + b"text" + end + b"new" + end


def test_semicolons_in_place_of_commas_are_pointed_out(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"in.csv: its first line has semicolons where CSV has a comma"):
        rewrite(b"id;text\n1;old\n", tmp_path)
