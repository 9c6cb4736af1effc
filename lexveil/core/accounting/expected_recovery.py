"""Expected recovery by the strongest adversary, in the form that records and commands report.

The numbers depend only on public facts: space, counts of words and bigrams, mechanism, policy and
epsilon.
"""

from __future__ import annotations

from lexveil.core.accounting.results import Number, Result

# printed after every figure that only the unigram adversary determined
WORDS_ALONE = "by single words alone"


class BandRecovery(Result):
    """Expected recovery of the words of one frequency band, or of all words; shares of 1.

    Attributes:
        share_of_words: Share of the band in the perturbed words, by public frequencies.
        recovered: Share of the words that the strongest adversary recovers.
        low: Lower end of the 95% interval of `recovered`.
        high: Upper end of the 95% interval of `recovered`.
        unchanged: Share of the words that are the same in the output.
    """

    share_of_words: float
    recovered: float
    low: float
    high: float
    unchanged: float


class RecoveryAt(Result):
    """Expected recovery of tokens at one epsilon, by frequency band: function, frequent, middle and
    rare words; content words (all but function words); and all words.

    A level of protection also states shares of content and rare words. `protection` has the shares
    that were measured for the level. The figures of `RecoveryAt` are expectations for other words,
    drawn by public counts, and may differ by some hundredths.

    Attributes:
        in_context: Whether the figures are the larger of the figures of two adversaries, one of
            which reads the words in context. Otherwise they are those of the unigram adversary
            alone.
    """

    epsilon: Number
    bands: dict[str, BandRecovery]
    in_context: bool = False

    @property
    def aside(self) -> str:
        """Remark to print after a figure of recovery; empty if the contextual adversary contributed
        to the figure.
        """
        return "" if self.in_context else f", {WORDS_ALONE}"


class Factor(Result):
    """Natural logarithm of the largest ratio between the probability of an output under the true
    word and its probability under another word.

    The value is rounded to four digits. It is a logarithm because the largest ratios exceed the
    range of floating point numbers.

    Attributes:
        median: Median over the words of the vocabulary.
        worst: Largest value found.
    """

    median: Number
    worst: Number


class Bound(Result):
    """Upper bound that the guarantee gives for the logarithm of Pr[output | true word] / Pr[output
    | other word].

    Attributes:
        nearest: Bound if the other word is the nearest word.
        middle: Bound if the other word is at the median distance, where half of all words are
            nearer.
        random: Bound if the other word is drawn at random.
    """

    nearest: Factor
    middle: Factor
    random: Factor


class ScaleTold(Result):
    """Recovery of the words on a public scale (a purpose), which the metric preserves; shares of 1.

    Attributes:
        share_of_words: Share of the perturbed words that are on the scale.
        side: Share of the words on the scale whose side (upper or lower) the adversary recovers.
        auc: Probability that the adversary ranks a word of the upper side above a word of the
            lower; 0.5 is chance.
        recovered: Share of the words on the scale that the adversary recovers.
    """

    share_of_words: float
    side: float
    auc: float
    recovered: float


class MeaningAt(RecoveryAt):
    """Meaning of one epsilon of a token: expected recovery, and the bound of the guarantee.

    Attributes:
        bound: Bound by the mechanism's privacy map; null if no bound is proven.
        purposes: Figures by scale and weight; missing if the metric has no purpose.
    """

    bound: Bound | None
    purposes: dict[str, ScaleTold] | None = None


class Meaning(Result):
    """Meaning of epsilon for the tokens of an output. The meaning depends on public facts and
    epsilon, never on a source.

    Attributes:
        at: Figures at the smallest epsilon of a token, or the next larger one of a fixed lattice,
            and at the largest. If all tokens have one epsilon, figures at that epsilon.
        sentences: Sentences for people about the largest epsilon.
    """

    at: list[MeaningAt]
    sentences: list[str]
