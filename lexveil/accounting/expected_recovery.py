"""What a best-informed reader is expected to get back, as records and commands say it.

The numbers follow from public things alone: space, word frequencies, mechanism, policy and epsilon.
"""

from __future__ import annotations

from lexveil.accounting.results import Number, Result


class BandRecovery(Result):
    """What is expected of the words of one frequency band, or of all; shares of 1."""

    share_of_words: float
    """Of the words that are perturbed, by public frequencies."""
    recovered: float
    """What a best-informed reader names."""
    low: float
    high: float
    """Ends of its 95% interval."""
    unchanged: float
    """What comes out as it is."""


class RecoveryAt(Result):
    """What is expected of tokens of one epsilon, by frequency band: function, frequent, middle, rare, and all."""

    epsilon: Number
    bands: dict[str, BandRecovery]
