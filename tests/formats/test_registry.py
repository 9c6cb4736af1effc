"""Formats are found by their files, and all that names them follows from that."""

from __future__ import annotations

import re

import pytest

from lexveil.formats.base import Format
from lexveil.formats.comma_separated import CommaSeparated
from lexveil.formats.registry import formats, known_endings, known_names, register


def test_messages_name_every_format() -> None:
    for form in formats():
        assert form.name in known_names() and set(form.endings) <= set(re.findall(r"\w+", known_endings()))
    assert known_endings().startswith("json, jsonl, ndjson, csv, tsv, txt")
    assert known_endings().endswith("(each also as .gz or .zst) and parquet")


@pytest.mark.parametrize("form", formats(), ids=lambda form: form.name)
def test_the_name_of_a_format_is_an_ending_of_its_own(form: Format) -> None:
    assert form.name in form.endings
    assert [other for other in formats() if set(other.endings) & set(form.endings)] == [form]


def test_an_ending_belongs_to_one_format() -> None:
    class Other(CommaSeparated):
        name = "other"
        endings = ("other", "csv")

    with pytest.raises(ValueError, match="taken"):
        register(Other)
