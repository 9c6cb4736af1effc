"""Counts of tokens, actions and spent epsilon, added up batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil.base.types import Floats, Ids, Int64
from lexveil.core.accounting.budgets import Action, Codes
from lexveil.core.accounting.operator_report import (
    ActionCounts,
    ClassCounts,
    DocumentShares,
    RunCounts,
)
from lexveil.core.accounting.record import SpendBins, SpendSummary
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.embeddings.exact_search import pair_products
from lexveil.core.text.encode import TokenClass
from lexveil.io.formats.arrow_tables import ArrowRows
from lexveil.release.engine.batch import Rewritten
from lexveil.release.engine.plan import FoundCounts, count_found

T = TypeVar("T")

BINS = 20
# percentage of unchanged content words from which a document counts as hardly changed
NEARLY_VERBATIM = 90


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """The counts of a batch, before any noise is drawn.

    Attributes:
        counts: (4, n_documents) words, tokens, parts of the budget that are spent, and parts by
            which S1 and S2 divide the budget; see ``count_planned``.
        by_class: (n_classes, n_actions) number of tokens by token class and action.
        documents: the number of documents with at least one text.
        texts: the number of texts in these documents.
        found: the number of tokens that detectors found, by type and action.
        keys: the ledger keys of the documents, computed from their texts, if the batch asks for the
            keys.
        without_spaces: row, column and script of the first text that cannot be split into words;
            None if there is no such text.
    """

    counts: Ids
    by_class: Ids
    documents: int
    texts: int
    found: FoundCounts
    keys: list[str] | None = None
    without_spaces: tuple[int, int, str] | None = None


@dataclass(slots=True)
class InputTotals:
    """Counts of a whole input, summed batch by batch. The other attributes are those of
    ``BatchCounts``.

    Attributes:
        totals: the sums of ``BatchCounts.counts``.
    """

    rows: int = 0
    documents: int = 0
    texts: int = 0
    totals: Ids = field(default_factory=lambda: np.zeros(4, dtype=np.int64))
    by_class: Ids = field(
        default_factory=lambda: np.zeros((len(TokenClass), len(Action)), dtype=np.int64)
    )
    found: FoundCounts = field(default_factory=FoundCounts)

    def add(self, counted: BatchCounts) -> None:
        """Add the counts of a batch to the totals."""
        self.rows += counted.counts.shape[1]
        self.documents += counted.documents
        self.texts += counted.texts
        self.totals += counted.counts.sum(axis=1)
        self.by_class += counted.by_class
        self.found += counted.found

    @property
    def average_words(self) -> float:
        """The mean number of words per document, or 0 without documents."""
        return int(self.totals[0]) / self.documents if self.documents else 0.0


class ExactSum:
    """The sum of finite float64 numbers without rounding, in constant memory. The sum does not
    depend on the order of the numbers or on their division into parts.
    """

    EXPONENT = 1074  # the smallest positive float64 is 2 ** -1074

    def __init__(self) -> None:
        self.units = 0  # units of 2 ** -EXPONENT

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Add an array of numbers to the sum."""
        mantissa, exponent = np.frexp(values)
        whole = (mantissa * 2.0**53).astype(np.int64)  # exact: 53 bits
        for power in np.unique(exponent).tolist():
            of_power = whole[exponent == power]
            # Split each number into two halves, so that no sum of fewer than 2 ** 36 numbers can
            # overflow.
            total = (int((of_power >> 27).sum()) << 27) + int((of_power & (2**27 - 1)).sum())
            shift = power - 53 + self.EXPONENT
            # the conversion is exact, because every float64 is a multiple of the unit
            self.units += total << shift if shift >= 0 else total >> -shift

    def __iadd__(self, other: ExactSum) -> Self:
        """Add another exact sum to this sum."""
        self.units += other.units
        return self

    def __float__(self) -> float:
        """Return the sum as a float, rounded once."""
        return float(Fraction(self.units, 2**self.EXPONENT))


