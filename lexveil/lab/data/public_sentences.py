"""Choice of sentences for a sentence bank: extraction of suitable sentences from public texts, and
selection of some of them.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import duckdb
import numpy as np
import pyarrow as pa

from lexveil.core.accounting.linkage import CANDIDATES, PIECE
from lexveil.core.embeddings.sentences import CutTexts, Units
from lexveil.core.text.encode import Lexicon, TokenClass, encode
from lexveil.io.artifacts.screened_words import is_screened, screened_words
from lexveil.io.execution import duckdb_session
from lexveil.lab.data.sentence_choice import Choice

BEGINNING = 2_500  # characters at the start of a text from which pieces are cut
FOUND = pa.schema(
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
    """Public texts from which the sentences of a sentence bank are chosen.

    Attributes:
        texts: the texts.
        weights: the weight of the source of each text, above 0.
    """

    texts: Sequence[str]
    weights: Sequence[float]


def choose(
    con: duckdb.DuckDBPyConnection, texts: Iterable[PublicTexts], lexicon: Lexicon, choice: Choice
) -> pa.Table:
    """Choose the sentences of a sentence bank from public texts; return them as a table with
    columns text, n_words and n_known.

    Args:
        texts: the texts, in parts.
        lexicon: the known words.
    """
    screened = screened_words(choice.parts(lexicon.language))
    batches = (candidates(some, lexicon, screened) for some in texts)
    con.register("candidates", pa.RecordBatchReader.from_batches(FOUND, batches))
    chosen = choice.limits() | {"seed": choice.seed, "size": choice.size}
    return con.sql(duckdb_session.text("sentences/bank"), params=chosen).to_arrow_table()


@dataclass
class TextSample:
    """Random sample of public texts: the texts with the smallest hashes, whatever the order of the
    texts.

    Attributes:
        kept: the start of each text, by the hash of the text.
    """

    kept: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Make a sample of some texts."""
        return cls({_hash(text): text[:BEGINNING] for text in texts})

    def passing(self, parts: Iterable[PublicTexts]) -> Iterator[PublicTexts]:
        """Yield texts unchanged, in their order, and add each text to the sample."""
        for some in parts:
            self.kept |= {_hash(text): text[:BEGINNING] for text in some.texts}
            if len(self.kept) > 2 * CANDIDATES:
                self.kept = dict(heapq.nsmallest(CANDIDATES, self.kept.items()))
            yield some

    def pieces(self, lexicon: Lexicon) -> CutTexts:
        """Cut the texts of the sample into ``CANDIDATES`` pieces of about ``PIECE`` words each:
        first the first piece of every text, then the second pieces, and so on. Return fewer pieces
        if the texts are too short.
        """
        texts = [text for _, text in heapq.nsmallest(CANDIDATES, self.kept.items())]
        encoded = encode(texts, lexicon)
        words = encoded.n_words * (encoded.kind != TokenClass.PUNCTUATION.value)
        before = np.cumsum(words) - words
        offsets = encoded.offsets()[:-1]
        text_of = encoded.text_of
        in_text = before - before[np.minimum(offsets, max(len(before) - 1, 0))][text_of]
        number = in_text // PIECE
        is_first = np.append(True, (np.diff(text_of) > 0) | (np.diff(number) > 0))[: len(number)]
        starts = np.append(np.flatnonzero(is_first), len(number)).astype(np.int64)
        n_words = np.add.reduceat(words, starts[:-1]) if len(number) else words
        of_piece = number[starts[:-1]]
        is_whole = (n_words >= PIECE) | (of_piece == 0)
        chosen = np.flatnonzero(is_whole & (n_words > 0))
        chosen = chosen[np.argsort(of_piece[chosen], kind="stable")][:CANDIDATES]
        sizes = np.diff(starts)[chosen]
        ends = np.cumsum(sizes)
        # the places of the tokens of the pieces, one piece after the other
        taken = np.repeat(starts[:-1][chosen] - ends + sizes, sizes) + np.arange(sizes.sum())
        rows = encoded.rows[taken]
        bounds = np.concatenate([[0], ends])
        begins = np.flatnonzero(np.diff(encoded.sentence_of[taken], prepend=-1))
        sentences = np.unique(np.concatenate([bounds, begins]))
        return CutTexts(Units(rows, bounds), Units(rows, sentences))


def _hash(text: str) -> str:
    """Return the hash of a text by which the documents of the sampled corpus are also ordered."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def candidates(some: PublicTexts, lexicon: Lexicon, screened: frozenset[str]) -> pa.RecordBatch:
    """Return those sentences of public texts that a sentence bank may contain, in the columns that
    sql/sentences/bank.sql reads.

    Args:
        screened: words that exclude a sentence from the bank.
    """
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
    on_list = is_screened(encoded.forms, screened)
    before = np.concatenate([[0], np.cumsum(on_list[encoded.word])])
    weights = np.asarray(some.weights, dtype=np.float64)
    columns = [
        pa.array(sentences, pa.string()),
        pa.array(weights[text_of]),
        pa.array(n_words.astype(np.int32)),
        pa.array(n_known.astype(np.int32)),
        pa.array(before[starts[1:]] > before[starts[:-1]]),
    ]
    return pa.record_batch(columns, FOUND)
