"""What an epsilon means, in numbers and words for people who sign a release."""

from __future__ import annotations

import numpy as np

from lexveil.accounting.expected_recovery import BandRecovery, RecoveryAt
from lexveil.recovery.bands import BANDS
from lexveil.recovery.calibration import ALL, recovered, unchanged
from lexveil.recovery.shares import Expected, Z

PLACES = 4  # of shares: what is beyond is chance


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


def _band(share_of_words: float, *figures: float) -> BandRecovery:
    named, low, high, same = (round(figure, PLACES) for figure in figures)
    of = round(share_of_words, PLACES)
    return BandRecovery(share_of_words=of, recovered=named, low=low, high=high, unchanged=same)
