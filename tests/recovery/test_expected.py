"""Expected recovery of a toy against sums over its table, the epsilon of a target, and what an
epsilon means."""

import numpy as np
import pytest

from lexveil.base.errors import RequestError
from lexveil.core.mechanisms.diffractor_geometric import DiffractorGeometric
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.mahalanobis import Mahalanobis
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.tem import Tem
from lexveil.core.mechanisms.vickrey import Vickrey
from lexveil.readers import meaning
from lexveil.readers.bands import ALL, BANDS, bands_of, prior_of
from lexveil.readers.calibration import Curve, epsilon_for, given_back, without_output
from lexveil.readers.meaning import WordDistances, bound_at, word_distances
from lexveil.readers.shares import Expected, Share, WordSample, expected
from tests.recovery.oracles import TableAdversary

COUNTS = np.array([500, 200, 40, 30, 20, 9, 5, 3, 2, 1])
PRIOR = prior_of(COUNTS)
IS_FUNCTION = np.arange(10) < 2
BAND = bands_of(COUNTS, IS_FUNCTION)
TEM = Tem(np.random.default_rng(3).normal(size=(10, 3)).astype(np.float32))
BLIND = {**dict.fromkeys(BANDS, 0.0), ALL: 0.05, "function": 0.1}
MASS = {"function": 0.5, "frequent": 0.3, "middle": 0.1, "rare": 0.1}


def test_bands_hold_most_occurrences_first():
    assert [BANDS[band] for band in BAND] == ["function"] * 2 + ["frequent"] * 2 + [
        "middle"
    ] * 3 + ["rare"] * 3
    assert bands_of(COUNTS[::-1], IS_FUNCTION[::-1]).tolist() == BAND[::-1].tolist()
    assert PRIOR.sum() == pytest.approx(1) and prior_of(np.array([0, 0])).min() > 0


def test_what_is_expected_is_the_sum_over_the_table():
    rng = np.random.default_rng(1)
    found = expected(
        TEM, TableAdversary(TEM, PRIOR), WordSample.draw(PRIOR, BAND, rng, 20_000), 3.0, rng
    )
    channel = np.exp(TEM.log_pmf(np.arange(10), np.full(10, 3.0)))
    guess = (PRIOR[:, None] * channel).argmax(axis=0)
    recovered = np.array([channel[word, guess == word].sum() for word in range(10)])
    assert found.overall(found.recovered) == pytest.approx(
        (PRIOR * channel.T).max(axis=1).sum(), abs=0.01
    )
    for number, band in enumerate(BANDS):
        chosen = number == BAND
        share = found.recovered[band]
        wanted = (PRIOR * recovered)[chosen].sum() / PRIOR[chosen].sum()
        # Five standard errors: 1 in 3 million.
        assert abs(share.share - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / share.n) + 1e-9
        unchanged = (PRIOR * channel.diagonal())[chosen].sum() / PRIOR[chosen].sum()
        assert found.unchanged[band].share == pytest.approx(unchanged, abs=0.02)


def curve(recovered, largest=1.0):
    """A curve of which all bands give back the same."""

    def compute(epsilon):
        shares = {band: Share(100, largest * recovered(epsilon), 0.0, 1.0) for band in BANDS}
        return Expected(epsilon, shares, {band: Share(100, 0.5, 0.0, 1.0) for band in BANDS}, MASS)

    return Curve(compute, BLIND)


@pytest.mark.parametrize("middle", [1e-6, 0.3, 1.0, 7.7, 5000.0])
@pytest.mark.parametrize("target", [0.06, 0.5, 0.93])
def test_the_epsilon_of_a_known_curve(middle, target):
    """Recovery e/(e + m) is the target at m·t/(1 - t); read off between points it is right to some
    thousandths."""
    found = epsilon_for(curve(lambda epsilon: epsilon / (epsilon + middle)), target)
    assert found.epsilon == pytest.approx(middle * target / (1 - target), rel=0.01)
    assert target - 0.003 < found.expected.recovered["rare"].share <= target
    assert float(f"{found.epsilon:.3g}") == found.epsilon


