"""The keys of rows, worked out from tokens that are there already, are those of subject_keys."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from lexveil.accounting.subject_keys import text_keys
from lexveil.formats.arrow_tables import ArrowRows
from lexveil.formats.chunks import Texts
from lexveil.privatization.engine.batch import Batch, invariant_characters, joined_rows, keys_of
from lexveil.text.encode import Lexicon, encode
from lexveil.text.strings import Strings

LEXICON = Lexicon.build("word", ["the", "café"], None)
PIECES = [
    "The", "http://a.B/c", "HTTP://x.Y", "hTtps://x.y", "www.a.de", "Www.b.De", "don’t", "CAFÉ", "cafe\u0301", "…",
    "---", "U.S.", "“q”", "ﬁ", "\u200b", "J. Smith. He", "ſ", "İ", "K", "—", "😀", "\x85", "°", None, "",
]  # fmt: skip


def arrow(rows: Texts) -> ArrowRows:
    return ArrowRows([pa.array(column, pa.large_string()) for column in zip(*rows, strict=True)])


def batch_of_rows(rows: Texts) -> Batch:
    return Batch(rows, [()] * len(rows))


@pytest.mark.parametrize("width", [1, 2])
def test_keys_of_tokens_are_keys_of_texts(width: int) -> None:
    both = itertools.product(PIECES, repeat=2)
    glued = [None if one is None or other is None else one + other for one, other in both]
    rows = [[*pair][:width] for pair in zip(glued, reversed(glued), strict=True)]
    rows += [[f"A{chr(point)}b c{chr(point)}"] * width for point in (*range(0x80, 0x300), *range(0x2000, 0x2100))]
    texts = arrow(rows)
    batch = batch_of_rows(texts)
    assert isinstance(batch.texts, Strings) and [*batch.with_texts(batch.texts, width)] == rows
    assert keys_of(batch, encode(batch.texts, LEXICON)) == text_keys(rows)
    assert invariant_characters()[[ord("’"), ord("é")]].all() and not invariant_characters()[[ord("É"), ord("…")]].any()


def test_texts_as_arrow_are_laid_out_as_lists() -> None:
    rows: Texts = [["a", None], [None, None], ["b", "c"]]
    one, other = batch_of_rows(arrow(rows)), batch_of_rows(rows)
    assert [*one.texts] == other.texts and len(one) == len(other)
    assert (one.document == other.document).all() and (one.column == other.column).all()
    assert [*arrow(rows).only(np.array([True, True, False]))] == [["a", None], [None, None], [None, None]]


@pytest.mark.parametrize("as_arrow", [True, False])
def test_parts_of_a_batch_are_the_batch(as_arrow: bool) -> None:
    rows: Texts = [["x" * size] for size in (5, 0, 9, 30, 1, 1, 8)]
    keys = [(str(number),) for number in range(7)]
    batch = Batch(arrow(rows) if as_arrow else rows, keys, first_row=3)
    parts = batch.parts(10)
    assert len(parts) > 3 and batch.parts(1000) == [batch]
    assert [*joined_rows([part.rows for part in parts])] == rows
    assert [key for part in parts for key in part.keys] == keys
    assert [part.first_row for part in parts] == [3 + int(part.keys[0][0]) for part in parts]
