"""What the reader gets back of a toy vocabulary, against sums over its whole table."""

import numpy as np
import pytest

from lexveil.mechanisms.tem import Tem
from lexveil.recovery.adversary import TableAdversary
from lexveil.recovery.bands import BANDS, bands_of, prior_of
from lexveil.recovery.shares import Sample, Share, expected

COUNTS = np.array([500, 200, 40, 30, 20, 9, 5, 3, 2, 1])


@pytest.fixture
def toy() -> Tem:
    return Tem(np.random.default_rng(3).normal(size=(len(COUNTS), 3)).astype(np.float32))


def test_bands_hold_most_occurrences_first() -> None:
    is_function = np.arange(10) < 2
    bands = bands_of(COUNTS, is_function)
    assert [BANDS[band] for band in bands] == [
        "function", "function", "frequent", "frequent", "middle", "middle", "middle", "rare", "rare", "rare",
    ]  # fmt: skip
    assert bands_of(COUNTS[::-1], is_function[::-1]).tolist() == bands[::-1].tolist()
    assert prior_of(COUNTS).sum() == pytest.approx(1) and prior_of(np.array([0, 0])).min() > 0


def test_the_guess_is_the_likeliest_word(toy: Tem) -> None:
    prior = prior_of(COUNTS)
    joint = prior[:, None] * np.exp(toy.log_pmf(np.arange(10), np.full(10, 1.5)))
    reader = TableAdversary(toy, prior)
    outputs = np.arange(10)
    assert reader.guess(outputs, np.full(10, 1.5)).tolist() == joint.argmax(axis=0).tolist()
    found = reader.candidates(outputs, np.full(10, 1.5), 20)
    assert found.ids.shape == (10, 10) and np.all(np.diff(found.log_joint, axis=1) <= 0)
    np.testing.assert_allclose(found.log_joint, np.log(np.take_along_axis(joint.T, found.ids, axis=1)))


def test_what_is_expected_is_the_sum_over_the_table(toy: Tem) -> None:
    prior, bands = prior_of(COUNTS), bands_of(COUNTS, np.arange(10) < 2)
    rng = np.random.default_rng(1)
    found = expected(toy, TableAdversary(toy, prior), Sample.draw(prior, bands, rng, 20_000), 3.0, rng)
    law = np.exp(toy.log_pmf(np.arange(10), np.full(10, 3.0)))
    guess = (prior[:, None] * law).argmax(axis=0)
    recovered = np.array([law[word, guess == word].sum() for word in range(10)])
    assert found.overall(found.recovered) == pytest.approx((prior * law.T).max(axis=1).sum(), abs=0.01)
    for number, band in enumerate(BANDS):
        chosen = bands == number
        wanted = (prior * recovered)[chosen].sum() / prior[chosen].sum()
        share = found.recovered[band]
        # Five standard errors: 1 in 3 million.
        assert abs(share.share - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / share.n) + 1e-9
        unchanged = (prior * law.diagonal())[chosen].sum() / prior[chosen].sum()
        assert found.unchanged[band].share == pytest.approx(unchanged, abs=0.02)


def test_an_interval_holds_its_share_and_none_says_nothing() -> None:
    assert Share.of(0, 0) == Share(0, 0.0, 0.0, 1.0)
    for right in range(6):
        share = Share.of(right, 5)
        assert 0 <= share.low <= share.share <= share.high <= 1