class Tally:
    """Counts of tokens and actions in the source and the output of a run, with the similarity of
    the replacements.

    Sums of fractions are exact, so they do not depend on the batches. The share of unchanged
    content words of each document goes into a histogram, so that memory does not grow with the
    number of documents. Content words are neither stop words nor punctuation. A content word counts
    as unchanged if the output has the same word, whether noise was drawn for it or not. The share
    is rounded up to whole percents.
    """

    def __init__(self) -> None:
        self.actions = np.zeros((len(TokenClass), len(Action)), dtype=np.int64)
        self.found = FoundCounts()
        self.has_detector = False
        self.has_bank = False
        self.numbers = Counter[str]()
        self.epsilon, self.cosine = ExactSum(), ExactSum()
        self.by_percent = np.zeros(101, dtype=np.int64)

    @classmethod
    def of(cls, tallies: Iterable[Tally]) -> Tally:
        """Add up the counts of several runs or batches, and return the sum."""
        total = cls()
        for tally in tallies:
            total.merge(tally)
        return total

    def add(self, done: Rewritten, document: Ids, vocabulary: Vocabulary | None) -> None:
        """Add the counts of one rewritten batch.

        Args:
            document: (n_texts,) the document of each text.
            vocabulary: the vocabulary of the perturbed tokens; None without perturbed tokens.
        """
        encoded = done.encoded
        is_perturbed = done.action == Action.PERTURBED.value
        changed = is_perturbed & (done.rows != encoded.rows)
        self.actions += count_actions(encoded.classes, done.action)
        self.found += count_found(encoded, done.action)
        self.has_detector |= encoded.found is not None
        self.has_bank |= done.n_in_bank is not None
        self.numbers += Counter(
            n_documents=len(np.unique(document)),
            n_texts=encoded.n_texts,
            n_words_in=int(encoded.n_words.sum()),
            n_words_out=int(done.out_words.sum()),
            n_changed=int(changed.sum()),
            n_in_bank=done.n_in_bank or 0,
        )
        self.epsilon.add(done.per_text(done.token_epsilon))
        is_same = is_perturbed & ~changed | (done.action == Action.KEPT.value)
        self.by_percent += _percents_unchanged(encoded.classes, is_same, document[encoded.text_of])
        if vocabulary is not None:
            before, after = (vocabulary.number[rows[changed]] for rows in (encoded.rows, done.rows))
            lengths = vocabulary.lengths[before] * vocabulary.lengths[after]
            dot = pair_products(vocabulary.vectors, before, after)
            cosines = np.zeros(len(changed))
            cosines[changed] = np.divide(dot, lengths, out=np.zeros(len(dot)), where=lengths > 0)
            self.cosine.add(done.per_text(cosines))

    def merge(self, other: Tally) -> None:
        """Add the counts of ``other`` to these counts."""
        self.actions += other.actions
        self.found += other.found
        self.has_detector |= other.has_detector
        self.has_bank |= other.has_bank
        self.numbers += other.numbers
        self.epsilon += other.epsilon
        self.cosine += other.cosine
        self.by_percent += other.by_percent

    def counts(self) -> RunCounts:
        """Return all counts of the run, most of which only the operator may see. A share whose
        denominator is 0 is null.
        """
        by_action = self.actions.sum(axis=0)
        numbers = self.numbers
        n = int(by_action.sum())
        perturbed = int(by_action[Action.PERTURBED])

        def share(part: float, whole: float) -> float | None:
            return round(part / whole, 9) if whole else None

        return RunCounts(
            **{
                name: numbers[name]
                for name in ("n_documents", "n_texts", "n_words_in", "n_words_out")
            },
            n_tokens_in=n,
            n_tokens_out=n - int(by_action[Action.DROPPED]),
            n_perturbed=perturbed,
            n_kept=int(by_action[Action.KEPT]),
            n_dropped=int(by_action[Action.DROPPED]),
            n_sampled=int(by_action[Action.SAMPLED]),
            by_class=class_counts(self.actions),
            share_unchanged=share(perturbed - numbers["n_changed"], perturbed),
            mean_cosine=share(float(self.cosine), numbers["n_changed"]),
            unprotected_share=share(int(by_action[Action.KEPT]), n) or 0.0,
            epsilon_spent_mean=share(float(self.epsilon), numbers["n_texts"]),
            **({"found": found_counts(self.found)} if self.has_detector else {}),
            **({"n_in_bank": numbers["n_in_bank"]} if self.has_bank else {}),
        )

    def document_shares(self) -> DocumentShares | None:
        """Return the distribution, over documents, of the share of content words that stayed
        unchanged, or None if there are no documents.
        """
        below = np.cumsum(self.by_percent)
        if not (n := int(below[-1])):
            return None
        return DocumentShares(
            documents=n,
            median_unchanged=int(np.searchsorted(below, n / 2)) / 100,
            worst_tenth_unchanged=int(np.searchsorted(below, n * 0.9)) / 100,
            nearly_verbatim=int(self.by_percent[NEARLY_VERBATIM:].sum()),
        )


