"""Encoding of a batch of texts: cutting into tokens, with each token's class and vocabulary row in
arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil.base.types import Floats, Ids, ModelRows
from lexveil.core.text.collocation_index import Collocations
from lexveil.core.text.languages import DEFAULT, language_of
from lexveil.core.text.normal_forms import is_punctuation
from lexveil.core.text.pieces import Pieces
from lexveil.core.text.segment import segment
from lexveil.core.text.spans import Claim, Found, Words
from lexveil.core.text.strings import Strings

if TYPE_CHECKING:
    from lexveil.core.text.tokenize import TokenizedTexts


class TokenClass(IntEnum):
    """Class of a token, such as word, stop word or punctuation. Arrays hold the numbers; compare
    them with ``.value``, which is ten times as fast in NumPy.

    ``FOUND`` is the class of every token that a detector found, whatever its own class would be.
    ``SENTENCE`` is the class of all tokens when sentences of a bank are written in place of texts.
    """

    WORD = 0
    STOPWORD = 1
    PUNCTUATION = 2
    OOV = 3
    FOUND = 4
    SENTENCE = 5

    @property
    def label(self) -> str:
        """Name of the token class, as token logs and records show it."""
        return self.name.lower()

    @classmethod
    def labels(cls, *, with_found: bool = False) -> list[str]:
        """Return the names of the token classes, in the order of their numbers. By default only
        the classes of words are included.

        Args:
            with_found: return the names of all classes, because detectors may have found tokens, or
                the tokens are sentences.
        """
        return [member.label for member in cls if with_found or member < cls.FOUND]


@dataclass(frozen=True)
class Lexicon:
    """Vocabulary, collocations and language by which texts are cut into tokens and looked up.

    Attributes:
        segmentation: word, gst, mst or mst_exact.
        tokens: the vocabulary in row order; collocations join their words by ``_``.
        rows: row by token.
        collocations: the collocations that are tokens of the vocabulary; None for ``word``.
        language: code of the language whose tokenizer rules apply.
    """

    segmentation: str
    tokens: Sequence[str]
    rows: dict[str, int]
    collocations: Collocations | None
    language: str = DEFAULT

    @property
    def function_words(self) -> frozenset[str]:
        """Function words of the lexicon's language."""
        return language_of(self.language).function_words

    @cached_property
    def pieces(self) -> Pieces:
        """Written form of each token in the vocabulary."""
        return Pieces.of(self.tokens)

    @cached_property
    def n_words(self) -> npt.NDArray[np.int8]:
        """(V,) number of words in each token of the vocabulary."""
        joined = np.fromiter(
            map(str.count, self.tokens, repeat("_")), dtype=np.int8, count=len(self.tokens)
        )
        return joined + np.int8(1)

    def look_up(self, forms: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8]]:
        """Look up normal forms in the vocabulary. Return the row of each form (-1 if it has none),
        and the ``TokenClass`` that follows from the form.

        Forms are not cached: otherwise the forms of one text would make the look-up of another text
        faster.
        """
        rows = np.fromiter(map(self.rows.get, forms, repeat(-1)), dtype=np.int64, count=len(forms))
        kinds = np.fromiter(
            map(_kind_of, forms, repeat(self.function_words)), dtype=np.int8, count=len(forms)
        )
        return rows, kinds

    @classmethod
    def build(
        cls,
        segmentation: str,
        tokens: Sequence[str],
        collocations: Collocations | None,
        language: str = DEFAULT,
    ) -> Lexicon:
        """Build a lexicon. Of the collocations, it keeps only those that are tokens of the
        vocabulary.

        A collocation without a vector would turn known words into an unknown token.
        """
        rows = {token: row for row, token in enumerate(tokens)}
        return cls(
            segmentation, tokens, rows, collocations and _known(collocations, rows), language
        )


def _known(collocations: Collocations, tokens: Iterable[str]) -> Collocations:
    """Return the collocations that are tokens of the vocabulary."""
    number = collocations.word_ids
    parts = list[tuple[list[Ids], Floats]]()
    split = [words for token in tokens if len(words := token.split("_")) > 1]
    for size in (2, 3):
        of_size = [
            [number.get(word, -1) for word in words] for words in split if len(words) == size
        ]
        ids = np.array(of_size, dtype=np.int64).reshape(-1, size)
        # each collocation is a sentence of its own
        pmi = collocations.scores(ids.ravel(), np.arange(0, ids.size + 1, size))[size - 2][::size]
        parts.append((list(ids[pmi > -np.inf].T), pmi[pmi > -np.inf]))
    return Collocations.for_ids(*parts[0], *parts[1], number)


