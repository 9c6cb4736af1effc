"""Shares of words that an adversary recovers, by frequency band, with confidence intervals. The
shares are either measured, or expected by public frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from operator import attrgetter
from typing import Annotated

import numpy as np
from pydantic import Field

from lexveil.base.types import Bytes, Flags, Floats, Ids
from lexveil.core.mechanisms.base import Mechanism
from lexveil.readers.adversary import Adversary
from lexveil.readers.bands import ALL, BANDS, BANDS_OF

Z = 1.959963984540054  # normal quantile of a two-sided 95% interval
Fraction = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Share:
    """A share of n words with its 95% confidence interval (Wilson 1927)."""

    n: int
    share: Fraction
    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, n_right: int, n: int) -> Share:
        """Return the share ``n_right`` / ``n`` with its confidence interval. If n is 0, the share
        is 0 with the interval from 0 to 1.
        """
        if not n:
            return cls(0, 0.0, 0.0, 1.0)
        p = n_right / n
        z2 = Z * Z
        middle = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = Z / (1 + z2 / n) * np.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
        return cls(n, p, float(max(0.0, middle - half)), float(min(1.0, middle + half)))


@dataclass(frozen=True, slots=True)
class Told:
    """An adversary's recovery of words on a public word scale, such as sentiment. A word is on the
    scale if its score is not 0.

    Attributes:
        share: share of the perturbed words that are on the scale.
        side: share of the words on the scale for which the adversary guesses the sign of the score.
        auc: probability that the adversary ranks a word of the upper side above a word of the lower
            side; 0.5 is chance, ties count half.
        named: share of the words on the scale that the adversary recovers.
    """

    share: Fraction
    side: Fraction
    auc: Fraction
    named: Fraction

    @classmethod
    def of(
        cls, scores: Floats, words: Ids, weights: Floats, outputs: Ids, guesses: Sequence[Ids]
    ) -> Told:
        """Return the recovery of words on a scale by the strongest of several adversaries. One of
        them guesses that each word is unchanged; the guesses of the others are given.

        Args:
            scores: (W,) scores of the words.
            words, weights: (n,) the source words, and the weight of each.
            outputs: (n,) the output words.
            guesses: (n,) guesses of each adversary.
        """
        on_scale = scores[words] != 0
        counted = weights[on_scale]
        true = np.sign(scores[words[on_scale]])
        if not (total := float(counted.sum())):
            return cls(0.0, 0.0, 0.5, 0.0)
        answers = [scores[answer[on_scale]] for answer in (outputs, *guesses)]
        side = max(float(counted[np.sign(answer) == true].sum()) for answer in answers) / total
        named = (
            max(float(counted[guess[on_scale] == words[on_scale]].sum()) for guess in guesses)
            / total
        )
        auc = max(_auc(answer, true > 0, counted) for answer in answers)
        return cls(total / float(weights.sum()), side, auc, named)

    def towards(self, other: Told, part: float) -> Told:
        """Return the linear interpolation between this recovery and ``other``.

        Args:
            part: weight of ``other``, from 0 to 1.
        """
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Told(*((1 - part) * first + part * second for first, second in pairs))


def _auc(scores: Floats, is_upper: Flags, weights: Floats) -> float:
    """Return the area under the ROC curve of n weighted words (Mann & Whitney 1947); 0.5 if all are
    on one side.
    """
    values, place = np.unique(scores, return_inverse=True)
    upper, lower = (
        np.bincount(place, weights * side, len(values)) for side in (is_upper, ~is_upper)
    )
    pairs = float(upper.sum() * lower.sum())
    return float((upper * (np.cumsum(lower) - lower / 2)).sum()) / pairs if pairs else 0.5


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected recovery, at one epsilon, of words that are drawn by public counts.

    Attributes:
        epsilon: the epsilon.
        recovered: share of words that the strongest adversary recovers, by frequency band.
        unchanged: share of words that the mechanism leaves unchanged, by frequency band.
        mass: share of each band in all words.
        told: recovery of the words on each public scale that the metric preserves, by the name and
            weight of the scale.
        in_context: whether the contextual adversary was run in addition to the unigram adversary.
    """

    epsilon: float
    recovered: dict[str, Share]
    unchanged: dict[str, Share]
    mass: dict[str, Fraction]
    told: dict[str, Told] = field(default_factory=dict)
    in_context: bool = False

    @classmethod
    def of(
        cls,
        epsilon: float,
        sample: WordSample,
        outputs: Ids,
        guesses: Sequence[Ids],
        scales: Mapping[str, Floats],
    ) -> Expected:
        """Return the recovery of a word sample by the stronger of one or two adversaries, chosen
        separately for each frequency band.
        """
        named_words = [by_band(guess == sample.ids, sample.bands) for guess in guesses]
        return cls(
            epsilon,
            {
                band: max((shares[band] for shares in named_words), key=attrgetter("share"))
                for band in BANDS
            },
            by_band(outputs == sample.ids, sample.bands),
            sample.mass,
            {
                name: Told.of(scores, sample.ids, sample.weights, outputs, guesses)
                for name, scores in scales.items()
            },
            len(guesses) > 1,
        )

    def overall(self, shares: dict[str, Share], band: str = ALL) -> float:
        """Return the mean of ``recovered`` or ``unchanged`` over the words of one frequency band,
        or of a group of bands.
        """
        if band in shares:
            return shares[band].share
        mass = sum(self.mass[name] for name in BANDS_OF[band])
        return sum(self.mass[name] * shares[name].share for name in BANDS_OF[band]) / (mass or 1.0)


