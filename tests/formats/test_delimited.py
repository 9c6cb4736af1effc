"""What a CSV file of a spreadsheet has beside its fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.formats.rewriting import rewritten


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_byte_order_mark_and_line_ends_stay(mark: str, end: str, tmp_path: Path) -> None:
    """By the mark Excel knows UTF-8; a first column in quotes may follow it."""
    (tmp_path / "in.csv").write_bytes(f'{mark}"text",id{end}old,1{end}old,2{end}'.encode())
    assert rewritten(tmp_path / "in.csv").read_bytes().decode() == f"{mark}text,id{end}word,1{end}word,2{end}"