@pytest.mark.parametrize(
    ("target", "band", "message"),
    [
        (0.04, ALL, "already names 0.050"),
        (0.1, "function", "already names 0.100"),
        (0.9, "rare", "the largest epsilon, .*, a reader names 0.8.*ask for less"),
        (0.0, ALL, "already names 0.050"),
        (1.0, ALL, "the largest epsilon, .*, a reader names 0.8.*ask for less"),
    ],
)
def test_a_target_that_no_epsilon_gives_is_refused(target, band, message):
    with pytest.raises(RequestError, match=message):
        epsilon_for(curve(lambda epsilon: epsilon / (epsilon + 1), largest=0.8), target, band)
    with pytest.raises(
        RequestError, match=r"the smallest epsilon, .*, a reader names 0.500 of them; ask for more"
    ):
        epsilon_for(curve(lambda epsilon: 0.2), 0.3, "rare", given_back)


def test_the_adversary_without_output_is_the_limit_of_no_epsilon():
    blind = without_output(PRIOR, BAND)
    adversary = TableAdversary(TEM, PRIOR)
    assert np.all(adversary.guess(np.arange(10), np.full(10, 1e-6)) == 0)
    assert (
        blind[ALL] == PRIOR[0]
        and blind["rare"] == 0
        and blind["function"] == PRIOR[0] / PRIOR[:2].sum()
    )
    sample = WordSample.draw(PRIOR, BAND, stream(1, "sample"), 2000)
    computed = Curve(
        lambda epsilon: expected(TEM, adversary, sample, epsilon, stream(1, "noise")), blind
    )
    joint = np.exp(adversary.joint(epsilon_for(computed, 0.8).epsilon))
    # 2,000 words of a band, 3 deviations
    assert joint.max(axis=0).sum() == pytest.approx(0.8, abs=0.03)


def vectors_of(n_words=60):
    return np.random.default_rng(5).normal(size=(n_words, 4)).astype(np.float32)


@pytest.mark.parametrize(
    "mechanism",
    [
        Madlib(vectors_of()),
        Mahalanobis(vectors_of()),
        DiffractorGeometric(np.random.default_rng(2).permutation(60)),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_distances_are_those_of_the_metric(mechanism):
    """The 60 words are all drawn."""
    every = np.arange(60)
    table = np.array([mechanism.distance(np.full(60, word), every) for word in every])
    found = word_distances(mechanism)
    assert found is not None and meaning.MEASURED_WORDS > 60
    assert found.random.worst == pytest.approx(table.max(), rel=1e-4)
    np.fill_diagonal(table, np.inf)
    table.sort(axis=1)
    for spread, column in ((found.nearest, table[:, 0]), (found.middle, table[:, 29])):
        assert spread == pytest.approx((np.median(column), column.max()), rel=1e-4)


def test_the_extremes_are_found_beyond_the_words_that_are_drawn():
    vectors = vectors_of(3000)
    vectors[1234] *= 30
    found = word_distances(Madlib(vectors))
    far = np.sort(np.linalg.norm(vectors.astype(np.float64) - vectors[1234], axis=1))
    assert found is not None
    assert (found.nearest.worst, found.random.worst) == pytest.approx((far[1], far[-1]), rel=1e-4)
    assert word_distances(Madlib(vectors[:1])) is None


def test_the_bound_is_the_privacy_map_and_none_where_none_is_proven():
    distances = WordDistances(*(word_distances(Madlib(vectors_of())) or ()))
    bound = bound_at(Madlib(vectors_of()), 3.0, distances)
    assert bound is not None and bound.nearest.median == pytest.approx(
        3 * distances.nearest.median, rel=1e-3
    )
    assert bound.random.worst == pytest.approx(3 * distances.random.worst, rel=1e-3)
    assert bound_at(Vickrey(vectors_of(), exclude_input=True), 3.0, distances) is None
