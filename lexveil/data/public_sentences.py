"""Choice of the sentences of a bank: which sentences of public texts are fit, and which of those a
bank takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from lexveil.artifacts.screened_words import screened_words
from lexveil.data.sentence_choice import Choice
from lexveil.runtime import duckdb_session
from lexveil.text.encode import Lexicon, TokenClass, encode

CANDIDATES = pa.schema(
    [
        ("text", pa.string()),
        ("weight", pa.float64()),
        ("n_words", pa.int32()),
        ("n_known", pa.int32()),
        ("is_screened", pa.bool_()),
    ]
)
NONE = pa.schema(
    [("text", pa.string()), ("n_words", pa.int32()), ("n_known", pa.int32())]
).empty_table()


class PublicTexts(NamedTuple):
    """Some public texts.

    Attributes:
        texts: the texts.
        weights: the weight of the source of each text, above 0.
    """

    texts: Sequence[str]
    weights: Sequence[float]


def choose(
    con: duckdb.DuckDBPyConnection, texts: Iterable[PublicTexts], lexicon: Lexicon, choice: Choice
) -> pa.Table:
    """Return the sentences of public texts that a bank takes: text, n_words, n_known.

    Args:
        texts: the texts, some at a time.
        lexicon: the words that are known.
    """
    batches = (candidates(some, lexicon) for some in texts)
    con.register("candidates", pa.RecordBatchReader.from_batches(CANDIDATES, batches))
    chosen = choice.limits() | {"seed": choice.seed, "size": choice.size}
    return con.sql(duckdb_session.text("sentences/bank"), params=chosen).to_arrow_table()


def candidates(some: PublicTexts, lexicon: Lexicon) -> pa.RecordBatch:
    """Return the sentences of some texts, as sql/sentences/bank.sql reads them."""
    texts = some.texts
    encoded = encode(texts, lexicon)
    starts = encoded.sentence_offsets
    n = len(starts) - 1
    first_of = encoded.spans[starts[:-1], 0]
    last_of = encoded.spans[starts[1:] - 1, 1]
    word_starts = np.searchsorted(encoded.first_word, starts[:-1])
    text_of = encoded.text_of[word_starts] if n else np.zeros(0, dtype=np.int32)
    sentences = [
        " ".join(texts[text][first:last].split())
        for text, first, last in zip(
            text_of.tolist(), first_of.tolist(), last_of.tolist(), strict=True
        )
    ]
    is_word = encoded.kind != TokenClass.PUNCTUATION.value
    words = encoded.n_words * is_word
    sentence_of = encoded.sentence_of
    n_words = np.bincount(sentence_of, weights=words, minlength=n)
    n_known = np.bincount(sentence_of, weights=words * (encoded.rows >= 0), minlength=n)
    listed = screened_words().words
    on_list = np.array([form in listed for form in encoded.forms], dtype=bool)
    before = np.concatenate([[0], np.cumsum(on_list[encoded.word])])
    weights = np.asarray(some.weights, dtype=np.float64)
    columns = [
        pa.array(sentences, pa.string()),
        pa.array(weights[text_of]),
        pa.array(n_words.astype(np.int32)),
        pa.array(n_known.astype(np.int32)),
        pa.array(before[starts[1:]] > before[starts[:-1]]),
    ]
    return pa.record_batch(columns, CANDIDATES)
