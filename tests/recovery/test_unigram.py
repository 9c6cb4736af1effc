"""Unigram adversaries against the whole table of toys, and estimated ones against the most that can
be got."""

import numpy as np
import pytest

from lexveil.base.errors import ParameterError
from lexveil.core.embeddings.neighborhoods import nearest_words
from lexveil.core.mechanisms.diffractor_geometric import DiffractorGeometric
from lexveil.core.mechanisms.diffractor_tem import DiffractorTem
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.rank_remap import RankRemap
from lexveil.core.mechanisms.tem import Tem
from lexveil.core.mechanisms.truncated_gumbel import TruncatedGumbel
from lexveil.core.mechanisms.vickrey import Vickrey
from lexveil.readers import estimate, tem
from lexveil.readers.adversary import Ladder
from lexveil.readers.estimate import EstimatedAdversary
from lexveil.readers.unigram import build_adversary
from tests.recovery.oracles import TableAdversary

WORDS = 60
DRAWS = 1000
PRIOR = 1 / np.arange(1, WORDS + 1) / (1 / np.arange(1, WORDS + 1)).sum()
EVERY = np.arange(WORDS)


def random_prior(n, seed=0):
    weights = np.random.default_rng(seed).dirichlet(np.full(n, 0.3)) + 1e-9
    return weights / weights.sum()


