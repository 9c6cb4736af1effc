"""The one engine that rewrites texts: plan, rewrite, token log; in any workers, with the same result.

It is given a model and settings and reads neither params.yaml nor the current folder. Files, columns in memory and the
DVC stage are adapters of it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil.accounting.budgets import SEGMENTATION_OF, Action, DocumentBudget, epsilon_per_part
from lexveil.accounting.guarantee import Guarantee
from lexveil.accounting.measurements import Measurement, Structure, check_spent
from lexveil.accounting.shares import CLASSES, ShareClasses, Shares
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.config import MachineParams
from lexveil.detectors.given import GivenSpans
from lexveil.formats.chunks import Texts
from lexveil.privatization.batches import Batch, FlatTexts
from lexveil.privatization.count import Plan, count_planned, plan_tokens
from lexveil.privatization.found import FoundCounts, count_found, forms_of, given_in, plan_found
from lexveil.privatization.keys import keys_of
from lexveil.privatization.measured import guarantee_of, measurement_of
from lexveil.privatization.model import Model
from lexveil.privatization.rewrite import Rewritten, count_actions
from lexveil.privatization.rewriter import Rewriter, TextBatch
from lexveil.privatization.rewritten_chunk import RewrittenChunk, in_parts, whole
from lexveil.privatization.settings import Settings
from lexveil.privatization.tally import Tally
from lexveil.runtime.pool import Workers, ordered_map
from lexveil.runtime.stage import Progress
from lexveil.text.encode import Encoded, Lexicon, TokenClass, encode
from lexveil.text.languages.scripts import first_without_spaces
from lexveil.text.render import copied_layout
from lexveil.types import Floats, Ids

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")

ALONE = 4_000_000  # tokens that one process counts sooner than more processes begin

# What the engine says of every token; an adapter chooses the columns of its token log.
TOKEN_LOG = pa.schema(
    [
        ("row", pa.int64()),
        ("position", pa.int32()),
        ("class", pa.dictionary(pa.int8(), pa.string())),
        ("epsilon", pa.float64()),
        ("action", pa.dictionary(pa.int8(), pa.string())),
        ("column", pa.dictionary(pa.int16(), pa.string())),
        ("n_words", pa.int8()),
        ("word_id", pa.int32()),
        ("share", pa.dictionary(pa.int8(), pa.string())),
        ("type", pa.string()),  # of what a detector found
    ]
)


def token_log_columns(n_columns: int, settings: Settings) -> tuple[str, ...]:
    """The columns of the token log of a user's rows: without output words, with the text column if there are several.

    Where classes of tokens have shares of their own, the log says which class each token is of, and where there are
    detectors, the type of what they found.

    Args:
        n_columns: text columns.
    """
    has = {"column": n_columns > 1, "share": settings.shares is not None, "type": settings.detection is not None}
    return ("row", "position", "class", "epsilon", "action", *(name for name, is_there in has.items() if is_there))


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """What a batch holds, before any noise is drawn.

    Attributes:
        counts: (4, n_documents) words, tokens, parts of the budget, words in those; see ``count_planned``.
        by_class: (n_classes, n_actions) tokens of each class that meet each action.
        documents: those in which there is any text.
        texts: texts in them.
        found: what detectors found: tokens by type and action.
        keys: of the documents by their texts, where the batch asks for them.
        without_spaces: row, column and script of the first text that cannot be cut into words; None if there is none.
    """

    counts: Ids
    by_class: Ids
    documents: int
    texts: int
    found: FoundCounts
    keys: list[str] | None = None
    without_spaces: tuple[int, int, str] | None = None


@dataclass(frozen=True, slots=True)
class ChunkCounter:
    """Counts a batch, in any process."""

    lexicon: Lexicon
    vocabulary: Vocabulary
    settings: Settings
    shares: ShareClasses | None = None

    def __call__(self, batch: Batch) -> ChunkCounts:
        """Count the tokens of a batch."""
        flat = FlatTexts.of(batch.rows)
        encoded, plan = plan_texts(flat, self.lexicon, self.vocabulary, self.settings, self.shares, batch.given)
        counts = count_planned(encoded, plan, flat.document, flat.n_documents)
        keys = keys_of(batch.rows, flat, encoded) if batch.for_ledger else None
        refused = None
        if (foreign := first_without_spaces(flat.texts, encoded.forms)) is not None:
            refused = (int(flat.document[foreign[0]]), int(flat.column[foreign[0]]), foreign[1])
        return ChunkCounts(
            counts,
            count_actions(encoded.classes, plan.action),
            len(np.unique(flat.document)),
            len(flat.texts),
            count_found(encoded, plan.action),
            keys,
            refused,
        )


@dataclass(frozen=True, slots=True)
class ChunkRewriter:
    """Rewrites a batch and accounts for it, in any process.

    Attributes:
        rewriter: None leaves all texts as they are.
        columns: the names of the text columns.
        column_keys: (n_columns,) what each column adds to a document's key.
        budget: of each document; None if batches bring the epsilon of their tokens.
        shares: the class of each word that decides its share of the budget; None if all have the same.
        log: the columns of ``TOKEN_LOG`` that are asked for; the others take time on their way between processes.
    """

    settings: Settings
    rewriter: Rewriter | None
    columns: tuple[str, ...]
    column_keys: tuple[tuple[str, ...], ...]
    budget: DocumentBudget | None = None
    shares: ShareClasses | None = None
    log: tuple[str, ...] = tuple(TOKEN_LOG.names)

    def __call__(self, batch: Batch) -> RewrittenChunk:
        """Rewrite the texts of a batch."""
        flat, tally = FlatTexts.of(batch.rows), Tally()
        rewritten = self.rewrite(flat, batch)
        vocabulary = self.rewriter.vocabulary if self.rewriter else None
        tally.add(rewritten, len(np.unique(flat.document)), vocabulary)
        per_text = rewritten.per_text(rewritten.epsilon)
        spent = np.bincount(flat.document, weights=per_text, minlength=flat.n_documents).astype(np.float64)
        per_token = np.zeros(flat.n_documents)
        np.maximum.at(per_token, flat.document[rewritten.encoded.text_of], rewritten.epsilon)
        if self.budget is not None:
            parts = np.ones(len(rewritten.action)) if rewritten.parts is None else rewritten.parts.astype(np.float64)
            per_part = np.zeros(flat.n_documents)
            np.maximum.at(per_part, flat.document[rewritten.encoded.text_of], rewritten.epsilon / parts)
            paid = rewritten.per_text(np.where(rewritten.epsilon > 0, parts, 0.0))
            n_paid = np.bincount(flat.document, weights=paid, minlength=flat.n_documents)
            check_spent(spent, per_token, per_part, n_paid.astype(np.float64), self.budget)
        texts = flat.rows(rewritten.texts, len(self.columns))
        return RewrittenChunk(texts, self._token_log(rewritten, flat, batch.first_row), tally, spent, per_token)

    def at(self, budget: DocumentBudget) -> ChunkRewriter:
        """The same at another budget of each document, which with the texts' keys names the noise of a seeded run."""
        rewriter = self.rewriter and self.rewriter.named(repr(budget.total))
        return replace(self, rewriter=rewriter, budget=budget)

    def rewrite(self, flat: FlatTexts, batch: Batch) -> Rewritten:
        """Rewrite the texts of a batch, laid out. What comes back holds source text."""
        rewriter = self.rewriter
        if rewriter is None:
            return unchanged(flat.texts)
        planned = plan_texts(flat, rewriter.lexicon, rewriter.vocabulary, self.settings, self.shares, batch.given)
        epsilon = batch.epsilon
        if epsilon is None:
            assert self.budget is not None
            counts = count_planned(*planned, flat.document, flat.n_documents)
            epsilon = allocate(self.settings.strategy, self.budget, counts, self.shares)[flat.document]
        keys = [
            (*batch.keys[document], *self.column_keys[column])
            for document, column in zip(flat.document.tolist(), flat.column.tolist(), strict=True)
        ]
        return rewriter(TextBatch(flat.texts, epsilon, keys, flat.document), planned)

    def _token_log(self, rewritten: Rewritten, flat: FlatTexts, first_row: int) -> pa.Table:
        text_of, found = rewritten.encoded.text_of, rewritten.encoded.found
        with_found = found is not None
        columns: dict[str, Callable[[], pa.Array]] = {
            "row": lambda: pa.array((flat.document + first_row)[text_of]),
            "position": lambda: pa.array(rewritten.position),
            "class": lambda: _labelled(rewritten.encoded.classes, TokenClass.labels(with_found=with_found)),
            "epsilon": lambda: pa.array(rewritten.epsilon),
            "action": lambda: _labelled(rewritten.action, Action.labels(with_found=with_found)),
            "column": lambda: _labelled(flat.column[text_of], self.columns),
            "n_words": lambda: pa.array(rewritten.out_words),
            "word_id": lambda: pa.array(rewritten.rows.astype(np.int32)),
            "share": lambda: _labelled(
                np.zeros(len(text_of), dtype=np.int8) if rewritten.share is None else rewritten.share, CLASSES
            ),
            "type": lambda: (
                pa.nulls(len(text_of), pa.string()) if found is None else pa.array(found.names(), pa.string())
            ),
        }
        return pa.table(
            [columns[name]() for name in self.log], schema=pa.schema([TOKEN_LOG.field(name) for name in self.log])
        )


