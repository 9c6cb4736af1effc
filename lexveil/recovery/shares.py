"""Shares of words recovered, by frequency band, with their intervals; measured, or expected of
public frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from operator import attrgetter
from typing import Annotated

import numpy as np
from pydantic import Field

from lexveil.mechanisms.base import Mechanism
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.bands import ALL, BANDS, BANDS_OF
from lexveil.types import Bytes, Flags, Floats, Ids

Z = 1.959963984540054  # two-sided 95%
Fraction = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Share:
    """A share of n words with its 95% interval (Wilson 1927)."""

    n: int
    share: Fraction
    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, n_right: int, n: int) -> Share:
        """``n_right`` of ``n``; of none, 0 with the interval from 0 to 1."""
        if not n:
            return cls(0, 0.0, 0.0, 1.0)
        p, z2 = n_right / n, Z * Z
        middle = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = Z / (1 + z2 / n) * np.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
        return cls(n, p, float(max(0.0, middle - half)), float(min(1.0, middle + half)))


@dataclass(frozen=True, slots=True)
class Told:
    """What an adversary tells of the perturbed words on a public scale: those whose score is not 0.

    Attributes:
        share: of all perturbed words, those on the scale.
        side: of them, those whose side the adversary tells.
        auc: how often the adversary puts a word of the upper side above one of the lower side; 0.5
            is chance, ties count half.
        named: of them, those that the adversary names.
    """

    share: Fraction
    side: Fraction
    auc: Fraction
    named: Fraction

    @classmethod
    def of(
        cls, scores: Floats, words: Ids, weights: Floats, outputs: Ids, guesses: Sequence[Ids]
    ) -> Told:
        """What the best of some adversaries tells: one takes the word put out, the others the word
        guessed.

        Args:
            scores: (W,) of the words.
            words, weights: (n,) the words that were rewritten, and how much each counts.
            outputs: (n,) what came out.
            guesses: (n,) of each adversary.
        """
        on_scale = scores[words] != 0
        counted, true = weights[on_scale], np.sign(scores[words[on_scale]])
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
        """What lies a part of the way to another."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Told(*((1 - part) * first + part * second for first, second in pairs))


def _auc(scores: Floats, is_upper: Flags, weights: Floats) -> float:
    """The area under the curve of n weighted words (Mann & Whitney 1947); 0.5 of one side alone."""
    values, place = np.unique(scores, return_inverse=True)
    upper, lower = (
        np.bincount(place, weights * side, len(values)) for side in (is_upper, ~is_upper)
    )
    pairs = float(upper.sum() * lower.sum())
    return float((upper * (np.cumsum(lower) - lower / 2)).sum()) / pairs if pairs else 0.5


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of words as frequent as the public counts say, at one epsilon.

    Attributes:
        recovered: share that the strongest adversary guesses, by band.
        unchanged: share that comes out as it is, by band.
        mass: share of all words that are of the band.
        told: of the words on each public scale that the metric keeps, by its name and weight.
        in_context: whether the contextual adversary was run, beside the one by the word.
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
        """What the strongest of one or two adversaries guesses of the words of a sample: of each
        band the most.
        """
        named = [by_band(guess == sample.ids, sample.bands) for guess in guesses]
        return cls(
            epsilon,
            {
                band: max((shares[band] for shares in named), key=attrgetter("share"))
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
        """The mean over the words of a band, or of bands together, of ``recovered`` or
        ``unchanged``.
        """
        if band in shares:
            return shares[band].share
        mass = sum(self.mass[name] for name in BANDS_OF[band])
        return sum(self.mass[name] * shares[name].share for name in BANDS_OF[band]) / (mass or 1.0)


def by_band(is_right: Flags, bands: Bytes) -> dict[str, Share]:
    """The share of n words that are right, by band; ``bands`` (n,) is that of each word."""
    n = np.bincount(bands, minlength=len(BANDS))
    right = np.bincount(bands[is_right], minlength=len(BANDS))
    return {band: Share.of(int(right[number]), int(n[number])) for number, band in enumerate(BANDS)}


@dataclass(frozen=True, slots=True)
class WordSample:
    """Words as public frequencies have them, the same number of each band.

    Attributes:
        ids: (n,).
        bands: (n,) of each.
        mass: share of all words that are of each band.
    """

    ids: Ids
    bands: Bytes
    mass: dict[str, float]

    @property
    def weights(self) -> Floats:
        """(n,) how much each word counts among all words."""
        masses = np.array([self.mass[band] for band in BANDS])
        weights: Floats = (masses / np.maximum(np.bincount(self.bands, minlength=len(BANDS)), 1))[
            self.bands
        ]
        return weights

    @classmethod
    def draw(
        cls, prior: Floats, bands: Bytes, rng: np.random.Generator, n_words: int
    ) -> WordSample:
        """Draw ``n_words`` of each band that has words which can be meant, by the prior."""
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
    """What the unigram adversary is expected to get back of single words, each with the budget
    ``epsilon``.

    A function of public things: space, frequencies, mechanism and ε, never of a text.

    Args:
        scales: (W,) scores of the words, by purpose.

    Raises:
        ParameterError: if the mechanism refuses epsilon.
    """
    budgets = np.full(len(sample.ids), epsilon)
    outputs = mechanism.replace(sample.ids, budgets, mechanism.noise(budgets, rng))
    return Expected.of(epsilon, sample, outputs, [adversary.guess(outputs, budgets)], scales or {})
