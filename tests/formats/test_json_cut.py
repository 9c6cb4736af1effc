"""Where the texts of an object stand in its line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.errors import RequestError
from lexveil.formats.base import Source
from lexveil.formats.json_lines import _cut, _joined
from lexveil.formats.registry import as_source

_SOURCE = as_source(Path("a.jsonl"))
assert _SOURCE is not None
SOURCE: Source = _SOURCE
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(max_size=4), VALUES, max_size=4),
    st.text(),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\r ")]),
)
def test_only_the_texts_change(others: dict[str, Any], text: str, escapes: bool, separators: tuple[str, str]) -> None:
    values = {"a": 1} | others | {'te"xt\\': text, "z": [{"}": "]"}]}
    line = json.dumps(values, ensure_ascii=escapes, separators=separators) + "\n"
    cut = _cut(line, ['te"xt\\'], SOURCE, 1)
    assert json.loads(_joined(cut, ["new"]), parse_constant=str) == json.loads(
        json.dumps(values | {'te"xt\\': "new"}), parse_constant=str
    )
    assert "".join([cut[0][0], json.dumps(text, ensure_ascii=escapes), cut[0][1]]) == line


@pytest.mark.parametrize("line", ["{}", " { } ", '{"a": {"b": "c"}}'])
def test_an_object_without_the_column_is_one_piece(line: str) -> None:
    assert _cut(line, ["b"], SOURCE, 1) == ([line], [])


def test_a_key_that_is_there_twice_is_refused_however_it_is_written() -> None:
    with pytest.raises(RequestError, match="duplicate key"):
        _cut('{"b": "x", "\\u0062": "y"}', ["b"], SOURCE, 1)