def _labelled(numbers: npt.NDArray[Any], labels: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(numbers, pa.array(labels, pa.string()))


@dataclass(frozen=True, slots=True)
class ChunkWorker:
    """Counts batches and then rewrites them at a budget, in processes that do both.

    Attributes:
        rewriter: at any budget.
    """

    counter: ChunkCounter
    rewriter: ChunkRewriter

    def __call__(self, work: tuple[Batch, DocumentBudget | None]) -> Any:
        """The ``ChunkCounts`` of a batch, or with a budget its ``RewrittenChunk``."""
        batch, budget = work
        return self.counter(batch) if budget is None else self.rewriter.at(budget)(batch)


def plan_texts(
    flat: FlatTexts,
    lexicon: Lexicon,
    vocabulary: Vocabulary,
    settings: Settings,
    shares: ShareClasses | None = None,
    given: Sequence[GivenSpans] | None = None,
) -> tuple[Encoded, Plan]:
    """The tokens of a batch, and what is to happen to each; ``given`` as of ``Batch``."""
    detection = settings.detection
    claim = None if detection is None else detection.claim(flat.texts, given_in(flat, given or ()))
    encoded = encode(flat.texts, lexicon, claim)
    document_of = flat.document if settings.consistent else None
    plan = plan_tokens(encoded, vocabulary.number, settings.policy, document_of, shares)
    if detection is not None:
        plan = plan_found(encoded, plan, detection, flat.document, consistent=settings.consistent)
    return encoded, plan


def allocate(strategy: str, budget: DocumentBudget, counts: Ids, shares: ShareClasses | None = None) -> Floats:
    """(n_documents,) epsilon of each part of the budget, from the counts of ``ChunkCounts``."""
    return epsilon_per_part(strategy, budget, counts[2], counts[3], 1 if shares is None else shares.most)


def unchanged(texts: Sequence[str]) -> Rewritten:
    """Every token kept, every text as it is."""
    encoded = encode(texts, Lexicon.build("word", [], None))
    n = len(encoded.rows)
    # No vocabulary is involved, so no word is out of it.
    encoded.kind[encoded.kind == TokenClass.OOV.value] = TokenClass.WORD
    return Rewritten(
        encoded,
        texts,
        action=np.full(n, Action.KEPT, dtype=np.int8),
        epsilon=np.zeros(n),
        rows=np.full(n, -1, dtype=np.int64),
        out_words=np.ones(n, dtype=np.int8),
    )


@dataclass(slots=True)
class InputTotals:
    """What a whole input holds, added up batch by batch.

    Attributes:
        totals: words, tokens, parts of the budget, words in those.
        by_class: (n_classes, n_actions) tokens of each class that meet each action.
        documents: rows in which there is any text.
        found: what detectors found: tokens by type and action.
    """

    rows: int
    documents: int
    texts: int
    totals: Ids
    by_class: Ids
    found: FoundCounts

    @classmethod
    def empty(cls) -> InputTotals:
        """Nothing yet."""
        by_class = np.zeros((len(TokenClass), len(Action)), dtype=np.int64)
        return cls(0, 0, 0, np.zeros(4, dtype=np.int64), by_class, FoundCounts())

    def add(self, counted: ChunkCounts) -> None:
        """Add what a batch holds."""
        self.rows += counted.counts.shape[1]
        self.documents += counted.documents
        self.texts += counted.texts
        self.totals += counted.counts.sum(axis=1)
        self.by_class += counted.by_class
        self.found += counted.found


class Engine:
    """Counts and rewrites batches with the artifacts of a model.

    Raises:
        MissingArtifact: if no run has made them.
        ParameterError: if a parameter does not suit the mechanism or the words.
    """

    def __init__(self, settings: Settings, model: Model) -> None:
        self.settings, self.model = settings, model
        self.segmentation = SEGMENTATION_OF[settings.strategy]
        self.lexicon = model.lexicon(settings.strategy)
        self.prepared = model.mechanism(settings.mechanism, settings.strategy, settings.policy)
        self.shares = None if settings.shares is None else self._classes(settings.shares)

    def _classes(self, shares: Shares) -> ShareClasses:
        classes = shares.over(self.lexicon.tokens, self.lexicon.function_words)
        shares.require_several(classes, self.perturbed_rows)
        return classes

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that go into the mechanism and come out of it."""
        return self.prepared.vocabulary

    @cached_property
    def perturbed_rows(self) -> Ids:
        """The rows of the embedding whose words are perturbed: without stop words, where the policy treats these."""
        rows = self.vocabulary.rows
        if self.settings.policy.stopwords == "perturb":
            return rows
        return rows[[self.lexicon.tokens[row] not in self.lexicon.function_words for row in rows.tolist()]]

    def made_with(self) -> dict[str, str]:
        """The sha256 of the artifacts that decide what comes out, by the names that a record gives them."""
        return self.model.hashes(self.settings.strategy) | self.prepared.hashes()

    @property
    def is_budget_public(self) -> bool:
        """Whether the budget is known before any text is read; else it follows from the data set."""
        return self.settings.average_words != "data"

    def budget(self, totals: InputTotals | None = None) -> DocumentBudget:
        """What each document may spend; of ``totals`` only if it follows from the data set.

        Raises:
            MissingArtifact: if it follows from the corpus, and no run has counted its words.
        """
        settings, average = self.settings, self.settings.average_words
        if average == "data":
            assert totals is not None
            average = int(totals.totals[0]) / totals.documents if totals.documents else 0.0
        elif average is None and (settings.budget is None or settings.max_token_epsilon is None):
            average = self.model.average_words()
        cap = math.inf if settings.max_token_epsilon == "none" else settings.max_token_epsilon
        return DocumentBudget.of(settings.epsilon, settings.budget, average, cap)

    def spends(self, counted: ChunkCounts, budget: DocumentBudget) -> Floats:
        """(n_documents,) the epsilon that each document will spend, exactly."""
        counts = counted.counts
        spent: Floats = allocate(self.settings.strategy, budget, counts, self.shares) * counts[2]
        return spent

    def measurement(
        self, budget: DocumentBudget | None = None, n_columns: int = 1, *, withholds: bool = False
    ) -> Measurement:
        """What runs, with what is proven of it; arguments as of ``measurement_of``."""
        return measurement_of(self.settings, self.prepared.mechanism, budget, n_columns, withholds=withholds)

    def guarantee(self, measurement: Measurement, n_columns: int = 1) -> Guarantee:
        """The statement of a record."""
        structure = self.model.structure(self.settings.strategy, self.settings.policy)
        return guarantee_of(measurement, self.settings, self.prepared.mechanism, structure, n_columns)

    def structures(
        self, rows: Texts, budget: DocumentBudget, given: Sequence[GivenSpans] | None = None
    ) -> list[Structure]:
        """The disclosed structure of each document; ``given`` as of ``Batch``."""
        flat = FlatTexts.of(rows)
        encoded, plan = plan_texts(flat, self.lexicon, self.vocabulary, self.settings, self.shares, given)
        counts = count_planned(encoded, plan, flat.document, flat.n_documents)
        document = flat.document[encoded.text_of]
        epsilon = np.where(plan.pays, allocate(self.settings.strategy, budget, counts, self.shares)[document], 0.0)
        epsilon *= 1 if plan.parts is None else plan.parts
        leader = np.arange(len(document)) if plan.leader is None else plan.leader
        layout = copied_layout(encoded, flat.texts) if self.settings.keep_layout else [()] * len(flat.texts)
        structures = []
        for number in range(flat.n_documents):
            own = np.flatnonzero(document == number)
            kept = own[plan.action[own] == Action.KEPT.value]
            structures.append(
                Structure(
                    plan.action[own],
                    epsilon[own],
                    leader[own] - (own[0] if len(own) else 0),
                    flat.column[encoded.text_of[own]].astype(np.int64),
                    tuple(encoded.words[first] for first in encoded.first_word[kept].tolist()),
                    tuple(part for text in np.flatnonzero(flat.document == number) for part in layout[text]),
                    () if encoded.found is None else tuple(encoded.found.names()[token] for token in own.tolist()),
                    forms_of(encoded, plan, flat.texts, own),
                )
            )
        return structures

    def rewriter(self, budget_name: str) -> Rewriter:
        """What rewrites texts; with their keys ``budget_name`` names the noise of a seeded run."""
        settings = self.settings
        return Rewriter(
            self.lexicon,
            self.vocabulary,
            self.prepared.mechanism,
            settings.policy,
            (settings.mechanism, settings.strategy, budget_name),
            settings.seed,
            settings.detection,
            keep_layout=settings.keep_layout,
        )

    def chunk_rewriter(self, columns: Sequence[str], budget: DocumentBudget) -> ChunkRewriter:
        """What rewrites batches of documents with these text columns, each at the same budget."""
        # The first column adds nothing to a key, so that a file of one column is its own experiment by any name.
        column_keys = ((), *((name,) for name in columns[1:]))
        rewriter = self.rewriter(repr(budget.total))
        return ChunkRewriter(self.settings, rewriter, tuple(columns), column_keys, budget, self.shares)

    def chunk_worker(self, columns: Sequence[str]) -> ChunkWorker:
        """What counts batches of documents with these text columns, and then rewrites them."""
        rewriter = self.chunk_rewriter(columns, DocumentBudget(0.0, 0.0))
        return ChunkWorker(self._counter(), replace(rewriter, log=self._log_of_rows(columns)))

    def _log_of_rows(self, columns: Sequence[str]) -> tuple[str, ...]:
        return token_log_columns(len(columns), self.settings)

    def _counter(self) -> ChunkCounter:
        return ChunkCounter(self.lexicon, self.vocabulary, self.settings, self.shares)

    def count(
        self, batches: Iterable[tuple[T, Batch]], workers: int | Workers[Any, Any], progress: Progress
    ) -> Iterator[tuple[T, ChunkCounts]]:
        """Count batches, in order.

        Args:
            workers: that have a ``chunk_worker``; a number is that many processes, of which others than this one begin
                if there is much to count.
        """
        counter = self._counter()
        given, n_tokens = iter(batches), 0

        def alone() -> Iterator[tuple[T, ChunkCounts]]:
            while n_tokens < ALONE:
                if (item := next(given, None)) is None:
                    return
                yield item[0], counter(item[1])
            assert isinstance(workers, int)
            yield from map_batches(counter, given, workers)

        results = _paired(workers.map, _to_do(batches, None)) if isinstance(workers, Workers) else alone()
        for companion, counted in results:
            tokens = int(counted.counts[1].sum())
            n_tokens += tokens
            progress.advance(counted.counts.shape[1], tokens)
            yield companion, counted

    def rewrite(
        self,
        batches: Iterable[tuple[T, Batch]],
        columns: Sequence[str],
        budget: DocumentBudget,
        workers: int | Workers[Any, Any],
        progress: Progress,
    ) -> Iterator[tuple[T, RewrittenChunk]]:
        """Rewrite batches, in order, each document at the same budget; ``workers`` as of ``count``."""
        mechanism = self.prepared.mechanism
        if not (getattr(mechanism, "on_lists", False) or getattr(mechanism, "on_neighbors", False)):
            yield from whole(self._rewrite(in_parts(batches), columns, budget, workers, progress))
            return
        yield from self._rewrite(batches, columns, budget, workers, progress)

    def _rewrite(
        self,
        batches: Iterable[tuple[T, Batch]],
        columns: Sequence[str],
        budget: DocumentBudget,
        workers: int | Workers[Any, Any],
        progress: Progress,
    ) -> Iterator[tuple[T, RewrittenChunk]]:
        if isinstance(workers, Workers):
            results = _paired(workers.map, _to_do(batches, budget))
        else:
            rewriter = replace(self.chunk_rewriter(columns, budget), log=self._log_of_rows(columns))
            results = map_batches(rewriter, batches, workers)
        for companion, rewritten in results:
            progress.advance(len(rewritten.texts), len(rewritten.tokens))
            yield companion, rewritten


def map_batches(
    function: Callable[[Batch], R], batches: Iterable[tuple[T, Batch]], workers: MachineParams | int
) -> Generator[tuple[T, R], None, None]:
    """What ``function`` makes of each batch, with the batch's companion, which stays in this process."""
    yield from _paired(lambda items: ordered_map(function, items, workers), batches)


def _to_do(
    batches: Iterable[tuple[T, Batch]], budget: DocumentBudget | None
) -> Iterator[tuple[T, tuple[Batch, DocumentBudget | None]]]:
    for companion, batch in batches:
        yield companion, (batch, budget)


def _paired(
    mapped: Callable[[Iterable[A]], Generator[R, None, None]], items: Iterable[tuple[T, A]]
) -> Generator[tuple[T, R], None, None]:
    """What an ordered map makes of each item, with the item's companion."""
    waiting: deque[T] = deque()

    def given() -> Iterator[A]:
        for companion, item in items:
            waiting.append(companion)
            yield item

    with closing(mapped(given())) as results:
        for result in results:
            yield waiting.popleft(), result
