"""Counting and rewriting of batches of texts in any process: the worker assigns epsilon to each
token and draws its replacement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from lexveil.base.types import Floats, Ids, ModelRows, WordNumbers, WrittenNumbers
from lexveil.core.accounting.budgets import Action, DocumentBudget, epsilon_per_part
from lexveil.core.accounting.measurements import check_spent
from lexveil.core.accounting.shares import ShareClasses
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.mechanisms.base import Generators, TextTokens
from lexveil.core.mechanisms.noise.streams import release_generator, stream
from lexveil.core.mechanisms.registry import Mechanism
from lexveil.core.mechanisms.rejection import DRAWN, FOLLOWS, KEPT, SKIPPED
from lexveil.core.text.encode import Encoded, Lexicon, encode
from lexveil.core.text.languages.scripts import first_without_spaces
from lexveil.core.text.render import NOTHING, render_in_layout
from lexveil.core.text.strings import Strings
from lexveil.io.execution.pool import Workers
from lexveil.io.execution.stage import Progress
from lexveil.release.engine.batch import (
    TOKEN_LOG,
    Batch,
    Rewritten,
    in_plain_layout,
    split_batches,
    unchanged,
)
from lexveil.release.engine.counts import (
    BatchCounts,
    RewrittenChunk,
    Tally,
    count_actions,
    merge_chunks,
)
from lexveil.release.engine.plan import (
    TokenPlan,
    count_found,
    count_planned,
    plan_found,
    plan_tokens,
    write_found,
)
from lexveil.release.settings import Settings

MOST_WORDS = 127  # actions that count the text written in the place of a token

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Components:
    """The parts that a worker needs to rewrite texts. They contain no random generator, so that
    processes cannot share one.

    Attributes:
        instead: (W,) the word that is written in place of each drawn word; None if every drawn word
            is written unchanged.
    """

    lexicon: Lexicon
    vocabulary: Vocabulary
    mechanism: Mechanism
    instead: WrittenNumbers | None = None


@dataclass(frozen=True)
class BatchWorker:
    """Worker that counts batches and rewrites them, in any process. The worker contains no random
    generator, so that processes cannot share one.

    Attributes:
        components: the parts needed to rewrite texts; None leaves all texts unchanged.
        columns: the names of the text columns.
        column_keys: (n_columns,) the keys that each text column adds to a document's random seed.
        shares: the class of each word, which determines the word's share of the budget; None if all
            words have the same share.
        log: the requested columns of ``TOKEN_LOG``; other columns are not sent between processes,
            which saves time.
        budget_name: a name for the budget, which together with mechanism, strategy and keys
            determines the noise of a seeded run; None takes the budget itself.
    """

    settings: Settings
    components: Components | None
    columns: tuple[str, ...] = ("text",)
    column_keys: tuple[tuple[str, ...], ...] = ((),)
    shares: ShareClasses | None = None
    log: tuple[str, ...] = tuple(TOKEN_LOG.names)
    budget_name: str | None = None

    @property
    def is_slow(self) -> bool:
        """Whether one token takes so long to draw that batches are cut into smaller batches."""
        return self.components is None or self.components.mechanism.searched > 0

    def plan(self, batch: Batch) -> tuple[Encoded, TokenPlan]:
        """Return the tokens of a batch, and the planned action on each token."""
        settings = self.settings
        components = self.components
        assert components is not None
        detection = settings.detection
        claim = None if detection is None else detection.claim(batch.texts, batch.given_spans)
        encoded = encode(batch.texts, components.lexicon, claim)
        document_of = batch.document if settings.consistent else None
        plan = plan_tokens(
            encoded, components.vocabulary.number, settings.policy, document_of, self.shares
        )
        if detection is not None:
            plan = plan_found(
                encoded, plan, detection, batch.document, consistent=settings.consistent
            )
        return encoded, plan

    def count(self, batch: Batch) -> BatchCounts:
        """Count the tokens of a batch, by document, class and planned action."""
        encoded, plan = self.plan(batch)
        refused = None
        if (foreign := first_without_spaces(batch.texts, encoded.forms)) is not None:
            refused = (int(batch.document[foreign[0]]), int(batch.column[foreign[0]]), foreign[1])
        return BatchCounts(
            count_planned(encoded, plan, batch.document, len(batch)),
            count_actions(encoded.classes, plan.action),
            len(np.unique(batch.document)),
            len(batch.texts),
            count_found(encoded, plan.action),
            batch.text_keys if batch.for_ledger else None,
            refused,
        )

    def rewrite(self, batch: Batch, budget: DocumentBudget | None = None) -> RewrittenChunk:
        """Rewrite the texts of a batch, and count the actions and the spent epsilon.

        Args:
            budget: the budget of each document; None if the batch states the epsilon of its tokens.
        """
        done = self.draw(batch, budget)
        tally = Tally()
        document = batch.document
        n = len(batch)
        tally.add(done, document, None if self.components is None else self.components.vocabulary)
        document_of = document[done.encoded.text_of]
        epsilon = done.token_epsilon
        spent = np.bincount(document, weights=done.per_text(epsilon), minlength=n).astype(
            np.float64
        )
        per_token = np.zeros(n)
        np.maximum.at(per_token, document_of, epsilon)
        if budget is not None:
            parts = (
                np.ones(len(epsilon))
                if done.plan.parts is None
                else done.plan.parts.astype(np.float64)
            )
            per_part = np.zeros(n)
            np.maximum.at(per_part, document_of, epsilon / parts)
            n_parts = np.bincount(
                document, weights=done.per_text(np.where(epsilon > 0, parts, 0.0)), minlength=n
            )
            check_spent(spent, per_token, per_part, n_parts.astype(np.float64), budget)
        tokens = done.token_log(self.log, document + batch.first_row, batch.column, self.columns)
        return RewrittenChunk(batch.with_texts(done.texts), tokens, tally, spent, per_token)

    def draw(self, batch: Batch, budget: DocumentBudget | None = None) -> Rewritten:
        """Rewrite the texts of a batch, without counting. The result holds source text."""
        if self.components is None:
            return unchanged(batch.texts)
        settings = self.settings
        encoded, plan = self.plan(batch)
        part_epsilon = batch.part_epsilon
        if part_epsilon is None:
            assert budget is not None
            counts = count_planned(encoded, plan, batch.document, len(batch))
            part_epsilon = allocate(settings.strategy, budget, counts, self.shares)[batch.document]
        budget_name = self.budget_name or repr(None if budget is None else budget.total)
        written = NOTHING
        if settings.detection is not None:
            generator = self._generator(batch, budget_name, "found")
            written = write_found(
                encoded, plan, batch.texts, settings.detection, batch.document, generator
            )
        generator = self._generator(batch, budget_name)
        planned = (encoded, plan)
        return rewrite(
            batch.texts,
            planned,
            part_epsilon,
            self.components,
            generator,
            written,
            keep_layout=settings.keep_layout,
        )

    def _generator(self, batch: Batch, budget_name: str, *purpose: str) -> Generators:
        """Return the random generator for a batch. In a release, one new generator with a key from
        the operating system serves the whole batch; in an experiment, each text has a seeded
        generator of its own.
        """
        seed = self.settings.seed
        settings = self.settings
        if seed is None:
            return release_generator()

        def generator_of(text: int) -> np.random.Generator:
            place = int(batch.place[text])
            keys = (
                *batch.keys[int(batch.document[text])],
                *self.column_keys[int(batch.column[text])],
                *([f"[{place}]"] if place else []),
            )
            return stream(seed, settings.mechanism, settings.strategy, budget_name, *keys, *purpose)

        return generator_of


def allocate(
    strategy: str, budget: DocumentBudget, counts: Ids, shares: ShareClasses | None = None
) -> Floats:
    """Divide the budget of each document by the rule of a strategy. Return the epsilon of each part
    of the budget, shape (n_documents,).
    """
    return epsilon_per_part(
        strategy, budget, counts[2], counts[3], 1 if shares is None else shares.most
    )


def rewrite(
    texts: Strings,
    planned: tuple[Encoded, TokenPlan],
    part_epsilon: Floats,
    components: Components,
    generator: Generators,
    written: Mapping[int, str] = NOTHING,
    *,
    keep_layout: bool = False,
) -> Rewritten:
    """Rewrite a batch of texts by a plan.

    Args:
        planned: the texts' tokens, and the action for each token.
        part_epsilon: (n_texts,) the epsilon of each part of the budget that a token of the text
            spends.
        generator: the random generator; in an experiment, a function that returns the generator of
            each text.
        written: replacement texts by token, as in ``Rewritten``.
        keep_layout: whether to copy the writer's white space and capitals, which are not protected.
    """
    lexicon = components.lexicon
    vocabulary = components.vocabulary
    encoded, plan = planned
    action = plan.action
    pays = plan.pays
    spent = np.where(pays, part_epsilon[encoded.text_of], 0.0)
    if plan.parts is not None:
        spent *= plan.parts  # the product is exact, because both factors have few bits
    numbers = _draw(planned, spent, components, generator)
    written_numbers = WrittenNumbers(numbers)
    if components.instead is not None:
        written_numbers = WrittenNumbers(np.where(numbers >= 0, components.instead[numbers], -1))
    rows = vocabulary.rows_of(written_numbers)
    new = rows >= 0
    kept = np.flatnonzero(action == Action.KEPT.value)
    out_words = np.zeros(len(action), dtype=np.int8)
    out_words[new] = lexicon.n_words[rows[new]]
    out_words[kept] = 1  # only single words are kept, because every collocation has a vector
    for token, text in written.items():
        out_words[token] = min(len(text.split()), MOST_WORDS)
    if keep_layout:
        tokens: list[str | None] = [
            lexicon.tokens[row] if row >= 0 else None for row in rows.tolist()
        ]
        for token, first in zip(kept.tolist(), encoded.first_word[kept].tolist(), strict=True):
            tokens[token] = encoded.words[first]
        rewritten = Strings(
            pa.array(render_in_layout(tokens, encoded, texts, written), pa.large_string())
        )
    else:
        rewritten = in_plain_layout(
            encoded, lexicon, rows, kept, action != Action.DROPPED.value, written
        )
    return Rewritten(encoded, plan, rewritten, spent, rows, out_words, written)


def _draw(
    planned: tuple[Encoded, TokenPlan], spent: Floats, components: Components, generator: Generators
) -> WordNumbers:
    """Draw the word that replaces each token, and return the words' indices in the vocabulary of
    the mechanism, shape (n,). The index is -1 for a token that is neither perturbed nor sampled.

    A mechanism may weigh each replacement by the words written before it, which are public.

    Args:
        spent: (n,) epsilon of each token.
    """
    encoded, plan = planned
    action = plan.action
    n = len(action)
    leader = np.arange(n) if plan.leader is None else plan.leader
    replaced = (action == Action.PERTURBED.value) | (action == Action.SAMPLED.value)
    drawn = replaced & (leader == np.arange(n))
    # The context must not include a match of a detector. By its class such a token is KEPT,
    # although its action is another one.
    kind = np.full(n, KEPT)
    about = np.where(action == Action.KEPT.value, encoded.rows, -1)
    kind[action == Action.DROPPED.value] = SKIPPED
    about[replaced] = leader[replaced]
    kind[replaced] = FOLLOWS
    kind[drawn] = DRAWN
    about[drawn] = np.arange(int(drawn.sum()))
    is_first = np.append(True, np.diff(encoded.text_of) > 0)[:n]
    unlisted = np.flatnonzero((action == Action.KEPT.value) & (about < 0))
    form = encoded.word[encoded.first_word[unlisted]]
    is_kept = np.zeros(len(encoded.forms), dtype=bool)
    is_kept[form] = True
    about[unlisted] = -1 - np.cumsum(is_kept)[form]
    mechanism = components.mechanism
    instead = np.arange(mechanism.size) if components.instead is None else components.instead
    ids = np.where(action[drawn] == Action.PERTURBED.value, plan.known[drawn], -1)
    if not isinstance(generator, np.random.Generator):
        generator = _of_filled_texts(generator, encoded)
    return mechanism.replace_texts(
        TextTokens(is_first, kind, about),
        WordNumbers(ids),
        spent[drawn],
        generator,
        ModelRows(components.vocabulary.rows[instead]),
        [encoded.forms[number] for number in np.flatnonzero(is_kept).tolist()],
    )


def _of_filled_texts(
    generator: Callable[[int], np.random.Generator], encoded: Encoded
) -> Callable[[int], np.random.Generator]:
    """Return a function that gives the random generator of the i-th text with tokens, so that texts
    without tokens are not counted.
    """
    filled = np.flatnonzero(np.diff(encoded.offsets())).tolist()
    return lambda number: generator(filled[number])


class Processes:
    """A pool of worker processes that lasts for a whole run. The processes that count the batches
    of a worker also rewrite them, because each process takes a second to start. A map with another
    worker starts new processes.

    Args:
        number: largest number of processes; 1 means the current process.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._opened = ExitStack()
        self._started: tuple[BatchWorker, Workers[Any, Any]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._opened.__exit__(*failure)

    def close(self) -> None:
        """End the processes. The next map starts new processes."""
        self._started = None
        self._opened.close()

    def map(
        self, worker: BatchWorker, function: Callable[[BatchWorker, A], R], items: Iterable[A]
    ) -> Generator[R, None, None]:
        """Yield ``function(worker, item)`` for each item, in order."""
        if self._number <= 1:
            yield from (function(worker, item) for item in items)
            return
        if self._started is None or self._started[0] is not worker:
            self.close()
            workers = Workers(partial(_apply, worker), self._number)
            self._started = worker, self._opened.enter_context(workers)
        yield from self._started[1].map((function, item) for item in items)


def _apply(worker: BatchWorker, work: tuple[Callable[[BatchWorker, A], R], A]) -> R:
    """Apply a function to a worker and an item, and return the result."""
    function, item = work
    return function(worker, item)


def count_batches(
    worker: BatchWorker,
    batches: Iterable[tuple[T, Batch]],
    processes: Processes,
    progress: Progress,
) -> Iterator[tuple[T, BatchCounts]]:
    """Count batches in worker processes, and yield the counts in order."""
    for companion, counted in paired(partial(processes.map, worker, BatchWorker.count), batches):
        progress.advance(counted.counts.shape[1], int(counted.counts[1].sum()))
        yield companion, counted


def rewrite_batches(
    worker: BatchWorker,
    batches: Iterable[tuple[T, Batch]],
    budget: DocumentBudget,
    processes: Processes,
    progress: Progress,
) -> Iterator[tuple[T, RewrittenChunk]]:
    """Rewrite batches in worker processes with one budget per document, and yield the results in
    order.
    """
    rewrite_one = partial(BatchWorker.rewrite, budget=budget)

    def rewritten(given: Iterable[tuple[R, Batch]]) -> Iterator[tuple[R, RewrittenChunk]]:
        for companion, chunk in paired(partial(processes.map, worker, rewrite_one), given):
            progress.advance(len(chunk.texts), len(chunk.tokens))
            yield companion, chunk

    if worker.is_slow:
        # use smaller batches, so that workers end at about the same time
        yield from merge_chunks(rewritten(split_batches(batches)))
    else:
        yield from rewritten(batches)


def paired(
    mapped: Callable[[Iterable[A]], Generator[R, None, None]], items: Iterable[tuple[T, A]]
) -> Generator[tuple[T, R], None, None]:
    """Apply an ordered map to the second element of each pair, and yield pairs of the first element
    and the result. The first elements are not sent to other processes.
    """
    waiting: deque[T] = deque()

    def given() -> Iterator[A]:
        for companion, item in items:
            waiting.append(companion)
            yield item

    with closing(mapped(given())) as results:
        for result in results:
            yield waiting.popleft(), result
