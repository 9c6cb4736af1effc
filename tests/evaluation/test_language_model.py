"""Texts to perplexities; optional models through stand-ins, for the libraries are not installed."""

from __future__ import annotations

import numpy as np
import pytest

from lexveil.errors import ParameterError
from lexveil.evaluation import language_model as module
from lexveil.evaluation.base import PerplexityScores
from lexveil.evaluation.kneser_ney import train
from lexveil.evaluation.language_model import NgramModel

WORDS = ["the", "cat", "sat", "."]
# the cat sat . | the cat .
IDS, OFFSETS = np.array([0, 1, 2, 3, 0, 1, 3]), np.array([0, 4, 7])


def toy() -> NgramModel:
    return NgramModel(train(IDS, OFFSETS, len(WORDS)), WORDS)


def test_texts_are_cut_into_sentences_and_summed() -> None:
    """Two sentences of 4 and 3 tokens in one text, each with its end; nothing; one unknown word."""
    model = toy()
    scores = model.score(["The cat sat.\nThe cat.", "", "The dog."])
    assert scores.n_tokens.tolist() == [9, 0, 4]
    assert scores.n_unknown.tolist() == [0, 0, 1]
    own = model.model.log_probability(IDS, OFFSETS)
    unknown = model.model.log_probability(np.array([0, -1, 3]), np.array([0, 3]))
    assert scores.log_sum == pytest.approx([own.sum(), 0, unknown.sum()])


def test_a_text_in_the_order_of_the_corpus_is_less_surprising() -> None:
    model = toy()
    own, mixed, unknown = model.score(["the cat sat.", "sat the. cat", "zebras zebras zebras."]).perplexity()
    assert 1 < own < min(mixed, unknown)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["the cat sat. The dog", "", "cat", "zebra the", "sat."]
    whole = toy().score(texts)
    monkeypatch.setattr(module, "BLOCK", 2)
    parts = toy().score(texts)
    assert np.array_equal(whole.log_sum, parts.log_sum)
    assert np.array_equal(whole.n_tokens, parts.n_tokens) and np.array_equal(whole.n_unknown, parts.n_unknown)


def test_no_texts() -> None:
    scores = toy().score([])
    assert len(scores.log_sum) == 0 and np.isnan(scores.corpus_perplexity()) and np.isnan(scores.average_perplexity())


def test_perplexities_by_hand() -> None:
    """Two tokens of probability 1/4, one of 1/2, and a text without tokens."""
    scores = PerplexityScores(np.log([1 / 16, 1 / 2, 1.0]), np.array([2, 1, 0]), np.zeros(3, dtype=np.int64))
    assert scores.perplexity()[:2] == pytest.approx([4, 2]) and np.isnan(scores.perplexity()[2])
    assert scores.average_perplexity() == pytest.approx(3)
    assert scores.corpus_perplexity() == pytest.approx(32 ** (1 / 3))


def test_words_of_another_table_are_refused() -> None:
    with pytest.raises(ParameterError, match="trained on 4 words and given the names of 3"):
        NgramModel(toy().model, WORDS[:3])
