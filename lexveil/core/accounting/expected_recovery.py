"""Expected share of words that the strongest adversary recovers, in the form that records and
commands report.

The numbers depend only on public facts: word vectors, counts of words and bigrams, mechanism, token
policy and epsilon.
"""

from __future__ import annotations

from lexveil.core.accounting.results import Number, Result

# printed after every figure that only the unigram adversary determined
WORDS_ALONE = "by single words alone"


class BandRecovery(Result):
    """Expected recovery of the words of one frequency band, or of all words. All values are shares
    between 0 and 1.

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
    """Expected share of tokens that an adversary recovers at one epsilon, by frequency band:
    function, frequent, middle and rare words; content words (all but function words); and all
    words.

    The record's field `protection` also states shares of content and rare words, which were
    measured for a protection level. The figures here are expectations for other words, drawn by
    public counts, and may differ from those shares by some hundredths.

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
        """Remark to print after a recovery figure; empty if the contextual adversary contributed
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
    """Upper bound of the guarantee on the logarithm of Pr[output | true word] / Pr[output | other
    word].

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
    """Expected recovery of the words on a public word scale (such as a sentiment lexicon), which
    the metric is made to preserve. All values are shares between 0 and 1.

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
    """Meaning of a token's epsilon: expected recovery by an adversary, and the bound of the
    guarantee.

    Attributes:
        bound: Bound by the mechanism's privacy map; null if no bound is proven.
        purposes: Figures by scale and weight; missing if the metric has no purpose.
    """

    bound: Bound | None
    purposes: dict[str, ScaleTold] | None = None


class Meaning(Result):
    """Meaning of epsilon for the tokens of an output. It is computed from public facts and
    epsilon, never from the source.

    Attributes:
        at: Figures at the smallest epsilon of a token, rounded up to a fixed lattice, and at the
            largest epsilon of a token. If all tokens have one epsilon, figures at that epsilon.
        sentences: Sentences for people about the largest epsilon.
    """

    at: list[MeaningAt]
    sentences: list[str]
