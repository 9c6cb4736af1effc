"""The keys of rows, worked out from tokens that are there already, are those of subject_keys."""

import itertools

import pyarrow as pa
import pytest

from lexveil.accounting.subject_keys import text_keys
from lexveil.formats.arrow_tables import ArrowRows
from lexveil.formats.chunks import Texts
from lexveil.privatization.engine.batch import Batch

PIECES = [
    "The", "http://a.B/c", "hTtps://x.y", "don’t", "CAFÉ", "cafe\u0301", "…", "U.S.", "ﬁ", "\u200b", "l'Été", "ſ", "İ",
    "—", "😀", "\x85", "\u2065", "\ufff5", None, "",
]  # fmt: skip


def arrow(rows: Texts) -> ArrowRows:
    return ArrowRows([pa.array(column, pa.large_string()) for column in zip(*rows, strict=True)])


def batch_of_rows(rows: Texts) -> Batch:
    return Batch(rows, [()] * len(rows))


@pytest.mark.parametrize("width", [1, 3])
def test_a_text_has_one_key_in_whatever_form_it_comes(width: int) -> None:
    """As lists or as Arrow, from any part of an array, and in any of its columns."""
    glued = [None if first is None else first + (last or "") for first, last in itertools.product(PIECES, repeat=2)]
    rows = [[text, *[None, ""][: width - 1]] for text in glued]
    keys = text_keys([[text] for text in glued])
    assert keys == text_keys(rows) == text_keys([row[::-1] for row in rows])
    assert keys == batch_of_rows(rows).text_keys == batch_of_rows(arrow(rows)).text_keys
    assert keys[3:] == batch_of_rows(arrow(rows)[3:]).text_keys


@pytest.mark.parametrize("as_arrow", [True, False])
def test_parts_of_a_batch_are_the_batch(as_arrow: bool) -> None:
    rows: Texts = [["x" * size] for size in (5, 0, 9, 30, 1, 1, 8)]
    keys = [(str(number),) for number in range(7)]
    batch = Batch(arrow(rows) if as_arrow else rows, keys, first_row=3)
    parts = batch.parts(10)
    assert len(parts) > 3 and batch.parts(1000) == [batch]
    assert [row for part in parts for row in part.rows] == rows
    assert [key for part in parts for key in part.keys] == keys
    assert [part.first_row for part in parts] == [3 + int(part.keys[0][0]) for part in parts]