@dataclass(frozen=True, repr=False)
class Encoded:
    """Encoded batch of texts: its n tokens, in text order. They contain source text and must not
    leave the process.

    Attributes:
        n_texts: number of texts in the batch, including texts without tokens.
        text_of: (n,) int32, the text each token belongs to, from 0.
        rows: (n,) int64, row in the vocabulary; -1 if the token is not in it.
        kind: (n,) int8, a ``TokenClass``; FOUND only for a detected piece that is one token.
        n_words: (n,) words in the token: 1 to 3, or more for a detected piece that is one token.
        first_word: (n,) int64, index into ``words`` of the token's first word.
        forms: the distinct normal forms.
        word: (m,) int32, the form of each word, in text order.
        spans: (m, 2) int32, character span of each word in its text.
        found: the findings of a detector for the tokens; None without a detector.
        sentence_offsets: (s + 1,) the word at which each sentence begins; sentences without words
            are left out.
    """

    n_texts: int
    text_of: npt.NDArray[np.int32]
    rows: ModelRows
    kind: npt.NDArray[np.int8]
    n_words: npt.NDArray[np.signedinteger[Any]]
    first_word: npt.NDArray[np.int64]
    forms: Sequence[str]
    word: npt.NDArray[np.int32]
    spans: npt.NDArray[np.int32]
    found: Found | None = None
    sentence_offsets: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))

    @cached_property
    def words(self) -> list[str]:
        """Normal forms of all words, in text order. The rewriting of a batch does not use this
        list.
        """
        words: list[str] = np.array(self.forms, dtype=object)[self.word].tolist()
        return words

    @property
    def classes(self) -> npt.NDArray[np.int8]:
        """(n,) ``TokenClass`` of each token; FOUND for every token that a detector found."""
        if self.found is None:
            return self.kind
        return np.where(self.found.is_found, np.int8(TokenClass.FOUND), self.kind).astype(np.int8)

    @property
    def sentence_of(self) -> npt.NDArray[np.int64]:
        """(n,) index of the sentence to which each token belongs, from 0."""
        return np.searchsorted(self.sentence_offsets, self.first_word, side="right") - 1

    def offsets(self) -> npt.NDArray[np.int64]:
        """Return (n_texts + 1,) offsets: the index of the first token of each text."""
        return np.searchsorted(self.text_of, np.arange(self.n_texts + 1)).astype(np.int64)


def _kind_of(form: str, function_words: frozenset[str]) -> int:
    """Return the ``TokenClass`` of a word that is not looked up in the vocabulary."""
    if is_punctuation(form):
        return TokenClass.PUNCTUATION.value
    return TokenClass.STOPWORD.value if form in function_words else TokenClass.WORD.value


def tokenize(texts: Sequence[str], language: str = DEFAULT) -> TokenizedTexts:
    """Tokenize a batch of texts, and return each token's character span."""
    from lexveil.core.text.tokenize import tokenize_texts

    array = texts.array if isinstance(texts, Strings) else pa.array(texts, pa.large_string())
    return tokenize_texts(array, language, spans=True)


def encode(texts: Sequence[str], lexicon: Lexicon, claim: Claim | None = None) -> Encoded:
    """Cut a batch of texts into tokens, and look up each token's class and vocabulary row.

    Words are numbered, so that work that depends only on the word is done once per batch and
    distinct word, and the rest is arithmetic on numbers.

    Args:
        claim: function that returns the words claimed by detectors; None without detectors.
    """
    tokens = tokenize(texts, lexicon.language)
    forms = tokens.forms
    word = tokens.ids
    spans = tokens.spans
    sentence_offsets = np.concatenate([[0], np.cumsum(tokens.sentence_sizes, dtype=np.int64)])
    text_offsets = sentence_offsets[
        np.concatenate([[0], np.cumsum(tokens.sentences_per_text, dtype=np.int64)])
    ]
    text_of_word = np.repeat(np.arange(len(texts), dtype=np.int32), np.diff(text_offsets))
    claims = None if claim is None else claim(Words(forms, word, spans, text_of_word))
    if claims is not None:
        sentence_offsets = claims.cut(sentence_offsets)

    lengths: npt.NDArray[np.signedinteger[Any]] = np.ones(len(word), dtype=np.int8)
    if lexicon.collocations is not None:
        scores = lexicon.collocations.scores(
            lexicon.collocations.ids(forms)[word], sentence_offsets
        )
        lengths = segment(lexicon.segmentation, *scores, sentence_offsets)
    if claims is not None:
        lengths = claims.joined(lengths)
    first = np.flatnonzero(lengths)
    form_of = word[first]
    text_of = text_of_word[first]
    n_words = lengths[first]
    row_of_form, kind_of_form = lexicon.look_up(forms)
    rows = row_of_form[form_of]
    kind = kind_of_form[form_of]
    joined = np.flatnonzero(n_words > 1)
    if claims is not None:
        is_whole = claims.is_whole[first]
        joined = joined[~is_whole[joined]]
        rows[is_whole] = -1
    if len(joined):
        words = np.array(forms, dtype=object)[word].tolist()
        ends = (first[joined] + n_words[joined]).tolist()
        collocations = map(
            "_".join, map(words.__getitem__, map(slice, first[joined].tolist(), ends))
        )
        rows[joined] = np.fromiter(
            map(lexicon.rows.get, collocations, repeat(-1)), dtype=np.int64, count=len(joined)
        )
        kind[joined] = TokenClass.WORD
    kind[(kind == TokenClass.WORD.value) & (rows < 0)] = TokenClass.OOV
    if claims is not None:
        kind[is_whole] = TokenClass.FOUND
    return Encoded(
        n_texts=len(texts),
        text_of=text_of,
        rows=ModelRows(rows),
        kind=kind,
        n_words=n_words,
        first_word=first,
        forms=forms,
        word=word,
        spans=spans,
        found=None if claims is None else Found(claims.type[first], claims.types),
        sentence_offsets=sentence_offsets,
    )
