"""Shares of words recovered, by frequency band, with their intervals; measured, or expected of public frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from lexveil.mechanisms.base import Mechanism
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.bands import ALL, BANDS, BANDS_OF
from lexveil.recovery.purposes import Told, told
from lexveil.types import Bytes, Flags, Floats, Ids

Z = 1.959963984540054  # two-sided 95%
WORDS = 2_000  # drawn of each band: a share then has a 95% interval of at most ± 0.022


@dataclass(frozen=True, slots=True)
class Share:
    """A share of n words with its 95% interval (Wilson 1927)."""

    n: int
    share: float
    low: float
    high: float

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
class Expected:
    """What is expected of words as frequent as the public counts say, at one epsilon.

    Attributes:
        recovered: share that the reader guesses, by band.
        unchanged: share that comes out as it is, by band.
        mass: share of all words that are of the band.
        told: of the words on each public scale that the metric keeps, by its name and weight.
    """

    epsilon: float
    recovered: dict[str, Share]
    unchanged: dict[str, Share]
    mass: dict[str, float]
    told: dict[str, Told] = field(default_factory=dict)

    def overall(self, shares: dict[str, Share], band: str = ALL) -> float:
        """The mean over the words of a band, or of bands together, of ``recovered`` or ``unchanged``."""
        if band in shares:
            return shares[band].share
        mass = sum(self.mass[one] for one in BANDS_OF[band])
        return sum(self.mass[one] * shares[one].share for one in BANDS_OF[band]) / (mass or 1.0)


def by_band(is_right: Flags, bands: Bytes) -> dict[str, Share]:
    """The share of n words that are right, by band; ``bands`` (n,) is that of each word."""
    n = np.bincount(bands, minlength=len(BANDS))
    right = np.bincount(bands[is_right], minlength=len(BANDS))
    return {band: Share.of(int(right[number]), int(n[number])) for number, band in enumerate(BANDS)}


@dataclass(frozen=True, slots=True)
class Sample:
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
        weights: Floats = (masses / np.maximum(np.bincount(self.bands, minlength=len(BANDS)), 1))[self.bands]
        return weights

    @classmethod
    def draw(cls, prior: Floats, bands: Bytes, rng: np.random.Generator, n_words: int = WORDS) -> Sample:
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
    sample: Sample,
    epsilon: float,
    rng: np.random.Generator,
    scales: Mapping[str, Floats] | None = None,
) -> Expected:
    """What the reader is expected to get back of the words of a sample, each with the budget ``epsilon``.

    A function of public things: space, frequencies, mechanism and ε, never of a text.

    Args:
        scales: (W,) scores of the words, by purpose.

    Raises:
        ParameterError: if the mechanism refuses epsilon.
    """
    budgets = np.full(len(sample.ids), epsilon)
    outputs = mechanism.replace(sample.ids, budgets, mechanism.noise(budgets, rng))
    guesses = adversary.guess(outputs, budgets)
    return Expected(
        epsilon,
        by_band(guesses == sample.ids, sample.bands),
        by_band(outputs == sample.ids, sample.bands),
        sample.mass,
        {name: told(scores, sample.ids, sample.weights, outputs, guesses) for name, scores in (scales or {}).items()},
    )
