"""All that names the formats follows from their one list."""

from __future__ import annotations

import re
from collections import Counter

from lexveil.formats.registry import FORMATS, known_endings, known_names


def test_each_ending_belongs_to_one_format_and_is_named() -> None:
    endings = Counter(ending for form in FORMATS for ending in form.endings)
    assert set(endings.values()) == {1} and set(endings) <= set(re.findall(r"\w+", known_endings()))
    assert all(form.name in form.endings and form.name in known_names() for form in FORMATS)
    assert known_endings().startswith("json, jsonl, ndjson, csv, tsv, txt")
    assert known_endings().endswith("(each also as .gz or .zst) and parquet")
