"""The numbers of a run, added up batch by batch: actions, distances, and epsilon spent."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from lexveil.accounting.budgets import Action
from lexveil.accounting.operator_report import ActionCounts, ClassCounts, DocumentShares, RunCounts
from lexveil.accounting.record import SpendBins, SpendSummary
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.embeddings.exact_search import pair_products
from lexveil.privatization.engine.plan import FoundCounts, count_found
from lexveil.privatization.engine.rewrite import Rewritten, count_actions
from lexveil.text.encode import TokenClass
from lexveil.types import Ids, Int64

BINS = 20
NEARLY_VERBATIM = 90  # percent of the content words of a document, from which on it is told as good as it was


class ExactSum:
    """The sum of finite float64 numbers without rounding, in constant memory: the same in any parts and order."""

    EXPONENT = 1074  # the smallest positive float64 is 2 ** -1074

    def __init__(self) -> None:
        self.units = 0  # of 2 ** -EXPONENT

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Add numbers."""
        mantissa, exponent = np.frexp(values)
        whole = (mantissa * 2.0**53).astype(np.int64)  # exact: 53 bits
        for power in np.unique(exponent).tolist():
            of_power = whole[exponent == power]
            # In halves, so that no sum of fewer than 2 ** 36 numbers can overflow.
            total = (int((of_power >> 27).sum()) << 27) + int((of_power & (2**27 - 1)).sum())
            shift = power - 53 + self.EXPONENT
            self.units += total << shift if shift >= 0 else total >> -shift  # nothing is lost: no float is finer

    def merge(self, other: ExactSum) -> None:
        """Add what ``other`` has added."""
        self.units += other.units

    def __float__(self) -> float:
        """The sum, rounded once."""
        return float(Fraction(self.units, 2**self.EXPONENT))


