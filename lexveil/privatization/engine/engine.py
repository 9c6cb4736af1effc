"""The one engine that rewrites texts: plan, rewrite, token log; in any workers, with the same result.

It is given a model and settings and reads neither params.yaml nor the current folder. Files, columns in memory and the
DVC stage are adapters of it.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeVar

from lexveil.accounting import measurements
from lexveil.accounting.budgets import DEFAULT_FOUND, SEGMENTATION_OF, DocumentBudget
from lexveil.accounting.expected_recovery import Meaning
from lexveil.accounting.guarantee import Guarantee, StructureFigures
from lexveil.accounting.measurements import Measurement
from lexveil.accounting.shares import ShareClasses, Shares
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.model import Model
from lexveil.artifacts.screened_words import screened_words
from lexveil.errors import LexveilError
from lexveil.mechanisms.registry import Mechanism
from lexveil.privatization.engine.batch import Batch, RewrittenChunk, merge_chunks, split_batches
from lexveil.privatization.engine.rewrite import Components
from lexveil.privatization.engine.screen import is_screened, nearest_of_others
from lexveil.privatization.engine.worker import BatchCounts, BatchWorker, InputTotals, allocate, token_log_schema
from lexveil.privatization.settings import Settings, tell_progress
from lexveil.recovery.public_words import FEW
from lexveil.recovery.stored_curve import StoredCurve
from lexveil.runtime.pool import Workers, process_map
from lexveil.runtime.stage import Progress
from lexveil.types import Floats, Ids

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


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

    @cached_property
    def instead(self) -> Ids | None:
        """(W,) the word that is written where each is drawn; None if it is always that word."""
        if not self.settings.screens or self.model.language != "en":
            return None
        tokens = [self.lexicon.tokens[row] for row in self.vocabulary.rows.tolist()]
        return nearest_of_others(self.vocabulary.vectors, is_screened(tokens, screened_words().words))

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

    def spends(self, counted: BatchCounts, budget: DocumentBudget) -> Floats:
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

    def recovery_curve(self) -> StoredCurve:
        """The expected recovery of these settings by epsilon, from a sample of the words."""
        settings = self.settings
        parts = (self.model, settings.mechanism, settings.strategy, settings.policy, self.prepared)
        return StoredCurve(*parts, tell_progress, FEW)

    def meaning(self, least: float, most: float) -> Meaning | None:
        """What epsilons mean; None if no token got any, or the mechanism refuses one near them.

        Where classes of tokens have shares of the budget an adversary knows the class, and nothing is worked out.

        Args:
            least, most: epsilon of a token.
        """
        if self.settings.shares is not None or not 0 < least <= most < math.inf:
            return None
        try:
            return self.recovery_curve().meaning(least, most)
        except (LexveilError, OSError) as error:  # what is paid for is published, also where nothing can be said of it
            print(f"what epsilon means is not said: {error}", file=sys.stderr)
            return None

    def worker(self, columns: Sequence[str] = ("text",)) -> BatchWorker:
        """What counts and rewrites batches of documents with these text columns."""
        # The first column adds nothing to a key, so that a file of one column is its own experiment by any name.
        column_keys = ((), *((name,) for name in columns[1:]))
        components = Components(self.lexicon, self.vocabulary, self.prepared.mechanism, self.instead)
        log = tuple(token_log_schema(len(columns), self.settings).names)
        return BatchWorker(self.settings, components, tuple(columns), column_keys, self.shares, log)

    def count(
        self, batches: Iterable[tuple[T, Batch]], processes: Workers[Any, Any] | None, progress: Progress
    ) -> Iterator[tuple[T, BatchCounts]]:
        """Count batches, in order.

        Args:
            processes: that have a ``worker``; None is this one.
        """
        for companion, counted in paired(self._map(processes), ((item, (batch, None)) for item, batch in batches)):
            progress.advance(counted.counts.shape[1], int(counted.counts[1].sum()))
            yield companion, counted

    def rewrite(
        self,
        batches: Iterable[tuple[T, Batch]],
        columns: Sequence[str],
        budget: DocumentBudget,
        processes: Workers[Any, Any] | None,
        progress: Progress,
    ) -> Iterator[tuple[T, RewrittenChunk]]:
        """Rewrite batches, in order, each document at the same budget; ``processes`` as of ``count``."""

        def rewritten(given: Iterable[tuple[R, Batch]]) -> Iterator[tuple[R, RewrittenChunk]]:
            work = ((item, (batch, budget)) for item, batch in given)
            for companion, chunk in paired(self._map(processes, columns), work):
                progress.advance(len(chunk.texts), len(chunk.tokens))
                yield companion, chunk

        mechanism = self.prepared.mechanism
        if getattr(mechanism, "on_lists", False) or getattr(mechanism, "on_neighbors", False):
            yield from rewritten(batches)
        else:  # the slow ones, by smaller batches, so that workers end together
            yield from merge_chunks(rewritten(split_batches(batches)))

    def _map(
        self, processes: Workers[Any, Any] | None, columns: Sequence[str] = ("text",)
    ) -> Callable[[Iterable[Any]], Generator[Any, None, None]]:
        return partial(process_map, self.worker(columns), workers=1) if processes is None else processes.map


def paired(
    mapped: Callable[[Iterable[A]], Generator[R, None, None]], items: Iterable[tuple[T, A]]
) -> Generator[tuple[T, R], None, None]:
    """What an ordered map makes of each item, with the item's companion, which stays in this process."""
    waiting: deque[T] = deque()

    def given() -> Iterator[A]:
        for companion, item in items:
            waiting.append(companion)
            yield item

    with closing(mapped(given())) as results:
        for result in results:
            yield waiting.popleft(), result


