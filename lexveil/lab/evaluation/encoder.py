"""Default text encoder: the TF-IDF weighted mean of the embedding vectors of a text's words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from lexveil.base.types import Floats, Vectors
from lexveil.core.text.encode import Lexicon, encode

TEXTS_AT_A_TIME = 4096  # texts that are encoded at a time


class TfidfMean:
    """Default text encoder: mean of the embedding vectors of a text's known words, each weighted by
    its rarity among texts.

    The weight of a word is tf · idf, where tf is the number of its occurrences in the text and idf
    = ln((1 + n) / (1 + df)) + 1, the smoothed idf of scikit-learn. n is the number of texts given
    to ``fit``, and df is the number of those texts that contain the word. ``fit`` gets the clean
    texts, so that original and privatized texts have the same weights.

    The encoder ignores the order of words. If the encoder uses the mechanism's own embedding, it
    averages the same vectors to which the mechanism added noise. The encoder therefore measures how
    much of a bag of words is preserved, and its figures cannot be compared with those of papers
    that use a sentence encoder.

    Attributes:
        idf: (V,) float64, the idf weight of each word.
        vectors: (V, p) float32, the embedding vector of each word.
    """

    name = "tfidf_mean"

    def __init__(self, words: Sequence[str], vectors: Vectors, idf: Floats) -> None:
        self.vectors = vectors
        self.idf = idf
        self._lexicon = Lexicon.build("word", words, None)

    @classmethod
    def fit(cls, words: Sequence[str], vectors: Vectors, texts: Sequence[str]) -> TfidfMean:
        """Build an encoder with idf weights computed from ``texts``.

        Args:
            words: the V words of the embedding, as normal forms.
            vectors: (V, p) float32, the vector of each word.
            texts: the clean texts.
        """
        encoder = cls(words, vectors, np.ones(len(words)))
        n_with = np.zeros(len(words), dtype=np.int64)
        for start in range(0, len(texts), TEXTS_AT_A_TIME):
            n_with += np.bincount(
                encoder._counts(texts[start : start + TEXTS_AT_A_TIME]).indices,
                minlength=len(words),
            )
        encoder.idf = np.log((1 + len(texts)) / (1 + n_with)) + 1
        return encoder

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode each text as a weighted mean vector; texts are processed in blocks."""
        encoded = np.zeros((len(texts), self.vectors.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_AT_A_TIME):
            # The weights have the vectors' type, because a product of two types would copy all
            # vectors for every block.
            weights = (self._counts(texts[start : start + TEXTS_AT_A_TIME]) * self.idf).astype(
                np.float32
            )
            total = weights.sum(axis=1)
            encoded[start : start + TEXTS_AT_A_TIME] = (
                weights @ self.vectors / np.where(total > 0, total, 1)[:, None]
            )
        return encoded

    def _counts(self, texts: Sequence[str]) -> csr_array:
        """Return the matrix (n, V) of how often each word occurs in each text."""
        tokens = encode(texts, self._lexicon)
        known = tokens.rows >= 0
        ones = np.ones(int(known.sum()))
        shape = (len(texts), len(self.vectors))
        counts = csr_array((ones, (tokens.text_of[known], tokens.rows[known])), shape=shape)
        counts.sum_duplicates()
        return counts
