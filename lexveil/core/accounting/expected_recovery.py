"""Expected recovery by the strongest adversary, in the form that records and commands report.

The numbers follow from public facts alone: space, counts of words and bigrams, mechanism, policy
and epsilon.
"""

from __future__ import annotations

from lexveil.core.accounting.results import Number, Result

# printed with every figure that comes from the unigram adversary alone
WORDS_ALONE = "by single words alone"


class BandRecovery(Result):
    """Expected recovery of the words of one frequency band, or of all words; shares of 1.

    Attributes:
        share_of_words: Share of the band in the perturbed words, by public frequencies.
        recovered: Share of the words that the strongest adversary recovers.
        low: Lower end of the 95% interval of `recovered`.
        high: Upper end of the 95% interval of `recovered`.
        unchanged: Share of the words that come out unchanged.
    """

    share_of_words: float
    recovered: float
    low: float
    high: float
    unchanged: float


class RecoveryAt(Result):
    """Expected recovery of tokens at one epsilon, by frequency band: function, frequent, middle and
    rare words; content words (all but function words); and all words.

    A level of protection speaks of content and rare words, too. What was measured of it stands in
    `protection`; these figures are expected of other words, drawn by public counts, and may lie
    some hundredths above or below it.

    Attributes:
        in_context: Whether the figures are the larger of those of two adversaries, one of which
            reads the words in context; else they are those of the unigram adversary alone.
    """

    epsilon: Number
    bands: dict[str, BandRecovery]
    in_context: bool = False

    @property
    def aside(self) -> str:
        """Words to print after a figure of recovery; empty if the contextual adversary contributed
        to the figure.
        """
        return "" if self.in_context else f", {WORDS_ALONE}"


class Factor(Result):
    """Natural logarithm of the largest ratio of an output's probability under the true word to that
    under another word.

    The value is rounded to four digits. It is a logarithm because the largest ratios exceed the
    range of floating point numbers.

    Attributes:
        median: Median over the words of the vocabulary.
        worst: Largest value found.
    """

    median: Number
    worst: Number


class Bound(Result):
    """Bound of the guarantee on the logarithm of Pr[output | true word] / Pr[output | other word].

    Attributes:
        nearest: Bound where the other word is the nearest one.
        middle: Bound where the other word is at the median distance: half of all words are nearer.
        random: Bound where the other word is drawn at random.
    """

    nearest: Factor
    middle: Factor
    random: Factor


class ScaleTold(Result):
    """Share of the words on a public scale, which the metric keeps, whose source word an adversary
    recovers; shares of 1.

    Attributes:
        share_of_words: Share of the perturbed words that are on the scale.
        side: Share of the words on the scale whose side the adversary recovers.
        auc: Probability that the adversary ranks a word of the upper side above one of the lower;
            0.5 is chance.
        recovered: Share of the words on the scale that the adversary recovers.
    """

    share_of_words: float
    side: float
    auc: float
    recovered: float


class MeaningAt(RecoveryAt):
    """Meaning of one epsilon of a token: expected recovery, and the bound of the guarantee.

    Attributes:
        bound: Bound by the mechanism's privacy map; null where no bound is proven.
        purposes: Figures by scale and weight; missing where the metric keeps no purpose.
    """

    bound: Bound | None
    purposes: dict[str, ScaleTold] | None = None


class Meaning(Result):
    """Meaning of epsilon for the tokens of an output. The meaning is a function of public facts and
    epsilon, never of a source.

    Attributes:
        at: Figures at the smallest epsilon of a token, or the next larger one of a fixed lattice,
            and at the largest; or at one epsilon.
        sentences: Sentences for people about the largest epsilon.
    """

    at: list[MeaningAt]
    sentences: list[str]
