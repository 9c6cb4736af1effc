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


class Factor(Result):
    """How many times likelier an output is at most under the true word than under another, as its natural logarithm.

    Rounded to four digits. The largest ones are beyond what floating point numbers hold, so that logarithms stand here.
    """

    median: Number
    """Of the words of the vocabulary."""
    worst: Number
    """The largest found."""


class Bound(Result):
    """What the guarantee bounds: the logarithm of Pr[output | true word] / Pr[output | other word]."""

    nearest: Factor
    """The other word is the nearest one."""
    middle: Factor
    """A middling one: half of all words are nearer."""
    random: Factor
    """Drawn at random."""


class ScaleTold(Result):
    """What a reader is told of the words on a public scale that the metric keeps; shares of 1."""

    share_of_words: float
    """Of the words that are perturbed, those on the scale."""
    side: float
    """Of them, those whose side a reader tells."""
    auc: float
    """How often a reader puts a word of the upper side above one of the lower; 0.5 is chance."""
    recovered: float
    """Of them, those that a reader names."""


class MeaningAt(RecoveryAt):
    """What one epsilon of a token means."""

    bound: Bound | None
    """By the mechanism's privacy map; null where no bound is proven."""
    purposes: dict[str, ScaleTold] | None = None
    """By scale and weight; not there where the metric keeps none."""


class Meaning(Result):
    """What epsilon means for the tokens of an output: a function of public things and epsilon, never of a source."""

    at: list[MeaningAt]
    """At the smallest epsilon of a token, or the next larger one of a fixed lattice, and at the largest; or at one."""
    sentences: list[str]
    """The same for people, of the largest epsilon."""
