"""Texts to perplexities; optional models through stand-ins, for the libraries are not installed."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tasks.errors import ParameterError
from tasks.evaluation import language_model as module
from tasks.evaluation.kneser_ney import train
from tasks.evaluation.language_model import Gpt2, NgramModel, Scores

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
    scores = Scores(np.log([1 / 16, 1 / 2, 1.0]), np.array([2, 1, 0]), np.zeros(3, dtype=np.int64))
    assert scores.perplexity()[:2] == pytest.approx([4, 2]) and np.isnan(scores.perplexity()[2])
    assert scores.average_perplexity() == pytest.approx(3)
    assert scores.corpus_perplexity() == pytest.approx(32 ** (1 / 3))


def test_words_of_another_table_are_refused() -> None:
    with pytest.raises(ParameterError, match="trained on 4 words and given the names of 3"):
        NgramModel(toy().model, WORDS[:3])


def test_gpt2_without_its_libraries_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)  # as if it were not there
    with pytest.raises(ParameterError, match=r"gpt2 needs the package of transformers.*--extra neural"):
        Gpt2("anywhere")


class Row(np.ndarray):
    def double(self):
        return self.astype(np.float64)


class Logits:
    """Scores of vocabulary 0 to 4: the token after t is t + 1 with weight 4, each other with weight 1."""

    seen: list[list[int]]

    def __init__(self) -> None:
        self.seen = []
        self.config = SimpleNamespace(max_position_embeddings=4, bos_token_id=0)

    def eval(self):
        return self

    def __call__(self, ids):
        self.seen.append(ids[0].tolist())
        logits = np.zeros((1, ids.shape[1], 5))
        for at, token in enumerate(ids[0]):
            logits[0, at, (token + 1) % 5] = np.log(4)
        return SimpleNamespace(logits=logits.view(Row))


class Inference:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def stand_in(monkeypatch: pytest.MonkeyPatch, model: Logits) -> None:
    torch = SimpleNamespace(
        inference_mode=Inference,
        tensor=np.array,
        arange=np.arange,
        log_softmax=lambda x, dim: x - np.log(np.exp(x).sum(axis=dim, keepdims=True)),
    )

    def tokenizer(text):
        return {"input_ids": [int(digit) for digit in text]}

    def from_pretrained(kind):
        def make(folder, local_files_only):
            assert local_files_only
            if folder != "model":
                raise OSError
            return kind

        return SimpleNamespace(from_pretrained=make)

    transformers = SimpleNamespace(
        AutoTokenizer=from_pretrained(tokenizer), AutoModelForCausalLM=from_pretrained(model)
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "transformers", transformers)


def test_gpt2_reads_windows_that_begin_with_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of 3 tokens and the mark 0; five tokens are 3 + 2. Hits have 4/8, misses 1/8."""
    stand_in(monkeypatch, model := Logits())
    scores = Gpt2("model").score(["12312", "", "3"])
    assert model.seen == [[0, 1, 2], [0, 1], [0]]
    assert scores.n_tokens.tolist() == [5, 0, 1]
    assert scores.log_sum == pytest.approx([5 * np.log(1 / 2), 0, np.log(1 / 8)])


def test_gpt2_of_a_wrong_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, Logits())
    with pytest.raises(ParameterError, match=r"elsewhere: no causal language model.*config\.json"):
        Gpt2("elsewhere")