def _percents_unchanged(
    classes: npt.NDArray[np.int8], is_same: npt.NDArray[np.bool_], document: Ids
) -> Int64:
    """Count documents by the percentage of their content words that stayed unchanged, shape (101,).
    Each argument has one value per token.
    """
    is_content = np.isin(classes, (TokenClass.WORD.value, TokenClass.OOV.value))
    n_words = np.bincount(document[is_content])
    n_same = np.bincount(document[is_content & is_same], minlength=len(n_words))
    has_words = n_words > 0
    return np.bincount(-(-100 * n_same[has_words] // n_words[has_words]), minlength=101)


def coverage(actions: Int64) -> float | None:
    """Return the share of words that are in the vocabulary, or None without words, from token
    counts by class and action. Tokens found by detectors do not count.
    """
    n_words = int(actions[[TokenClass.WORD, TokenClass.STOPWORD, TokenClass.OOV]].sum())
    return 1 - int(actions[TokenClass.OOV].sum()) / n_words if n_words else None


def unprotected_share(actions: Int64) -> float | None:
    """Return the share of tokens that are kept unchanged, from token counts by class and action,
    without tokens that a detector found.
    """
    n_tokens = int(actions.sum())
    return int(actions[:, Action.KEPT].sum()) / n_tokens if n_tokens else None


def class_counts(actions: Int64) -> ClassCounts:
    """Return the number of tokens of each class by action, without the tokens that a detector
    found.
    """
    kinds = TokenClass.labels()
    labels = Action.labels()
    if actions[TokenClass.SENTENCE].any():
        kinds = [*kinds, TokenClass.SENTENCE.label]
    rows = [TokenClass[kind.upper()].value for kind in kinds]
    ordinary = actions[rows, : len(labels)].tolist()
    per_class = [ActionCounts(**dict(zip(labels, row, strict=True))) for row in ordinary]
    return ClassCounts(**dict(zip(kinds, per_class, strict=True)))


def found_counts(found: FoundCounts) -> dict[str, dict[str, int]]:
    """Return the number of tokens that detectors found, by type and action."""
    counts: dict[str, dict[str, int]] = {}
    for (kind, action), n in sorted(found.items()):
        counts.setdefault(kind, {})[action] = n
    return counts


class SpendHistogram:
    """Distribution of the epsilon spent per document: smallest, largest and mean, and the number of
    documents by the spent share of the budget.
    """

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.n = 0
        self.least = np.inf
        self.most = 0.0
        # smallest epsilon of a document that spends any
        self.least_of_token = np.inf
        self.most_of_token = 0.0
        self.total = ExactSum()
        self.bins = np.zeros(BINS, dtype=np.int64)

    def add(self, spent: Floats, per_token: Floats) -> None:
        """Add documents, given the epsilon of each document and the largest epsilon of its
        tokens.
        """
        if not len(spent):
            return
        self.n += len(spent)
        self.least, self.most = (
            min(self.least, float(spent.min())),
            max(self.most, float(spent.max())),
        )
        self.most_of_token = max(self.most_of_token, float(per_token.max()))
        self.least_of_token = min(
            self.least_of_token, float(per_token.min(initial=np.inf, where=per_token > 0))
        )
        self.total.add(spent)
        part = spent / self.budget if self.budget > 0 else np.zeros(len(spent))
        # A document that spends its whole budget belongs into the last bin, however the sum of its
        # equal parts is rounded.
        self.bins += np.bincount(
            np.clip((part * BINS).astype(np.int64), 0, BINS - 1), minlength=BINS
        )

    def merge(self, other: SpendHistogram) -> None:
        """Add the documents of another histogram, which must have the same budget."""
        self.budget, self.n = self.budget or other.budget, self.n + other.n
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.most_of_token = max(self.most_of_token, other.most_of_token)
        self.least_of_token = min(self.least_of_token, other.least_of_token)
        self.total += other.total
        self.bins += other.bins

    def summary(self) -> SpendSummary:
        """Return the distribution in the form of a privacy record."""
        return SpendSummary(
            documents=self.n,
            least=self.least if self.n else None,
            most=self.most if self.n else None,
            mean=float(self.total) / self.n if self.n else None,
            min_token_epsilon=self.least_of_token if np.isfinite(self.least_of_token) else None,
            max_token_epsilon=self.most_of_token if self.n else None,
            histogram=SpendBins(parts_of_budget=BINS, documents=self.bins.tolist()),
        )


def count_actions(kind: Codes, action: Codes) -> npt.NDArray[np.int64]:
    """Count the tokens of each class by the action on them (such as perturbed or kept), shape
    (n_classes, n_actions).
    """
    shape = len(TokenClass), len(Action)
    return np.bincount(
        kind.astype(np.int64) * shape[1] + action, minlength=shape[0] * shape[1]
    ).reshape(shape)


@dataclass(frozen=True, slots=True, repr=False)
class RewrittenChunk:
    """The rewritten texts of a chunk of rows, as a worker returns them. They contain no source
    text, except for texts that were left unchanged.

    Attributes:
        texts: the texts of each document.
        tokens: the action on each token, with the columns of ``TOKEN_LOG``; no source word.
        spent: (n_documents,) epsilon spent on each document.
        per_token: (n_documents,) the largest epsilon of the document's tokens.
    """

    texts: ArrowRows
    tokens: pa.Table
    tally: Tally
    spent: Floats
    per_token: Floats


def merge_chunks(
    parts: Iterable[tuple[T | None, RewrittenChunk]],
) -> Iterator[tuple[T, RewrittenChunk]]:
    """Join the rewritten parts of each batch into one chunk, and yield it with the object that the
    batch was paired with.
    """
    waiting: list[RewrittenChunk] = []
    for companion, part in parts:
        waiting.append(part)
        if companion is not None:
            yield companion, _joined(waiting)
            waiting = []


def _joined(parts: Sequence[RewrittenChunk]) -> RewrittenChunk:
    """Concatenate consecutive chunks into one chunk."""
    if len(parts) == 1:
        return parts[0]
    return RewrittenChunk(
        ArrowRows(
            [
                pa.concat_arrays(columns)
                for columns in zip(*(part.texts.columns for part in parts), strict=True)
            ]
        ),
        pa.concat_tables([part.tokens for part in parts]).combine_chunks(),
        Tally.of(part.tally for part in parts),
        np.concatenate([part.spent for part in parts]),
        np.concatenate([part.per_token for part in parts]),
    )
