"""What an epsilon means, in numbers and words for people who sign a release."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lexveil.accounting.expected_recovery import BandRecovery, Bound, Factor, Meaning, MeaningAt, RecoveryAt, ScaleTold
from lexveil.mechanisms.base import Kernel
from lexveil.recovery.bands import ALL, BANDS
from lexveil.recovery.calibration import recovered, unchanged
from lexveil.recovery.distances import Spread, WordDistances
from lexveil.recovery.purposes import Told
from lexveil.recovery.shares import Expected, Z

PLACES = 4  # of shares: what is beyond is chance
DIGITS = 4  # of logarithms
PLAIN = 6  # powers of ten from which on a factor is written as one


def recovery_at(expected: Expected) -> RecoveryAt:
    """What is expected at one ε, by band and of all words."""
    bands = {
        band: _band(expected.mass[band], shares.share, shares.low, shares.high, expected.unchanged[band].share)
        for band, shares in expected.recovered.items()
        if expected.mass[band]
    }
    # The bands are independent samples, so the variances of their parts add up.
    parts = [(expected.mass[band], expected.recovered[band]) for band in BANDS if expected.mass[band]]
    half = Z * float(np.sqrt(sum(mass**2 * one.share * (1 - one.share) / one.n for mass, one in parts)))
    mean = recovered(expected, ALL)
    bands[ALL] = _band(1.0, mean, max(0.0, mean - half), min(1.0, mean + half), unchanged(expected, ALL))
    return RecoveryAt(epsilon=expected.epsilon, bands=bands)


def bound_at(mechanism: Kernel, epsilon: float, distances: WordDistances | None) -> Bound | None:
    """By how much the mechanism's privacy map lets an output be likelier under the true word; None without a bound."""
    if distances is None or not mechanism.is_proven:
        return None

    def factor(spread: Spread) -> Factor:
        losses = mechanism.privacy_loss(np.full(2, epsilon), np.array(spread)).tolist()
        median, worst = (float(f"{loss:.{DIGITS}g}") for loss in losses)
        return Factor(median=median, worst=worst)

    return Bound(nearest=factor(distances.nearest), middle=factor(distances.middle), random=factor(distances.random))


def meaning_of(mechanism: Kernel, found: Sequence[Expected], distances: WordDistances | None) -> Meaning:
    """What some epsilons mean, ascending; the sentences are of the last."""
    at = [
        MeaningAt(
            epsilon=float(f"{expected.epsilon:.{DIGITS}g}"),
            bands=recovery_at(expected).bands,
            bound=bound_at(mechanism, expected.epsilon, distances),
            **({"purposes": {name: _scale(one) for name, one in expected.told.items()}} if expected.told else {}),
        )
        for expected in found
    ]
    sentences = [reader_sentence(at), *purpose_sentences(found[-1]), bound_sentence(at[-1].bound)]
    return Meaning(at=at, sentences=sentences)


def purpose_sentences(expected: Expected) -> list[str]:
    """What is less hidden by the purposes that the metric keeps."""
    return [
        f"Less hidden, by the purpose {name}: of 100 words {_of_100(told.share)} are on its scale; of 100 of these, a "
        f"reader is expected to tell the side of {_of_100(told.side)} (AUC {told.auc:.2f}) and to name "
        f"{_of_100(told.named)}."
        for name, told in expected.told.items()
    ]


def reader_sentence(at: Sequence[MeaningAt]) -> str:
    """What a reader is expected to name of the rare words, or of all where there are none."""
    last = at[-1]
    band = "rare" if "rare" in last.bands else ALL
    words, figures = "words" if band == ALL else f"{band} words", last.bands[band]
    said = (
        f"Of 100 {words}, a reader who knows everything but the text is expected to name {_of_100(figures.recovered)}; "
        f"{_of_100(figures.unchanged)} stand unchanged (epsilon {last.epsilon:.4g}"
    )
    if len(at) == 1:
        return f"{said})."
    least = at[0].bands[band]
    return (
        f"{said}, the largest of a token; at the smallest, {at[0].epsilon:.4g}, these are {_of_100(least.recovered)} "
        f"and {_of_100(least.unchanged)})."
    )


def bound_sentence(bound: Bound | None) -> str:
    """By how much an output tells the true word from others."""
    if bound is None:
        return "No bound is proven of how much likelier an output is under the true word than under another one."
    nearest, middle, far = (times(one.median) for one in (bound.nearest, bound.middle, bound.random))
    return (
        f"The bound: under the true word an output is at most {nearest} times likelier than under its nearest word "
        f"({times(bound.nearest.worst)} for the worst word), {middle} than under a middling word "
        f"({times(bound.middle.worst)}), {far} than under a random one ({times(bound.random.worst)})."
    )


def times(logarithm: float) -> str:
    """A factor of at least 1, by its natural logarithm, as people read it."""
    power = logarithm / math.log(10)
    if power < PLAIN:
        value = math.exp(logarithm)
        return f"{value:.2g}" if value < 10 else f"{float(f'{value:.2g}'):,.0f}"
    return f"10^{power:,.0f}"


def _of_100(share: float) -> str:
    if 0 < share < 0.005:
        return "fewer than 1"
    return "more than 99" if 0.995 < share < 1 else f"{100 * share:.0f}"


def _band(share_of_words: float, *figures: float) -> BandRecovery:
    named, low, high, same = (round(figure, PLACES) for figure in figures)
    of = round(share_of_words, PLACES)
    return BandRecovery(share_of_words=of, recovered=named, low=low, high=high, unchanged=same)


def _scale(told: Told) -> ScaleTold:
    share, side, auc, named = (round(figure, PLACES) for figure in (told.share, told.side, told.auc, told.named))
    return ScaleTold(share_of_words=share, side=side, auc=auc, recovered=named)