def by_band(is_right: Flags, bands: Bytes) -> dict[str, Share]:
    """Return the share of right answers among n words, by frequency band.

    Args:
        is_right: (n,) whether the answer for each word is right.
        bands: (n,) the band of each word.
    """
    n = np.bincount(bands, minlength=len(BANDS))
    right = np.bincount(bands[is_right], minlength=len(BANDS))
    return {band: Share.of(int(right[number]), int(n[number])) for number, band in enumerate(BANDS)}


@dataclass(frozen=True, slots=True)
class WordSample:
    """Sample of words drawn by public frequencies, with the same number of words in each frequency
    band.

    Attributes:
        ids: (n,) the words.
        bands: (n,) the band of each word.
        mass: share of each band in all words.
    """

    ids: Ids
    bands: Bytes
    mass: dict[str, float]

    @property
    def weights(self) -> Floats:
        """(n,) weight of each sampled word, which corrects for the equal sizes of the bands."""
        masses = np.array([self.mass[band] for band in BANDS])
        weights: Floats = (masses / np.maximum(np.bincount(self.bands, minlength=len(BANDS)), 1))[
            self.bands
        ]
        return weights

    @classmethod
    def draw(
        cls, prior: Floats, bands: Bytes, rng: np.random.Generator, n_words: int
    ) -> WordSample:
        """Draw ``n_words`` words by the prior from each frequency band that has words with a
        positive prior.
        """
        ids = []
        for number in range(len(BANDS)):
            if len(members := np.flatnonzero((bands == number) & (prior > 0))):
                weights = prior[members] / prior[members].sum()
                ids.append(rng.choice(members, size=n_words, p=weights))
        drawn = np.concatenate([np.empty(0, np.int64), *ids]).astype(np.int64)
        mass = {band: float(prior[bands == number].sum()) for number, band in enumerate(BANDS)}
        return cls(drawn, bands[drawn], mass)


def expected(
    mechanism: Mechanism,
    adversary: Adversary,
    sample: WordSample,
    epsilon: float,
    rng: np.random.Generator,
    scales: Mapping[str, Floats] | None = None,
) -> Expected:
    """Return the expected recovery of single words by the unigram adversary, each with the budget
    ``epsilon``.

    The result depends on public facts (space, frequencies, mechanism and ε), never on a text.

    Args:
        scales: (W,) scores of the words, by purpose.

    Raises:
        ParameterError: if the mechanism refuses epsilon.
    """
    budgets = np.full(len(sample.ids), epsilon)
    outputs = mechanism.replace(sample.ids, budgets, mechanism.noise(budgets, rng))
    return Expected.of(epsilon, sample, outputs, [adversary.guess(outputs, budgets)], scales or {})