def tem_of(n, p=3):
    vectors = np.random.default_rng(n).standard_normal((n, p)).astype(np.float32)
    vectors[n // 2] = vectors[0]  # two words that nothing tells apart but their frequency
    return Tem(vectors)


TOYS = [
    *(tem_of(n, p) for n, p in ((2, 3), (12, 3), (120, 5))),
    *(
        kind(
            np.array(
                [np.random.default_rng([n, number]).permutation(n) for number in range(n_lists)]
            )
        )
        for kind in (DiffractorGeometric, DiffractorTem)
        for n, n_lists in ((1, 1), (13, 2), (150, 1), (150, 3))
    ),
]


@pytest.mark.parametrize(
    "mechanism", TOYS, ids=lambda mechanism: f"{mechanism.name}-{mechanism.size}"
)
@pytest.mark.parametrize("seed", [0, 1])
def test_candidates_are_those_of_the_whole_table(mechanism, seed):
    prior = random_prior(mechanism.size, seed)
    outputs = np.random.default_rng(seed).permutation(mechanism.size)
    for epsilon in (0.05, 0.3, 1.0, 4.0, 30.0):
        budgets = np.full(len(outputs), epsilon)
        found = build_adversary(mechanism, prior, (epsilon, epsilon)).candidates(
            outputs, budgets, 6
        )
        table = TableAdversary(mechanism, prior).candidates(outputs, budgets, 6)
        np.testing.assert_allclose(found.log_joint, table.log_joint, rtol=0, atol=1e-9)
        # Words of one score up to rounding may change places.
        clear = np.diff(table.log_joint, axis=1, append=-np.inf) < -1e-9
        clear[:, 1:] &= clear[:, :-1]
        np.testing.assert_array_equal(found.ids[clear], table.ids[clear])


def test_sums_that_are_estimated_hardly_change_a_guess(monkeypatch):
    mechanism = Tem(np.random.default_rng(1).normal(size=(2000, 20)).astype(np.float32))
    prior = 1 / np.arange(1.0, 2001)
    outputs = np.arange(0, 2000, 7)
    epsilon = np.full(286, 3.0)
    exact = tem.TemAdversary(mechanism, prior / prior.sum(), (3.0, 3.0))
    monkeypatch.setattr(tem, "SMALL_VOCABULARY", 100)
    estimated = tem.TemAdversary(mechanism, prior / prior.sum(), (3.0, 3.0))
    assert 0 < np.abs(exact.bias - estimated.bias).max() < 0.5
    assert np.mean(exact.guess(outputs, epsilon) == estimated.guess(outputs, epsilon)) > 0.95


def test_a_ladder_interpolates_and_refuses_what_is_outside():
    ladder = Ladder((0.5, 8.0), 2**0.5)
    asked = np.array([2.0, 8.0, 5.0])
    assert len(ladder.rungs) == 9 and ladder.rungs[[0, -1]].tolist() == [0.5, 8.0]
    _, first, weights = ladder.weights(asked)
    values = np.log(ladder.rungs) ** 3  # a polynomial that four rungs know
    found = (values[first[:, None] + np.arange(4)] * weights).sum(axis=1)
    assert found == pytest.approx(np.log(asked) ** 3) and sorted(weights[0].tolist()) == [
        0,
        0,
        0,
        1,
    ]
    with pytest.raises(ParameterError, match=r"from 0.5 to 8 .* 0.4"):
        ladder.weights(np.array([0.4]))
    with pytest.raises(ParameterError, match="lowest"):
        Ladder((2.0, 1.0), 2.0)
    assert Ladder((2.0, 2.0), 2.0).weights(np.array([2.0])).weights.tolist() == [[1.0]]


def toy_vectors():
    rng = np.random.default_rng(4)
    return (rng.standard_normal((WORDS, 3)) * np.exp(rng.normal(0, 0.4, (WORDS, 1)))).astype(
        np.float32
    )


def channel(mechanism, epsilon):
    ids = np.repeat(EVERY, DRAWS)
    budgets = np.full(WORDS * DRAWS, epsilon)
    outputs = mechanism.replace(ids, budgets, mechanism.noise(budgets, np.random.default_rng(2)))
    return np.bincount(ids * WORDS + outputs, minlength=WORDS * WORDS).reshape(WORDS, WORDS) / DRAWS


@pytest.mark.parametrize(
    ("build", "lost"),
    [
        (Madlib, 0.04),
        (Vickrey, 0.08),
        (lambda vectors: RankRemap(Madlib(vectors), enabled=True), 0.04),
        (Tem, 0.04),
    ],
    ids=["madlib", "vickrey", "rank_remap", "tem"],
)
def test_an_estimated_adversary_gets_back_nearly_all_that_can_be_got(build, lost, monkeypatch):
    """The whole table as drawn knows a little more than any adversary can; one that takes outputs
    as they are does far worse at the smaller epsilon, where noise hides most words."""
    monkeypatch.setattr(estimate, "DRAWS", 2048)
    mechanism = build(toy_vectors())
    adversary = EstimatedAdversary(mechanism, PRIOR, (2.0, 8.0))
    for epsilon in (2.0, 8.0):
        table = channel(mechanism, epsilon)
        guess = adversary.guess(EVERY, np.full(WORDS, epsilon))
        recovered = (PRIOR[guess] * table[guess, EVERY]).sum()
        assert recovered > (PRIOR[:, None] * table).max(axis=0).sum() - lost
        assert recovered > (PRIOR * table.diagonal()).sum()


def test_an_estimated_adversary_is_the_same_every_time_and_for_every_batch():
    first, second = (build_adversary(Madlib(toy_vectors()), PRIOR, (1.0, 9.0)) for _ in range(2))
    outputs = np.tile(EVERY, 5)
    epsilon = np.repeat([1.0, 1.7, 3.0, 5.0, 9.0], WORDS)
    whole = first.candidates(outputs, epsilon, 4)
    again = second.candidates(outputs[::-1], epsilon[::-1], 4)
    np.testing.assert_array_equal(whole.ids, again.ids[::-1])
    assert np.all(np.diff(whole.log_joint, axis=1) <= 0) and np.all(
        np.diff(np.sort(whole.ids)) != 0
    )
    np.testing.assert_array_equal(whole.ids[:, 0], first.guess(outputs, epsilon))
    assert first.candidates(outputs[:1], epsilon[:1], 99).ids.shape == (1, WORDS)


def test_near_words_are_those_of_all_words_of_lists_that_exist_or_of_some(
    monkeypatch,
):
    """The existing lists change no bit."""
    vectors = np.random.default_rng(5).normal(size=(300, 4)).astype(np.float32)
    n = 300
    distances = np.linalg.norm(vectors[:, None].astype(np.float64) - vectors, axis=2)
    np.fill_diagonal(distances, np.inf)
    mechanism = Madlib(vectors)
    near = estimate.near_of(mechanism)
    np.testing.assert_allclose(
        near, np.sort(distances)[:, [0, estimate.NEIGHBORS - 1]].T, rtol=1e-5
    )
    assert np.array_equal(
        estimate.near_of(mechanism, lambda: nearest_words(vectors, np.arange(120))), near
    )
    monkeypatch.setattr(estimate, "AMONG", 100)
    chosen = np.sort(np.random.default_rng(estimate.PUBLIC_SEED).choice(n, 100, replace=False))
    some = np.sort(distances[:, chosen])[:, [0, estimate.NEIGHBORS - 1]].T
    np.testing.assert_allclose(estimate.near_of(mechanism), some, rtol=1e-5)


def test_refusals_name_what_is_wrong():
    with pytest.raises(ParameterError, match="truncated_gumbel"):
        build_adversary(TruncatedGumbel(toy_vectors()), PRIOR, (1e-3, 1e-3))
    with pytest.raises(ParameterError, match="vectors"):
        EstimatedAdversary(DiffractorGeometric(np.arange(3)), np.full(3, 1 / 3), (1.0, 1.0))
