"""The estimated reader: what it gets back against the most that can be got, of toys whose channel is known."""

import numpy as np
import pytest

from lexveil.errors import ParameterError
from lexveil.mechanisms.diffractor_geometric import DiffractorGeometric
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.rank_remap import RankRemap
from lexveil.mechanisms.tem import Tem
from lexveil.mechanisms.truncated_gumbel import TruncatedGumbel
from lexveil.mechanisms.vickrey import Vickrey
from lexveil.recovery.by_word import build_adversary
from lexveil.recovery.estimate import EstimatedAdversary, discriminate

WORDS, DRAWS = 60, 1000
PRIOR = 1 / np.arange(1, WORDS + 1)
PRIOR /= PRIOR.sum()


def toy() -> np.ndarray:
    rng = np.random.default_rng(4)
    return (rng.standard_normal((WORDS, 3)) * np.exp(rng.normal(0, 0.4, (WORDS, 1)))).astype(np.float32)


def channel(mechanism, epsilon: float) -> np.ndarray:
    ids = np.repeat(np.arange(WORDS), DRAWS)
    budgets = np.full(len(ids), epsilon)
    outputs = mechanism.replace(ids, budgets, mechanism.noise(budgets, np.random.default_rng(2)))
    return np.bincount(ids * WORDS + outputs, minlength=WORDS * WORDS).reshape(WORDS, WORDS) / DRAWS


@pytest.mark.parametrize(
    ("mechanism", "lost"),
    [(Madlib, 0.04), (Vickrey, 0.08), (lambda v: RankRemap(Madlib(v), enabled=True), 0.04), (Tem, 0.04)],
    ids=["madlib", "vickrey", "rank_remap", "tem"],
)
def test_it_gets_back_nearly_all_that_can_be_got(mechanism, lost: float) -> None:
    """The whole table as drawn knows a little more than any reader can; a reader that takes outputs as they are does
    far worse at the smaller epsilon, where noise hides most words."""
    made, outputs = mechanism(toy()), np.arange(WORDS)
    reader = EstimatedAdversary(made, PRIOR, (2.0, 8.0))
    for epsilon in (2.0, 8.0):
        table = channel(made, epsilon)
        guess = reader.guess(outputs, np.full(WORDS, epsilon))
        got = (PRIOR[guess] * table[guess, outputs]).sum()
        assert got > (PRIOR[:, None] * table).max(axis=0).sum() - lost
        assert got > (PRIOR * table.diagonal()).sum()


def test_the_reader_is_the_same_every_time_and_for_every_batch() -> None:
    first, second = (build_adversary(Madlib(toy()), PRIOR, (1.0, 9.0)) for _ in range(2))
    outputs, epsilon = np.tile(np.arange(WORDS), 5), np.repeat([1.0, 1.7, 3.0, 5.0, 9.0], WORDS)
    whole = first.candidates(outputs, epsilon, 4)
    again = second.candidates(outputs[::-1], epsilon[::-1], 4)
    np.testing.assert_array_equal(whole.ids, again.ids[::-1])
    assert np.all(np.diff(whole.log_joint, axis=1) <= 0) and np.all(
        np.sort(whole.ids)[:, 1:] != np.sort(whole.ids)[:, :-1]
    )
    np.testing.assert_array_equal(whole.ids[:, 0], first.guess(outputs, epsilon))
    assert first.candidates(outputs[:1], epsilon[:1], 99).ids.shape == (1, WORDS)


def test_where_nothing_changes_the_output_is_the_guess() -> None:
    outputs = np.arange(WORDS)
    assert (
        build_adversary(Madlib(toy()), PRIOR, (1e6, 1e6)).guess(outputs, np.full(WORDS, 1e6)).tolist()
        == outputs.tolist()
    )
    assert build_adversary(Madlib(toy()[:1]), np.ones(1), (1.0, 1.0)).guess(
        np.zeros(1, np.int64), np.ones(1)
    ).tolist() == [0]


def test_slopes_are_those_of_two_normal_densities() -> None:
    """N(1, 1) against N(0, 1): ln of the ratio is x - 1/2."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(1, 1, 20_000), rng.normal(0, 1, 60_000)])
    slopes = discriminate(x[:, None], np.arange(80_000) < 20_000)
    assert slopes[0] == pytest.approx(1, abs=0.05)  # five standard errors


def test_refusals_name_what_is_wrong() -> None:
    with pytest.raises(ParameterError, match="truncated_gumbel"):
        build_adversary(TruncatedGumbel(toy()), PRIOR, (1e-3, 1e-3))
    with pytest.raises(ParameterError, match="vectors"):
        EstimatedAdversary(DiffractorGeometric(np.arange(3)), np.full(3, 1 / 3), (1.0, 1.0))