class DocumentTally:
    """How much of each document comes out as it went in: a histogram, so that memory does not grow with documents.

    Of the content words of a document, which are its tokens that are neither stop words nor punctuation, the share that
    came out as themselves, whether noise was drawn for them or not. Shares are rounded up to whole percents.
    """

    def __init__(self) -> None:
        self.by_percent = np.zeros(101, dtype=np.int64)

    def add(self, done: Rewritten, document: Ids) -> None:
        """Count a batch; ``document`` (n_texts,) is that of each text."""
        is_content = np.isin(done.encoded.classes, (TokenClass.WORD.value, TokenClass.OOV.value))
        is_same = (done.action == Action.PERTURBED.value) & (done.rows == done.encoded.rows)
        is_same |= done.action == Action.KEPT.value
        of_token = document[done.encoded.text_of]
        n_words = np.bincount(of_token[is_content])
        n_same = np.bincount(of_token[is_content & is_same], minlength=len(n_words))
        has_words = n_words > 0
        self.by_percent += np.bincount(-(-100 * n_same[has_words] // n_words[has_words]), minlength=101)

    def shares(self) -> DocumentShares | None:
        """What is to be said of them; None of no document."""
        below = np.cumsum(self.by_percent)
        n = int(below[-1])
        if not n:
            return None
        return DocumentShares(
            documents=n,
            median_unchanged=int(np.searchsorted(below, n / 2)) / 100,
            worst_tenth_unchanged=int(np.searchsorted(below, n * 0.9)) / 100,
            nearly_verbatim=int(self.by_percent[NEARLY_VERBATIM:].sum()),
        )


class Tally:
    """Counts, and how near the replacements are.

    ``mean_cosine`` is the mean cosine of source and output vector over the tokens that were perturbed and changed.
    Sums of fractions are exact: how texts were batched shows nowhere.
    """

    def __init__(self) -> None:
        self.actions = np.zeros((len(TokenClass), len(Action)), dtype=np.int64)
        self.found = FoundCounts()
        self.has_detector = False
        self.n_documents = self.n_texts = self.n_words_in = self.n_words_out = self.n_changed = 0
        self.epsilon, self.cosine = ExactSum(), ExactSum()
        self.of_documents = DocumentTally()

    @classmethod
    def of(cls, tallies: Iterable[Tally]) -> Tally:
        """All of several."""
        total = cls()
        for tally in tallies:
            total.merge(tally)
        return total

    def add(self, done: Rewritten, document: Ids, vocabulary: Vocabulary | None) -> None:
        """Count one batch.

        Args:
            document: (n_texts,) that of each text.
            vocabulary: what its perturbed tokens were taken from, None if there are none.
        """
        self.n_documents += len(np.unique(document))
        self.of_documents.add(done, document)
        self.n_texts += done.encoded.n_texts
        self.actions += count_actions(done.encoded.classes, done.action)
        self.found += count_found(done.encoded, done.action)
        self.has_detector |= done.encoded.found is not None
        self.n_words_in += int(done.encoded.n_words.sum())
        self.n_words_out += int(done.out_words.sum())
        self.epsilon.add(done.per_text(done.epsilon))
        if vocabulary is not None:
            changed = (done.action == Action.PERTURBED.value) & (done.rows != done.encoded.rows)
            before, after = (vocabulary.number[rows[changed]] for rows in (done.encoded.rows, done.rows))
            lengths = vocabulary.lengths[before] * vocabulary.lengths[after]
            dot = pair_products(vocabulary.vectors, before, after)
            cosines = np.zeros(len(changed))
            cosines[changed] = np.divide(dot, lengths, out=np.zeros(len(dot)), where=lengths > 0)
            self.n_changed += int(changed.sum())
            self.cosine.add(done.per_text(cosines))

    def merge(self, other: Tally) -> None:
        """Count what ``other`` has counted."""
        self.n_documents += other.n_documents
        self.n_texts += other.n_texts
        self.actions += other.actions
        self.found += other.found
        self.has_detector |= other.has_detector
        self.n_words_in += other.n_words_in
        self.n_words_out += other.n_words_out
        self.n_changed += other.n_changed
        self.epsilon.merge(other.epsilon)
        self.cosine.merge(other.cosine)
        self.of_documents.by_percent += other.of_documents.by_percent

    def counts(self) -> RunCounts:
        """All of them, most of which are the operator's; null where there is nothing to divide by."""
        by_action = self.actions.sum(axis=0)
        n, perturbed = int(by_action.sum()), int(by_action[Action.PERTURBED])

        def share(part: float, whole: float) -> float | None:
            return round(part / whole, 9) if whole else None

        return RunCounts(
            n_documents=self.n_documents,
            n_texts=self.n_texts,
            n_tokens_in=n,
            n_tokens_out=n - int(by_action[Action.DROPPED]),
            n_words_in=self.n_words_in,
            n_words_out=self.n_words_out,
            n_perturbed=perturbed,
            n_kept=int(by_action[Action.KEPT]),
            n_dropped=int(by_action[Action.DROPPED]),
            n_sampled=int(by_action[Action.SAMPLED]),
            by_class=class_counts(self.actions),
            share_unchanged=share(perturbed - self.n_changed, perturbed),
            mean_cosine=share(float(self.cosine), self.n_changed),
            unprotected_share=share(int(by_action[Action.KEPT]), n) or 0.0,
            epsilon_spent_mean=share(float(self.epsilon), self.n_texts),
            **({"found": found_counts(self.found)} if self.has_detector else {}),
        )


def coverage(actions: Int64) -> float | None:
    """The share of the words that the vocabulary knows, of tokens by class and action; but for those found."""
    n_words = int(actions[[TokenClass.WORD, TokenClass.STOPWORD, TokenClass.OOV]].sum())
    return 1 - int(actions[TokenClass.OOV].sum()) / n_words if n_words else None


def unprotected_share(actions: Int64) -> float | None:
    """The share of such tokens that are kept."""
    n_tokens = int(actions.sum())
    return int(actions[:, Action.KEPT].sum()) / n_tokens if n_tokens else None


def class_counts(actions: Int64) -> ClassCounts:
    """Tokens of each class that met each action, without those that a detector found."""
    kinds, labels = TokenClass.labels(), Action.labels()
    ordinary = actions[: len(kinds), : len(labels)].tolist()
    per_class = [ActionCounts(**dict(zip(labels, row, strict=True))) for row in ordinary]
    return ClassCounts(**dict(zip(kinds, per_class, strict=True)))


def found_counts(found: FoundCounts) -> dict[str, dict[str, int]]:
    """Found tokens by type and action, in the order of their names."""
    counts: dict[str, dict[str, int]] = {}
    for (kind, action), n in sorted(found.items()):
        counts.setdefault(kind, {})[action] = n
    return counts


class SpendHistogram:
    """Epsilon spent per document: least, most, mean, and how many documents spent which part of the budget."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.n = 0
        self.least, self.most = np.inf, 0.0
        self.least_of_token, self.most_of_token = np.inf, 0.0  # of those that spend anything
        self.total = ExactSum()
        self.bins = np.zeros(BINS, dtype=np.int64)

    def add(self, spent: npt.NDArray[np.float64], per_token: npt.NDArray[np.float64]) -> None:
        """Count documents by what they spent, and on each of their tokens."""
        if not len(spent):
            return
        self.n += len(spent)
        self.least, self.most = min(self.least, float(spent.min())), max(self.most, float(spent.max()))
        self.most_of_token = max(self.most_of_token, float(per_token.max()))
        self.least_of_token = min(self.least_of_token, float(per_token.min(initial=np.inf, where=per_token > 0)))
        self.total.add(spent)
        part = spent / self.budget if self.budget > 0 else np.zeros(len(spent))
        # All of the budget falls into the last bin, whatever the rounding of a sum of equal parts.
        self.bins += np.bincount(np.clip((part * BINS).astype(np.int64), 0, BINS - 1), minlength=BINS)

    def summary(self) -> SpendSummary:
        """The distribution as a record has it."""
        return SpendSummary(
            documents=self.n,
            least=self.least if self.n else None,
            most=self.most if self.n else None,
            mean=float(self.total) / self.n if self.n else None,
            max_token_epsilon=self.most_of_token if self.n else None,
            histogram=SpendBins(parts_of_budget=BINS, documents=self.bins.tolist()),
        )
