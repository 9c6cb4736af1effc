"""Perplexity: how surprising a text is to a language model.

A model scores each text by the sum of its tokens' log probabilities. Each model has its own tokens,
so perplexities can be compared between runs that the same model scored, but not between models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lexveil.base.errors import ParameterError
from lexveil.base.types import Ids
from lexveil.core.language_models.base import PerplexityScores
from lexveil.core.language_models.kneser_ney import BigramModel, KneserNey
from lexveil.core.text.encode import tokenize

TEXTS_AT_A_TIME = 2048  # texts per block


class NgramModel:
    """Default n-gram language model: Kneser-Ney over the words and sentences of the project's
    tokenizer.

    Attributes:
        model: model trained on word numbers.
    """

    name = "kneser_ney"

    def __init__(self, model: KneserNey, words: Sequence[str]) -> None:
        if len(words) != model.n_words:
            raise ParameterError(
                f"the language model was trained on {model.n_words:,} words and given the names "
                f"of {len(words):,}; use the table of words from which its sentences were numbered"
            )
        self.model = model
        self._number = {word: number for number, word in enumerate(words)}

    def numbers(self, words: Iterable[str]) -> Ids:
        """Return the word number of each of n words, (n,); -1 for a word that the model does not
        know.
        """
        get = self._number.get
        return np.array([get(word, -1) for word in words], dtype=np.int64)

    def bigrams(self) -> BigramModel:
        """Return the bigram part of the model, which uses one word of context."""
        return self.model.bigrams()

    def score(self, texts: Sequence[str]) -> PerplexityScores:
        """Score each text by its log probability, sentence by sentence. The end of every sentence
        counts as one prediction.
        """
        blocks = [
            self._score(texts[start : start + TEXTS_AT_A_TIME])
            for start in range(0, max(len(texts), 1), TEXTS_AT_A_TIME)
        ]
        return PerplexityScores(
            np.concatenate([block.log_sum for block in blocks]),
            np.concatenate([block.n_tokens for block in blocks]),
            np.concatenate([block.n_unknown for block in blocks]),
        )

    def _score(self, texts: Sequence[str]) -> PerplexityScores:
        tokens = tokenize(texts)
        number = self.numbers(tokens.forms)
        ids = number[tokens.ids] if len(number) else np.zeros(0, dtype=np.int64)
        sizes = tokens.sentence_sizes.astype(np.int64)
        text_of = np.repeat(np.arange(len(texts)), tokens.sentences_per_text)
        log_p = self.model.log_probability(ids, np.concatenate([[0], np.cumsum(sizes)]))
        n_texts = len(texts)
        return PerplexityScores(
            np.bincount(np.repeat(text_of, sizes + 1), log_p, n_texts).astype(np.float64),
            np.bincount(text_of, sizes + 1, n_texts).astype(np.int64),
            np.bincount(np.repeat(text_of, sizes)[ids < 0], minlength=n_texts),
        )
