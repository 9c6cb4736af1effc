"""JSON lines: only the texts of a line change, every other byte stays, and the first fault is named
by its line."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.base.errors import RequestError
from lexveil.io.formats.base import TableRequest
from lexveil.io.formats.registry import as_source

SOURCE = as_source(Path("a.jsonl"))
ONE = TableRequest(["t"], keeps_blanks=True)
TWO = TableRequest(["u", "t"], "s", keeps_blanks=True)
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
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def rewrite(content, request, new, keep=1):
    """All rows, and what is written of every ``keep``-th of them with ``new`` after each text."""
    assert SOURCE is not None
    table = SOURCE.format.table(io.BytesIO(content), SOURCE, request)
    out = io.BytesIO()
    rows = list[Any]()
    with SOURCE.format.writer(table, request.texts, out, "keep") as writer:
        for chunk in SOURCE.format.chunks(table, request, for_writing=True):
            texts = [[text if text is None else text + new for text in row] for row in chunk.texts]
            rows += chunk.texts
            writer.write(chunk, texts, np.arange(len(rows) - len(texts), len(rows)) % keep == 0)
    return rows, out.getvalue()


@given(
    st.dictionaries(st.text(max_size=4), VALUES, max_size=4),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\r ")]),
)
def test_only_the_text_changes(others, text, escapes, separators):
    name = 'te"xt\\'
    z = [{"}": "]", 'te"xt\\': 1}]
    # which would keep their places
    others = {key: value for key, value in others.items() if key not in (name, "z")}
    line = json.dumps(
        {"a": 1} | others | {name: "MARK", "z": z}, ensure_ascii=escapes, separators=separators
    )
    # which leaves halves of surrogate pairs out
    before, after = line.encode(errors="replace").decode().split('"MARK"')
    content = f"{before}{json.dumps(text, ensure_ascii=escapes)}{after}\n"
    rows, written = rewrite(content.encode(), TableRequest([name], keeps_blanks=True), "\n")
    new = json.dumps(text + "\n", ensure_ascii=False)
    assert rows == [[text]] and written.decode() == f"{before}{new}{after}\n"


@pytest.mark.parametrize(("request_", "end"), [(ONE, ""), (TWO, "\n")], ids=["one", "two"])
def test_chosen_rows_are_written_in_order_with_new_texts(monkeypatch, request_, end):
    for name, value in (("ROWS_OF_A_CHUNK", 5), ("CHARACTERS_OF_A_CHUNK", 60)):
        monkeypatch.setattr(f"lexveil.io.formats.chunks.{name}", value)
    lines = [*GOOD, *GOOD[::-1], *GOOD]
    rows, written = rewrite(("\ufeff" + "\n".join(lines) + end).encode(), request_, ODD, keep=2)
    objects = [json.loads(line) for line in lines if line.strip()]
    assert rows == [[values[name] for name in request_.texts] for values in objects]
    for values in objects:
        values.update(
            {name: values[name] + ODD for name in request_.texts if values[name] is not None}
        )
    got = [json.loads(line) for line in written.decode().split("\n")[:-1]]
    assert [str(values) for values in got] == [str(values) for values in objects[::2]]


@pytest.mark.parametrize("key", ["t", "\\u0074"])
def test_a_text_that_another_would_hide_is_named(key):
    """Most faults of JSON lines are among those of tests/privatization/bad_inputs.py."""
    bad = f'{{"t": "a", "u": "c", "s": "x", "{key}": "b"}}'
    with pytest.raises(RequestError, match=rf"a\.jsonl, line {len(GOOD) + 1}: duplicate key `t`"):
        rewrite("\n".join([*GOOD, bad, "[]"]).encode(), TWO, "")


WITHIN = TableRequest(["m[].c", "t", "o.a.b[][]"], "s", keeps_blanks=True)
NESTED = [
    '{"t": "one", "s": 1, "m": [{"c": "a"}, {"r": "\\"}]", "c": "b\\u00e9"}], '
    '"o": {"a": {"b": []}}}',
    ' {"o" : null,"m":[ ] , "s":"x", "t" :null}',
    '{"s": 2, "m": null, "t": "three", "o": {"a": {"b": [["x", null], [], ["y"] ] }}}',
    '{"o": {"a": {"b": null}}, "m": [ {"c": null, "d": [1, {"c": "kept"}]} , {"c" : "z"}], '
    '"s": 3, "t": "4"}',
]


def test_paths_find_texts_and_nothing_else_changes():
    rows, written = rewrite("\n".join(NESTED).encode(), WITHIN, "!")
    texts = [[text for text in row if text is not None] for row in rows]
    assert texts == [["a", "bé", "one"], [], ["three", "x", "y"], ["z", "4"]]
    assert {len(row) for row in rows} == {2 + 1 + 3}
    before = [json.loads(line) for line in NESTED]
    after = [json.loads(line) for line in written.decode().splitlines()]
    assert after[0]["m"] == [{"c": "a!"}, {"r": '"}]', "c": "bé!"}] and after[0]["t"] == "one!"
    assert after[1] == before[1] and after[2]["o"]["a"]["b"] == [["x!", None], [], ["y!"]]
    assert after[3]["m"] == [{"c": None, "d": [1, {"c": "kept"}]}, {"c": "z!"}]
    # Without other texts every byte stays.
    _, same = rewrite("\n".join(NESTED).encode(), WITHIN, "")
    assert same.decode() == "\n".join(NESTED).replace("\\u00e9", "é") + "\n"


@given(st.lists(st.lists(st.none() | st.text(alphabet='a"\\\\é\n]}', max_size=5)), max_size=9))
def test_any_number_of_texts_in_a_row(rows):
    """Each row may have another number of texts, at the ends of chunks too."""
    objects = [{"t": [{"c": text, "x": {"c": [1]}} for text in row]} for row in rows] or [{"t": []}]
    content = "".join(json.dumps(each) + "\n" for each in objects).encode()
    _, written = rewrite(content, TableRequest(["t[].c"], keeps_blanks=True), "+")
    for before in objects:
        for member in before["t"]:
            member["c"] = member["c"] if member["c"] is None else f"{member['c']}+"
    assert [json.loads(line) for line in written.decode().splitlines()] == objects


def test_a_name_with_dots_is_a_column_where_there_is_one():
    rows, _ = rewrite(b'{"a.b": "flat", "a": {"b": "within"}}\n', TableRequest(["a.b"]), "")
    assert rows == [["flat"]]
