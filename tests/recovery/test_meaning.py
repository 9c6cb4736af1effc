"""What an epsilon means: bounds by the privacy map, figures of quick readers, and sentences."""

import math

import numpy as np
import pytest

from lexveil.accounting.expected_recovery import BandRecovery, MeaningAt
from lexveil.embeddings.neighborhoods import NearTable, nearest_words
from lexveil.mechanisms.diffractor_geometric import DiffractorGeometric
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.mahalanobis import Mahalanobis
from lexveil.mechanisms.tem import Tem
from lexveil.mechanisms.vickrey import Vickrey
from lexveil.recovery import estimate, tem
from lexveil.recovery.distances import WordDistances, word_distances
from lexveil.recovery.meaning import bound_at, bound_sentence, reader_sentence, times


def toy(n_words: int = 60) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(n_words, 4)).astype(np.float32)


@pytest.mark.parametrize(
    "mechanism",
    [Madlib(toy()), Mahalanobis(toy()), DiffractorGeometric(np.random.default_rng(2).permutation(60))],
    ids=lambda mechanism: mechanism.name,
)
def test_distances_are_those_of_the_metric(mechanism: Madlib, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexveil.recovery.distances.WORDS", 60)  # of which all are drawn
    every = np.arange(60)
    table = np.array([mechanism.distance(np.full(60, word), every) for word in every])
    found = word_distances(mechanism)
    assert found is not None
    assert found.random.worst == pytest.approx(table.max(), rel=1e-4)
    np.fill_diagonal(table, np.inf)
    assert found.nearest == pytest.approx((np.median(table.min(axis=1)), table.min(axis=1).max()), rel=1e-4)
    middle = np.sort(table, axis=1)[:, 29]
    assert found.middle == pytest.approx((np.median(middle), middle.max()), rel=1e-4)


def test_the_extremes_are_found_beyond_the_words_that_are_drawn() -> None:
    vectors = toy(3000)
    vectors[1234] *= 30
    found = word_distances(Madlib(vectors))
    far = np.sort(np.linalg.norm(vectors.astype(np.float64) - vectors[1234], axis=1))
    assert found is not None
    assert found.nearest.worst == pytest.approx(far[1], rel=1e-4)
    assert found.random.worst == pytest.approx(far[-1], rel=1e-4)
    assert word_distances(Madlib(vectors[:1])) is None


def test_the_bound_is_the_privacy_map_and_none_where_none_is_proven() -> None:
    distances = WordDistances(*(word_distances(Madlib(toy())) or ()))
    bound = bound_at(Madlib(toy()), 3.0, distances)
    assert bound is not None and bound.nearest.median == pytest.approx(3 * distances.nearest.median, rel=1e-3)
    assert bound.random.worst == pytest.approx(3 * distances.random.worst, rel=1e-3)
    assert bound_at(Vickrey(toy(), exclude_input=True), 3.0, distances) is None
    assert "No bound is proven" in bound_sentence(None)
    assert f"{times(bound.nearest.median)} times likelier than under its nearest word" in bound_sentence(bound)
    assert [times(math.log(factor)) for factor in (1, 1.234, 12.3, 123_456, 2e7)] == [
        "1", "1.2", "12", "120,000", "10^7",
    ]  # fmt: skip


def test_a_sentence_counts_of_100_words() -> None:
    def at(epsilon: float, band: str, recovered: float, unchanged: float) -> MeaningAt:
        figures = BandRecovery(share_of_words=1.0, recovered=recovered, low=0, high=1, unchanged=unchanged)
        return MeaningAt(epsilon=epsilon, bands={band: figures}, bound=None)

    assert reader_sentence([at(8.0, "rare", 0.043, 0.031)]) == (
        "Of 100 rare words, a reader who knows everything but the text is expected to name 4; 3 stand unchanged "
        "(epsilon 8)."
    )
    assert reader_sentence([at(1.0, "all", 0.001, 0.0), at(8.0, "all", 0.999, 1.0)]) == (
        "Of 100 words, a reader who knows everything but the text is expected to name more than 99; 100 stand "
        "unchanged (epsilon 8, the largest of a token; at the smallest, 1, these are fewer than 1 and 0)."
    )


def test_a_quick_reader_of_tem_guesses_as_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tem, "SMALL", 100)
    vectors = np.random.default_rng(1).normal(size=(4000, 20)).astype(np.float32)
    mechanism, prior = Tem(vectors), 1 / np.arange(1.0, 4001)
    outputs, epsilon = np.arange(0, 4000, 7), np.full(572, 3.0)
    exact, quick = (
        tem.TemAdversary(mechanism, prior / prior.sum(), (3.0, 3.0), quick=quick) for quick in (False, True)
    )
    assert np.abs(exact.bias - quick.bias).max() < 0.5
    assert np.mean(exact.guess(outputs, epsilon) == quick.guess(outputs, epsilon)) > 0.95


def test_near_words_are_those_of_lists_that_are_there() -> None:
    """Which lists were made before changes no bit; what they say is what is used."""
    vectors, every = toy(300), np.arange(300)
    measured = np.linalg.norm(vectors[:, None].astype(np.float64) - vectors, axis=2)
    measured.sort(axis=1)
    found = estimate.near_distances(vectors)
    np.testing.assert_allclose(found, measured[:, [1, estimate.NEIGHBORS]].T, rtol=1e-5)
    part = nearest_words(vectors, every[:120])
    assert np.array_equal(estimate.near_distances(vectors, lists=lambda: part), found)
    false = NearTable(part.ids, part.distances + 1.0)
    there = estimate.near_distances(vectors, lists=lambda: false)
    assert (there[:, :120] > found[:, :120] + 0.9).all() and np.array_equal(there[:, 120:], found[:, 120:])


def test_near_words_are_found_among_some(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = toy(300)
    some = np.sort(np.random.default_rng(estimate.SEED).choice(300, 100, replace=False))
    table = np.linalg.norm(vectors[:, None].astype(np.float64) - vectors[some], axis=2)
    table[some, np.arange(100)] = np.inf
    table.sort(axis=1)
    found = estimate.near_distances(vectors, 100)
    np.testing.assert_allclose(found, [table[:, 0], table[:, estimate.NEIGHBORS - 1]], rtol=1e-5)
    monkeypatch.setattr(estimate, "AMONG", 100)
    quick = estimate.Quick()
    reader = estimate.EstimatedAdversary(Madlib(vectors), np.full(300, 1 / 300), (2.0, 2.0), quick=quick)
    assert quick.near is not None and np.array_equal(quick.near, found)
    assert reader.guess(np.arange(300), np.full(300, 2.0)).shape == (300,)
