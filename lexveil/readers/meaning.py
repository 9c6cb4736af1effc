"""Explanation of an epsilon in numbers and sentences, for people who approve a release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lexveil.base.types import Floats, Ids
from lexveil.core.accounting.expected_recovery import (
    BandRecovery,
    Bound,
    Factor,
    Meaning,
    MeaningAt,
    RecoveryAt,
    ScaleTold,
)
from lexveil.core.mechanisms.base import Mechanism
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.readers.bands import ALL, BANDS_OF, CONTENT
from lexveil.readers.calibration import recovered, unchanged
from lexveil.readers.shares import Expected, Z

DECIMALS_OF_SHARES = 4  # decimals of shares; further decimals would be chance
DIGITS_OF_LOGARITHMS = 4  # significant digits of logarithms
PLAIN = 6  # factors of at least this power of ten are written as a power of ten
PUBLIC_SEED = 20261  # public seed, so that everybody computes the same figures
MEASURED_WORDS = 384  # number of words whose distances to all others are measured
# number of further words of each extreme kind: isolated words, and words far from all others
EXTREME = 64
WORDS_AT_A_TIME = 64  # words per block, whose distances to all others are in memory together


class Spread(NamedTuple):
    """Median and largest value of a distance over many words."""

    median: float
    worst: float


class WordDistances(NamedTuple):
    """Distances of words in the metric of the guarantee: to the nearest other word, to the median
    word and to a random word.

    Medians are over ``MEASURED_WORDS`` words drawn from a public seed. The worst values are over
    these words and the words that are farthest from them, because a random draw hardly ever
    contains an extreme word.
    """

    nearest: Spread
    middle: Spread
    random: Spread


def word_distances(mechanism: Mechanism) -> WordDistances | None:
    """Measure the distances between a mechanism's words. The result is None if the mechanism has
    fewer than two words.
    """
    n = mechanism.size
    if n < 2:
        return None
    rng = stream(PUBLIC_SEED, "distances")
    drawn = np.sort(rng.choice(n, min(MEASURED_WORDS, n), replace=False)).astype(np.int64)
    measured = _Rows(mechanism, drawn)
    far = [
        np.argsort(-of_all, kind="stable")[:EXTREME]
        for of_all in (measured.least_of_all, measured.sum_of_all)
    ]
    extreme = _Rows(mechanism, np.setdiff1d(np.concatenate(far), drawn).astype(np.int64))
    # a word is not its own neighbour
    partners = (drawn + 1 + rng.integers(n - 1, size=len(drawn))) % n

    def spread(medians: Floats, name: str) -> Spread:
        worst = max(float(getattr(rows, name).max(initial=0.0)) for rows in (measured, extreme))
        return Spread(float(np.median(medians)), worst)

    return WordDistances(
        spread(measured.nearest, "nearest"),
        spread(measured.middle, "middle"),
        spread(mechanism.distance(drawn, partners.astype(np.int64)), "farthest"),
    )


class _Rows:
    """Two sets of distances: from n words to the nearest, median and farthest other word, (n,); and
    from all words to these n words, (W,).
    """

    def __init__(self, mechanism: Mechanism, words: Ids) -> None:
        self.nearest, self.middle, self.farthest = (np.empty(len(words)) for _ in range(3))
        self.least_of_all, self.sum_of_all = (
            np.full(mechanism.size, np.inf),
            np.zeros(mechanism.size),
        )
        middle = (mechanism.size - 2) // 2
        for start in range(0, len(words), WORDS_AT_A_TIME):
            block = words[start : start + WORDS_AT_A_TIME]
            part = slice(start, start + WORDS_AT_A_TIME)
            itself = np.arange(len(block)), block
            rows = mechanism.distances_of(block)
            rows[itself] = np.inf
            self.nearest[part] = rows.min(axis=1)
            self.middle[part] = np.partition(rows, middle, axis=1)[:, middle]
            self.least_of_all = np.minimum(self.least_of_all, rows.min(axis=0))
            rows[itself] = 0
            self.farthest[part] = rows.max(axis=1)
            self.sum_of_all += rows.sum(axis=0)


def recovery_at(expected: Expected) -> RecoveryAt:
    """Return the expected share of recovered words at one ε, by frequency band and over all
    words.
    """
    bands = {
        band: _band(
            expected.mass[band],
            shares.share,
            shares.low,
            shares.high,
            expected.unchanged[band].share,
        )
        for band, shares in expected.recovered.items()
        if expected.mass[band]
    }
    bands |= {name: _together(expected, name) for name in (CONTENT, ALL) if _mass(expected, name)}
    return RecoveryAt(epsilon=expected.epsilon, bands=bands, in_context=expected.in_context)


def _mass(expected: Expected, name: str) -> float:
    """Return the share of the perturbed words that belong to a group of frequency bands."""
    return sum(expected.mass[band] for band in BANDS_OF[name])


def _together(expected: Expected, name: str) -> BandRecovery:
    """Return the expected recovery of the words of several frequency bands as one group."""
    mass = _mass(expected, name)
    # The bands are independent samples, so the variances of their parts add up.
    parts = [
        (expected.mass[band] / mass, expected.recovered[band])
        for band in BANDS_OF[name]
        if expected.mass[band]
    ]
    half = Z * float(np.sqrt(sum(part**2 * of.share * (1 - of.share) / of.n for part, of in parts)))
    mean = recovered(expected, name)
    low = max(0.0, mean - half)
    high = min(1.0, mean + half)
    return _band(min(mass, 1.0), mean, low, high, unchanged(expected, name))


def _band(share_of_words: float, *figures: float) -> BandRecovery:
    of, named, low, high, same = (
        round(figure, DECIMALS_OF_SHARES) for figure in (share_of_words, *figures)
    )
    return BandRecovery(share_of_words=of, recovered=named, low=low, high=high, unchanged=same)


def bound_at(mechanism: Mechanism, epsilon: float, distances: WordDistances | None) -> Bound | None:
    """Return the proven bound on the likelihood ratio of an output for two different words, from
    the mechanism's privacy map. The result is None if no bound is proven.
    """
    if distances is None or not mechanism.is_proven:
        return None
    losses = (
        mechanism.privacy_loss(np.full(2, epsilon), np.array(spread)).tolist()
        for spread in distances
    )
    factors = ([float(f"{loss:.{DIGITS_OF_LOGARITHMS}g}") for loss in each] for each in losses)
    nearest, middle, random = (Factor(median=median, worst=worst) for median, worst in factors)
    return Bound(nearest=nearest, middle=middle, random=random)


def meaning_of(
    mechanism: Mechanism, points: Sequence[Expected], distances: WordDistances | None
) -> Meaning:
    """Return an explanation of some epsilons for people, in ascending order. The sentences are
    about the largest epsilon.
    """
    at = [
        MeaningAt(
            epsilon=float(f"{expected.epsilon:.{DIGITS_OF_LOGARITHMS}g}"),
            bands=recovery_at(expected).bands,
            in_context=expected.in_context,
            bound=bound_at(mechanism, expected.epsilon, distances),
            **({"purposes": _purposes(expected)} if expected.told else {}),
        )
        for expected in points
    ]
    sentences = [reader_sentence(at), *purpose_sentences(points[-1]), bound_sentence(at[-1].bound)]
    return Meaning(at=at, sentences=sentences)


def _purposes(expected: Expected) -> dict[str, ScaleTold]:
    return {
        name: ScaleTold(
            share_of_words=round(told.share, DECIMALS_OF_SHARES),
            side=round(told.side, DECIMALS_OF_SHARES),
            auc=round(told.auc, DECIMALS_OF_SHARES),
            recovered=round(told.named, DECIMALS_OF_SHARES),
        )
        for name, told in expected.told.items()
    }


def purpose_sentences(expected: Expected) -> list[str]:
    """Return one sentence for each purpose (a word scale that the metric preserves) about how much
    less the words on the scale are hidden.
    """
    return [
        f"Less hidden, by the purpose {name}: of 100 words {_of_100(told.share)} are on its "
        "scale; of 100 of these, a reader is expected to recognize the side of "
        f"{_of_100(told.side)} (AUC {told.auc:.2f}) and to name {_of_100(told.named)}."
        for name, told in expected.told.items()
    ]


def reader_sentence(at: Sequence[MeaningAt]) -> str:
    """Return the sentence about the share of rare words that an adversary is expected to recover.
    If no words are rare, the sentence is about all words.
    """
    last = at[-1]
    band = "rare" if "rare" in last.bands else ALL
    words = "words" if band == ALL else f"{band} words"
    figures = last.bands[band]
    sentence = (
        f"Of 100 {words}, a reader who knows everything but the text is expected to name "
        f"{_of_100(figures.recovered)}"
        f"{last.aside}; "
        f"{_of_100(figures.unchanged)} stand unchanged (epsilon {last.epsilon:.4g}"
    )
    if len(at) == 1:
        return f"{sentence})."
    least = at[0].bands[band]
    return (
        f"{sentence}, the largest of a token; at the smallest, {at[0].epsilon:.4g}, the numbers "
        "are "
        f"{_of_100(least.recovered)} and {_of_100(least.unchanged)})."
    )


def bound_sentence(bound: Bound | None) -> str:
    """Return the sentence about the bound on the likelihood ratio of an output."""
    if bound is None:
        return (
            "No bound is proven for how much likelier an output is under the true word than "
            "under another word."
        )
    nearest, middle, far = (
        times(factor.median) for factor in (bound.nearest, bound.middle, bound.random)
    )
    return (
        f"The bound: under the true word an output is at most {nearest} times likelier than "
        "under its nearest word "
        f"({times(bound.nearest.worst)} for the worst word), {middle} than under a middling word "
        f"({times(bound.middle.worst)}), {far} than under a random one "
        f"({times(bound.random.worst)})."
    )


def times(logarithm: float) -> str:
    """Format a factor of at least 1 as a phrase for people, given its natural logarithm."""
    power = logarithm / math.log(10)
    if power < PLAIN:
        value = math.exp(logarithm)
        return f"{value:.2g}" if value < 10 else f"{float(f'{value:.2g}'):,.0f}"
    return f"10^{power:,.0f}"


def _of_100(share: float) -> str:
    if 0 < share < 0.005:
        return "fewer than 1"
    return "more than 99" if 0.995 < share < 1 else f"{100 * share:.0f}"