def measurement_of(
    settings: Settings,
    mechanism: Mechanism,
    budget: DocumentBudget | None = None,
    n_columns: int = 1,
    *,
    withholds: bool = False,
) -> Measurement:
    """What runs, with what is proven of it.

    Args:
        budget: what each document may spend; None where there are several.
        n_columns: text columns of a document.
        withholds: rows are left out where the ledger has nothing left for their subject.
    """
    token = measurements.of_token(mechanism)
    text = measurements.over_tokens(token, settings.policy, seed_is_known=settings.seed is not None)
    text = measurements.over_columns(text, n_columns)
    if settings.screens:
        text = measurements.with_screened_words(text)
    if settings.consistent:
        text = measurements.repeated_alike(text)
    if settings.keep_layout:
        text = measurements.with_layout_copied(text)
    if settings.shares is not None:
        text = measurements.with_shares(text, settings.shares)
    if (detection := settings.detection) is not None:
        text = measurements.with_detectors(text, detection.sources, detection.actions, DEFAULT_FOUND)
    text = measurements.under_strategy(text, settings.strategy, settings.budget_source, budget)
    return measurements.with_rows_withheld(text) if withholds else text


def in_release(settings: Settings) -> Settings:
    """The same settings in a release: the noise is the system's, and the budget a public number."""
    average = None if settings.average_words == "data" else settings.average_words
    cap = None if settings.max_token_epsilon == "none" else settings.max_token_epsilon
    return replace(settings, seed=None, average_words=average, max_token_epsilon=cap)


def guarantee_of(
    measurement: Measurement,
    settings: Settings,
    mechanism: Mechanism,
    structure: StructureFigures | None,
    n_columns: int = 1,
) -> Guarantee:
    """The statement of a record; of an experiment, with that of a release with the same settings."""
    stated = measurement.guarantee(structure)
    if settings.mode != "experiment":
        return stated
    release = measurement_of(in_release(settings), mechanism, n_columns=n_columns)
    return stated.model_copy(update={"in_release": release.guarantee(structure)})
