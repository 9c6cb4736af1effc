"""What the strongest reader is expected to get back, as records and commands say it.

The numbers follow from public things alone: space, counts of words and of which follow each other,
mechanism, policy and epsilon.
"""

from __future__ import annotations

from lexveil.accounting.results import Number, Result

# said wherever a figure is printed that no reader in context has part in
WORDS_ALONE = "by single words alone"


class BandRecovery(Result):
    """What is expected of the words of one frequency band, or of all; shares of 1.

    Attributes:
        share_of_words: Of the words that are perturbed, by public frequencies.
        recovered: What the strongest reader names.
        high: Ends of its 95% interval.
        unchanged: What comes out as it is.
    """

    share_of_words: float
    recovered: float
    low: float
    high: float
    unchanged: float


class RecoveryAt(Result):
    """What is expected of tokens of one epsilon, by frequency band: function, frequent, middle,
    rare, and all.

    Attributes:
        in_context: Whether it is the larger of what two readers name, of which one reads the words
            together; else it is by single words alone.
    """

    epsilon: Number
    bands: dict[str, BandRecovery]
    in_context: bool = False

    @property
    def aside(self) -> str:
        """What is to be said behind a figure."""
        return "" if self.in_context else f", {WORDS_ALONE}"


class Factor(Result):
    """How many times likelier an output is at most under the true word than under another, as its
    natural logarithm.

    Rounded to four digits. The largest ones are beyond what floating point numbers hold, so that
    logarithms stand here.

    Attributes:
        median: Of the words of the vocabulary.
        worst: The largest found.
    """

    median: Number
    worst: Number


class Bound(Result):
    """What the guarantee bounds: the logarithm of Pr[output | true word] / Pr[output | other word].

    Attributes:
        nearest: The other word is the nearest one.
        middle: A middling one: half of all words are nearer.
        random: Drawn at random.
    """

    nearest: Factor
    middle: Factor
    random: Factor


class ScaleTold(Result):
    """What a reader is told of the words on a public scale that the metric keeps; shares of 1.

    Attributes:
        share_of_words: Of the words that are perturbed, those on the scale.
        side: Of them, those whose side a reader tells.
        auc: How often a reader puts a word of the upper side above one of the lower; 0.5 is chance.
        recovered: Of them, those that a reader names.
    """

    share_of_words: float
    side: float
    auc: float
    recovered: float


class MeaningAt(RecoveryAt):
    """What one epsilon of a token means.

    Attributes:
        bound: By the mechanism's privacy map; null where no bound is proven.
        purposes: By scale and weight; not there where the metric keeps none.
    """

    bound: Bound | None
    purposes: dict[str, ScaleTold] | None = None


class Meaning(Result):
    """What epsilon means for the tokens of an output: a function of public things and epsilon,
    never of a source.

    Attributes:
        at: At the smallest epsilon of a token, or the next larger one of a fixed lattice, and at
            the largest; or at one.
        sentences: The same for people, of the largest epsilon.
    """

    at: list[MeaningAt]
    sentences: list[str]
