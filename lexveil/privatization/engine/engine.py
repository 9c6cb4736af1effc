"""The one engine that rewrites texts: plan, rewrite, token log; in any workers, with the same result.

It is given a model and settings and reads neither params.yaml nor the current folder. Files, columns in memory and the
DVC stage are adapters of it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from lexveil.accounting.budgets import SEGMENTATION_OF, Action, DocumentBudget
from lexveil.accounting.guarantee import Guarantee
from lexveil.accounting.measurements import Measurement, Structure
from lexveil.accounting.shares import ShareClasses, Shares
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.model import Model
from lexveil.config import MachineParams
from lexveil.detectors.given import GivenSpans
from lexveil.formats.chunks import Texts
from lexveil.privatization.engine.batch import Batch, FlatTexts
from lexveil.privatization.engine.found import forms_of
from lexveil.privatization.engine.measured import guarantee_of, measurement_of
from lexveil.privatization.engine.plan import count_planned
from lexveil.privatization.engine.rewriter import Rewriter
from lexveil.privatization.engine.rewritten_chunk import RewrittenChunk, in_parts, whole
from lexveil.privatization.engine.worker import (
    ChunkCounter,
    ChunkCounts,
    ChunkRewriter,
    ChunkWorker,
    InputTotals,
    allocate,
    plan_texts,
    token_log_columns,
)
from lexveil.privatization.settings import Settings
from lexveil.runtime.pool import Workers, ordered_map
from lexveil.runtime.stage import Progress
from lexveil.text.render import copied_layout
from lexveil.types import Floats, Ids

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")

ALONE = 4_000_000  # tokens that one process counts sooner than more processes begin


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
        if not isinstance(workers, Workers):
            rewriter = replace(self.chunk_rewriter(columns, budget), log=self._log_of_rows(columns))

        def rewritten(given: Iterable[tuple[R, Batch]]) -> Iterator[tuple[R, RewrittenChunk]]:
            if isinstance(workers, Workers):
                results = _paired(workers.map, _to_do(given, budget))
            else:
                results = map_batches(rewriter, given, workers)
            for companion, chunk in results:
                progress.advance(len(chunk.texts), len(chunk.tokens))
                yield companion, chunk

        mechanism = self.prepared.mechanism
        if getattr(mechanism, "on_lists", False) or getattr(mechanism, "on_neighbors", False):
            yield from rewritten(batches)
        else:  # the slow ones, by smaller batches, so that workers end together
            yield from whole(rewritten(in_parts(batches)))


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
