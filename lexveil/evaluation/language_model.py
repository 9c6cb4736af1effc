"""Perplexity: how surprising a text is to a language model.

A model gives a score to each text, the sum of its tokens' log probabilities. Tokens are the model's own, so that
perplexities can be compared between runs scored by one model, and not between models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from lexveil.errors import ParameterError
from lexveil.evaluation.kneser_ney import KneserNey, train
from lexveil.evaluation.registry import NEURAL, BackEnd
from lexveil.text.fast_tokenize import tokenize_texts
from lexveil.types import Floats, Ids

BLOCK = 2048  # texts at a time


@dataclass(frozen=True, slots=True)
class PerplexityScores:
    """What a language model says of n texts.

    Attributes:
        log_sum: (n,) natural log probability of the whole text.
        n_tokens: (n,) how many predictions that is the sum of, ends of sentences included where the model has them.
        n_unknown: (n,) tokens the model has no word for.
    """

    log_sum: Floats
    n_tokens: Ids
    n_unknown: Ids

    def perplexity(self) -> Floats:
        """exp(-log_sum / n_tokens) of each text, (n,); NaN where there is no token."""
        with np.errstate(invalid="ignore"):
            surprise: Floats = np.exp(-self.log_sum / np.where(self.n_tokens > 0, self.n_tokens, np.nan))
        return surprise

    def average_perplexity(self) -> float:
        """Mean of the perplexities of texts, as in CLMLDP Table 2; NaN without any token.

        One text of rare words can move it far.
        """
        each = self.perplexity()
        each = each[~np.isnan(each)]
        return float(each.mean()) if len(each) else float("nan")

    def corpus_perplexity(self) -> float:
        """Perplexity of all texts as one; NaN without any token."""
        n_tokens = int(self.n_tokens.sum())
        return float(np.exp(-self.log_sum.sum() / n_tokens)) if n_tokens else float("nan")


class LanguageModel(Protocol):
    """Scores texts."""

    @property
    def name(self) -> str:
        """Its name in parameters and reports."""

    def score(self, texts: Sequence[str]) -> PerplexityScores:
        """Score each of n texts; ``n_tokens`` is 0 where there is nothing to predict."""


class NgramModel:
    """The default: Kneser-Ney over the words and sentences of the project's tokenizer.

    Attributes:
        model: trained on word numbers.
        words: (V,) normal form by number.
    """

    name = "kneser_ney"

    def __init__(self, model: KneserNey, words: Sequence[str]) -> None:
        if len(words) != model.n_words:
            raise ParameterError(
                f"the language model was trained on {model.n_words:,} words and given the names of {len(words):,}; "
                "give it the table of words its sentences were numbered with"
            )
        self.model = model
        self._number = {word: number for number, word in enumerate(words)}

    def score(self, texts: Sequence[str]) -> PerplexityScores:
        """Score each text sentence by sentence, in blocks of texts; every sentence's end is one prediction."""
        blocks = [self._score(texts[start : start + BLOCK]) for start in range(0, max(len(texts), 1), BLOCK)]
        return PerplexityScores(
            np.concatenate([one.log_sum for one in blocks]),
            np.concatenate([one.n_tokens for one in blocks]),
            np.concatenate([one.n_unknown for one in blocks]),
        )

    def _score(self, texts: Sequence[str]) -> PerplexityScores:
        tokens = tokenize_texts(pa.array(texts, pa.large_string()))
        get = self._number.get
        number = np.array([get(word, -1) for word in tokens.words.to_pylist()], dtype=np.int64)
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


def _kneser_ney(ids: Ids, offsets: Ids, words: Sequence[str]) -> LanguageModel:
    """NgramModel, trained on sentences of word numbers as ``kneser_ney.train`` takes them, and the words' names."""
    return NgramModel(train(ids, offsets, len(words)), words)


def _gpt2(*_: object, folder: str) -> LanguageModel:
    """Gpt2, from the folder of its model; the corpus may be given, so that whoever makes one need not ask which."""
    from lexveil.evaluation.gpt2 import Gpt2

    return Gpt2(folder)


# Each is made from sentences and words, as _kneser_ney takes them.
LANGUAGE_MODELS: dict[str, BackEnd[LanguageModel]] = {
    "kneser_ney": BackEnd(_kneser_ney),
    "gpt2": BackEnd(_gpt2, NEURAL, "gpt2_model"),
}
