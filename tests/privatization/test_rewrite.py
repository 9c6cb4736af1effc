"""A batch of texts on a toy vocabulary: every policy, every token accounted for."""

import numpy as np
import pytest

from lexveil.accounting.budgets import Action, Policy
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.noise.streams import stream
from lexveil.privatization.engine.batch import Rewritten
from lexveil.privatization.engine.plan import TokenPlan, plan_tokens
from lexveil.privatization.engine.worker import Components, rewrite
from lexveil.text.collocation_index import Collocations
from lexveil.text.encode import Encoded, Lexicon, encode

PERTURBED, KEPT, DROPPED, SAMPLED, *_ = Action

TOKENS = ["the", ",", "new_york", "cat", "dog", "is", ".", "ran_away_again"]
VECTORS = np.random.default_rng(2).standard_normal((len(TOKENS), 3)).astype(np.float32)
COLLOCATIONS = Collocations.build([["new"], ["york"]], np.array([5.0]), [["ran"], ["away"], ["again"]], np.array([9.0]))
LEXICON = Lexicon.build("gst", TOKENS, COLLOCATIONS)
TEXTS = ["The cat is, Zorblax.", "", "dog ran away again", "New York!"]


def done(policy: Policy, epsilon: float = 5.0, texts: list[str] = TEXTS, seed: int = 1) -> Rewritten:
    vocabulary = Vocabulary.of(TOKENS, VECTORS, policy)
    budgets = np.full(len(texts), epsilon)
    components = Components(LEXICON, vocabulary, Madlib(vocabulary.vectors))
    return rewrite(texts, planned(texts, vocabulary, policy), budgets, components, lambda i: stream(seed, str(i)))


def planned(texts: list[str], vocabulary: Vocabulary, policy: Policy) -> tuple[Encoded, TokenPlan]:
    encoded = encode(texts, LEXICON)
    return encoded, plan_tokens(encoded, vocabulary.number, policy)


def test_huge_epsilon_gives_the_text_back() -> None:
    out = done(Policy("perturb", "perturb", "keep"), epsilon=1e9)
    assert out.texts == ["the cat is, zorblax.", "", "dog ran away again", "new york!"]
    assert out.action.tolist() == [PERTURBED] * 4 + [KEPT] + [PERTURBED] * 4 + [KEPT]  # "!" has no vector
    assert out.out_words.tolist() == [1, 1, 1, 1, 1, 1, 1, 3, 2, 1]


@pytest.mark.parametrize(
    ("policy", "first", "actions"),
    [
        (Policy("keep", "keep", "keep"), "the cat is, zorblax.", [KEPT, PERTURBED, KEPT, KEPT, KEPT, KEPT]),
        (Policy("drop", "drop", "drop"), "cat", [DROPPED, PERTURBED, DROPPED, DROPPED, DROPPED, DROPPED]),
        (Policy("perturb", "drop", "drop"), "the cat is", [PERTURBED, PERTURBED, PERTURBED, DROPPED, DROPPED, DROPPED]),
    ],
)
def test_policies(policy: Policy, first: str, actions: list[int]) -> None:
    out = done(policy, epsilon=1e9)
    assert out.texts[0] == first
    assert out.action[:6].tolist() == actions
    assert ((out.token_epsilon > 0) == (out.action == PERTURBED)).all()
    assert ((out.rows >= 0) == np.isin(out.action, [PERTURBED, SAMPLED])).all()
    assert ((out.out_words == 0) == (out.action == DROPPED)).all()


def test_sampled_tokens_are_uniform_and_know_nothing() -> None:
    """20,000 unknown words: each of the 6 words of W within 6 standard errors of 1/6, whatever the unknown word."""
    for unknown in ("zorblax", "quux"):
        out = done(Policy("perturb", "keep", "sample"), texts=[" ".join([unknown] * 20_000)])
        assert (out.action == SAMPLED).all() and (out.token_epsilon == 0).all()
        share = np.bincount(out.rows, minlength=len(TOKENS)) / 20_000
        assert share[[1, 6]].tolist() == [0.0, 0.0]  # punctuation is not in W
        words = [0, 2, 3, 4, 5, 7]
        assert np.abs(share[words] - 1 / 6).max() < 6 * np.sqrt(1 / 6 * 5 / 6 / 20_000)


def test_words_never_turn_into_kept_punctuation() -> None:
    out = done(Policy("perturb", "keep", "sample"), epsilon=0.01, texts=["the cat is dog"] * 200)
    assert not {",", "."} & {TOKENS[row] for row in out.rows}
    free = done(Policy("perturb", "perturb", "sample"), epsilon=0.01, texts=["the cat is dog"] * 200)
    assert {",", "."} & {TOKENS[row] for row in free.rows}


def test_a_text_has_the_same_noise_alone_and_in_company() -> None:
    policy = Policy("perturb", "keep", "sample")
    together = done(policy, epsilon=0.5)
    vocabulary = Vocabulary.of(TOKENS, VECTORS, policy)
    components, text = Components(LEXICON, vocabulary, Madlib(vocabulary.vectors)), TEXTS[2:3]
    alone = rewrite(text, planned(text, vocabulary, policy), np.array([0.5]), components, lambda _: stream(1, "2"))
    assert alone.texts == together.texts[2:3]
