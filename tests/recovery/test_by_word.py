"""Readers by the word against the whole table of toys, where both are exact."""

import numpy as np
import pytest

from lexveil.embeddings.exact_search import distance_rows
from lexveil.errors import ParameterError
from lexveil.mechanisms.diffractor_geometric import DiffractorGeometric
from lexveil.mechanisms.diffractor_tem import DiffractorTem
from lexveil.mechanisms.tem import Tem
from lexveil.recovery.adversary import TableAdversary
from lexveil.recovery.by_word import build_adversary
from lexveil.recovery.ladder import Ladder
from lexveil.recovery.tem import log_normalizers

EPSILONS = (0.05, 0.3, 1.0, 4.0, 30.0)


def prior(n: int, seed: int = 0) -> np.ndarray:
    weights = np.random.default_rng(seed).dirichlet(np.full(n, 0.3)) + 1e-9
    return weights / weights.sum()


def tem(n: int, p: int = 3) -> Tem:
    vectors = np.random.default_rng(n).standard_normal((n, p)).astype(np.float32)
    vectors[n // 2] = vectors[0]  # two words that nothing tells apart but their frequency
    return Tem(vectors)


def on_lists(kind: type, n: int, n_lists: int):
    rng = np.random.default_rng(n)
    return kind(np.array([rng.permutation(n) for _ in range(n_lists)]))


TOYS = [
    tem(2),
    tem(12),
    tem(120, 5),
    *(
        on_lists(kind, n, n_lists)
        for kind in (DiffractorGeometric, DiffractorTem)
        for n, n_lists in ((1, 1), (13, 2), (150, 1), (150, 3))
    ),
]


@pytest.mark.parametrize("mechanism", TOYS, ids=lambda m: f"{m.name}-{m.size}")
@pytest.mark.parametrize("seed", [0, 1])
def test_candidates_are_those_of_the_whole_table(mechanism, seed: int) -> None:
    weights = prior(mechanism.size, seed)
    outputs, epsilon = np.tile(np.arange(mechanism.size), len(EPSILONS)), np.repeat(EPSILONS, mechanism.size)
    order = np.random.default_rng(seed).permutation(len(outputs))
    outputs, epsilon = outputs[order], epsilon[order]
    found = build_adversary(mechanism, weights, (0.01, 50.0), EPSILONS).candidates(outputs, epsilon, 6)
    table = TableAdversary(mechanism, weights).candidates(outputs, epsilon, 6)
    np.testing.assert_allclose(found.log_joint, table.log_joint, rtol=0, atol=1e-9)
    # Words of one score up to rounding may change places.
    clear = np.diff(table.log_joint, axis=1, append=-np.inf) < -1e-9
    clear[:, 1:] &= clear[:, :-1]
    np.testing.assert_array_equal(found.ids[clear], table.ids[clear])


def test_equally_likely_words_go_to_the_first() -> None:
    mechanism = tem(12)
    even = np.full(12, 1 / 12)
    found = build_adversary(mechanism, even, (1.0, 1.0)).guess(np.array([0, 6]), np.ones(2))
    assert found.tolist() == [0, 0]


def test_between_the_rungs_the_error_is_small_and_the_guesses_stay() -> None:
    mechanism, weights = tem(120, 5), prior(120)
    epsilon = np.geomspace(0.1, 40.0, 1200)
    outputs = np.arange(1200) % 120
    found = build_adversary(mechanism, weights, (0.1, 40.0)).candidates(outputs, epsilon, 1)
    table = TableAdversary(mechanism, weights).candidates(outputs, epsilon, 1)
    assert np.abs(found.log_joint - table.log_joint).max() < 5e-3
    assert (found.ids == table.ids).mean() > 0.99


def test_sums_over_all_pairs_in_float32_are_those_of_float64() -> None:
    """More words than are summed in float64, in blocks that do not come out even, with two words all but equal."""
    vectors = np.random.default_rng(1).standard_normal((2200, 8)).astype(np.float32)
    vectors[2100] = vectors[5] * np.float32(1 + 1e-5)
    mechanism, epsilon = Tem(vectors), np.array([0.5, 4.0, 20.0, 200.0])
    rows = np.array([0, 5, 1023, 1024, 2100, 2199])
    limit = mechanism.gamma(np.array([2.0]))[0]
    weights = np.exp(-np.minimum(epsilon[:, None, None] / 2 * distance_rows(vectors, rows), limit))
    np.testing.assert_allclose(
        log_normalizers(mechanism, epsilon)[:, rows], np.log(weights.sum(axis=2)), rtol=0, atol=5e-6
    )
    outputs, budgets = np.repeat(rows, 4), np.tile(epsilon, 6)
    weights = prior(2200)
    found = build_adversary(mechanism, weights, (0.5, 200.0), epsilon).candidates(outputs, budgets, 3)
    table = TableAdversary(mechanism, weights).candidates(outputs, budgets, 3)
    np.testing.assert_allclose(found.log_joint, table.log_joint, rtol=0, atol=1e-5)


def test_a_ladder_holds_what_is_asked_for_and_refuses_what_is_outside() -> None:
    ladder = Ladder((0.5, 8.0), 2**0.5, (1.0, 3.0))
    assert ladder.rungs[0] == 0.5 and ladder.rungs[-1] == 8.0 and {1.0, 3.0} <= set(ladder.rungs.tolist())
    first, weights = ladder.weights(np.array([3.0, 8.0, 5.0]))
    values = np.log(ladder.rungs) ** 3  # a polynomial that four rungs know
    got = (values[first[:, None] + np.arange(4)] * weights).sum(axis=1)
    np.testing.assert_allclose(got, np.log([3.0, 8.0, 5.0]) ** 3)
    assert sorted(weights[0].tolist()) == [0, 0, 0, 1]
    with pytest.raises(ParameterError, match=r"from 0.5 to 8 .* 0.4"):
        ladder.weights(np.array([0.4]))
    with pytest.raises(ParameterError, match="lowest"):
        Ladder((2.0, 1.0), 2.0)
    assert Ladder((2.0, 2.0), 2.0).weights(np.array([2.0]))[1].tolist() == [[1.0]]
