"""Counts and rewrites batches of texts, in any process: how much epsilon each token gets, and what
is drawn with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from lexveil.accounting.budgets import Action, DocumentBudget, epsilon_per_part
from lexveil.accounting.measurements import check_spent
from lexveil.accounting.shares import ShareClasses
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.mechanisms.noise.keystream import KEY_WORDS, draw_words
from lexveil.mechanisms.noise.streams import release_generator, stream
from lexveil.mechanisms.registry import Mechanism
from lexveil.mechanisms.rejection import DRAWN, FOLLOWS, KEPT, SKIPPED
from lexveil.mechanisms.tem_context import TemContext, TextTokens
from lexveil.privatization.engine.batch import (
    TOKEN_LOG,
    Batch,
    Rewritten,
    in_plain_layout,
    split_batches,
    unchanged,
)
from lexveil.privatization.engine.counts import (
    BatchCounts,
    RewrittenChunk,
    Tally,
    count_actions,
    merge_chunks,
)
from lexveil.privatization.engine.plan import (
    TokenPlan,
    count_found,
    count_planned,
    plan_found,
    plan_tokens,
    write_found,
)
from lexveil.privatization.settings import Settings
from lexveil.runtime.pool import Workers, process_map
from lexveil.runtime.stage import Progress
from lexveil.text.encode import Encoded, Lexicon, encode
from lexveil.text.languages.scripts import first_without_spaces
from lexveil.text.render import NOTHING, render_in_layout
from lexveil.text.strings import Strings
from lexveil.types import Floats, Ids

# A text's noise is drawn this many tokens at a time, which bounds memory for a text of any length.
# It is part of what a seed means: another value gives other experiments.
DRAW = 4096
MOST_WORDS = 127  # that are counted of what is written in the place of a token
MOST_NOISE = 10_000_000  # bytes of noise drawn before words are searched for; changes no result

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")

# Of all texts of a batch, in a release; or gives that of a text, in an experiment, so that batches
# change no result.
Generators = np.random.Generator | Callable[[int], np.random.Generator]


@dataclass(frozen=True, slots=True)
class Components:
    """The components with which texts are rewritten. They hold no generator, so no two processes
    can share one.

    Attributes:
        instead: (W,) the word that is written where each is drawn; None if it is always that word.
    """

    lexicon: Lexicon
    vocabulary: Vocabulary
    mechanism: Mechanism
    instead: Ids | None = None


@dataclass(frozen=True)
class BatchWorker:
    """Counts batches and rewrites them, in any process. It holds no generator, so no two processes
    can share one.

    Attributes:
        components: None leaves all texts as they are.
        columns: the names of the text columns.
        column_keys: (n_columns,) the keys that each column adds to the key of a document.
        shares: the class of each word that decides its share of the budget; None if all have the
            same.
        log: the columns of ``TOKEN_LOG`` that are asked for; the others take time on their way
            between processes.
        budget_name: what names the noise of a seeded run beside mechanism, strategy and keys; None
            is the budget.
    """

    settings: Settings
    components: Components | None
    columns: tuple[str, ...] = ("text",)
    column_keys: tuple[tuple[str, ...], ...] = ((),)
    shares: ShareClasses | None = None
    log: tuple[str, ...] = tuple(TOKEN_LOG.names)
    budget_name: str | None = None

    def __call__(self, work: tuple[Batch, DocumentBudget | None]) -> Any:
        """The ``BatchCounts`` of a batch, or with a budget of each document its
        ``RewrittenChunk``.
        """
        batch, budget = work
        return self.count(batch) if budget is None else self.rewrite(batch, budget)

    def plan(self, batch: Batch) -> tuple[Encoded, TokenPlan]:
        """The tokens of a batch, and what is to happen to each."""
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
        """Count the tokens of a batch."""
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
        """Rewrite the texts of a batch and account for it.

        Args:
            budget: the budget of each document; None if the batch brings the epsilon of its tokens.
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
        """Rewrite the texts of a batch, without accounting. What comes back holds source text."""
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
        """Return the generator of noise: a release has one for this batch alone, keyed here and now
        by the system; an experiment has one for each text.
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
    """(n_documents,) epsilon of each part of the budget, from the counts of ``BatchCounts``."""
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
    """Rewrite a batch of texts.

    Args:
        planned: the texts' tokens and what is to happen to each.
        part_epsilon: (n_texts,) for each part of the budget that a token of the text pays.
        generator: of an experiment's text it belongs to that text alone.
        written: see ``Rewritten``.
        keep_layout: copy the writer's white space and capitals, which nothing protects.
    """
    lexicon = components.lexicon
    vocabulary = components.vocabulary
    encoded, plan = planned
    action = plan.action
    pays = plan.pays
    spent = np.where(pays, part_epsilon[encoded.text_of], 0.0)
    if plan.parts is not None:
        spent *= plan.parts  # exact: few bits times few
    numbers = _draw(planned, spent, components, generator)
    if components.instead is not None:
        numbers = np.where(numbers >= 0, components.instead[numbers], -1)
    rows = np.where(numbers >= 0, vocabulary.rows[numbers], -1) if len(vocabulary.rows) else numbers
    new = rows >= 0
    kept = np.flatnonzero(action == Action.KEPT.value)
    out_words = np.zeros(len(action), dtype=np.int8)
    out_words[new] = lexicon.n_words[rows[new]]
    out_words[kept] = 1  # only single words are kept: every collocation has a vector
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
) -> Ids:
    """(n,) the word of the mechanism that each token becomes; -1 of those that are neither
    perturbed nor sampled.

    Args:
        spent: (n,) epsilon of each.
    """
    if isinstance(components.mechanism, TemContext):
        return _draw_in_context(planned, spent, components, components.mechanism, generator)
    vocabulary = components.vocabulary
    mechanism = components.mechanism
    encoded, plan = planned
    known = plan.known
    action = plan.action
    pays = plan.pays
    own = (
        np.ones(len(action), dtype=bool)
        if plan.leader is None
        else plan.leader == np.arange(len(action))
    )
    sampled = (action == Action.SAMPLED.value) & own
    numbers = np.full(len(action), -1, dtype=np.int64)
    offsets = encoded.offsets()
    # tokens whose noise is drawn and whose replacement is not yet searched
    waiting: list[tuple[Ids, Floats]] = []

    def search() -> None:
        if waiting:
            pending = np.concatenate([positions for positions, _ in waiting])
            noise = np.concatenate([drawn for _, drawn in waiting])
            numbers[pending] = mechanism.replace(known[pending], spent[pending], noise)
            waiting.clear()

    size = 0
    shared = isinstance(generator, np.random.Generator)
    for i, (start, stop) in enumerate([(0, len(action))] if shared else pairwise(offsets.tolist())):
        to_perturb = start + np.flatnonzero(pays[start:stop])
        to_sample = start + np.flatnonzero(sampled[start:stop])
        if not len(to_perturb) and not len(to_sample):
            continue
        rng = generator if isinstance(generator, np.random.Generator) else generator(i)
        numbers[to_sample] = rng.integers(len(vocabulary.rows), size=len(to_sample))
        for first in range(0, len(to_perturb), DRAW):
            drawn_for = to_perturb[first : first + DRAW]
            waiting.append((drawn_for, mechanism.noise(spent[drawn_for], rng)))
            size += waiting[-1][1].nbytes
            if size >= MOST_NOISE:
                search()
                size = 0
    search()
    return numbers if plan.leader is None else numbers[plan.leader]


def _draw_in_context(
    planned: tuple[Encoded, TokenPlan],
    spent: Floats,
    components: Components,
    mechanism: TemContext,
    generator: Generators,
) -> Ids:
    """Draw as ``_draw`` does, but one token after the other: each token is drawn after the word
    that is written for the token before it, which is public.
    """
    encoded, plan = planned
    action, n = plan.action, len(plan.action)
    leader = np.arange(n) if plan.leader is None else plan.leader
    replaced = (action == Action.PERTURBED.value) | (action == Action.SAMPLED.value)
    drawn = replaced & (leader == np.arange(n))
    kind = np.full(n, KEPT)
    about = np.where(action == Action.KEPT.value, encoded.rows, -1)
    kind[action == Action.DROPPED.value] = SKIPPED
    about[replaced] = leader[replaced]
    kind[replaced] = FOLLOWS
    kind[drawn], about[drawn] = DRAWN, np.arange(int(drawn.sum()))
    is_first = np.append(True, np.diff(encoded.text_of) > 0)[:n]
    if isinstance(generator, np.random.Generator):
        noise = draw_words(int(drawn.sum()), KEY_WORDS, generator)
    else:
        each = [
            int(drawn[start:stop].sum()) for start, stop in pairwise(encoded.offsets().tolist())
        ]
        keys = [draw_words(m, KEY_WORDS, generator(text)) for text, m in enumerate(each) if m]
        noise = np.concatenate(keys) if keys else np.empty((0, KEY_WORDS), dtype=np.uint64)
    instead = np.arange(mechanism.size) if components.instead is None else components.instead
    ids = np.where(action[drawn] == Action.PERTURBED.value, plan.known[drawn], -1)
    # Of what a detector found nothing may be read here: it is KEPT by kind, and by its action
    # something else.
    texts = TextTokens(is_first, kind, about)
    unlisted = np.flatnonzero((action == Action.KEPT.value) & (about < 0))
    about[unlisted] = -2 - np.arange(len(unlisted))
    kept = [encoded.words[word] for word in encoded.first_word[unlisted].tolist()]
    return mechanism.replace_texts(
        texts, ids, spent[drawn], noise, components.vocabulary.rows[instead], kept
    )


def count_batches(
    worker: BatchWorker,
    batches: Iterable[tuple[T, Batch]],
    processes: Workers[Any, Any] | None,
    progress: Progress,
) -> Iterator[tuple[T, BatchCounts]]:
    """Count batches, in order.

    Args:
        processes: the processes that have the worker; None is this process.
    """
    for companion, counted in paired(
        _map(worker, processes), ((item, (batch, None)) for item, batch in batches)
    ):
        progress.advance(counted.counts.shape[1], int(counted.counts[1].sum()))
        yield companion, counted


def rewrite_batches(
    worker: BatchWorker,
    batches: Iterable[tuple[T, Batch]],
    budget: DocumentBudget,
    processes: Workers[Any, Any] | None,
    progress: Progress,
) -> Iterator[tuple[T, RewrittenChunk]]:
    """Rewrite batches, in order, each document at the same budget; ``processes`` as of
    ``count_batches``.
    """

    def rewritten(given: Iterable[tuple[R, Batch]]) -> Iterator[tuple[R, RewrittenChunk]]:
        for companion, chunk in paired(
            _map(worker, processes), ((item, (batch, budget)) for item, batch in given)
        ):
            progress.advance(len(chunk.texts), len(chunk.tokens))
            yield companion, chunk

    mechanism = worker.components and worker.components.mechanism
    if getattr(mechanism, "on_lists", False) or getattr(mechanism, "on_neighbors", False):
        yield from rewritten(batches)
    else:  # the slow ones, by smaller batches, so that workers end together
        yield from merge_chunks(rewritten(split_batches(batches)))


def _map(
    worker: BatchWorker, processes: Workers[Any, Any] | None
) -> Callable[[Iterable[Any]], Generator[Any, None, None]]:
    return partial(process_map, worker, workers=1) if processes is None else processes.map


def paired(
    mapped: Callable[[Iterable[A]], Generator[R, None, None]], items: Iterable[tuple[T, A]]
) -> Generator[tuple[T, R], None, None]:
    """Yield the result that an ordered map makes of each item, with the item's companion; the
    companion stays in this process.
    """
    waiting: deque[T] = deque()

    def given() -> Iterator[A]:
        for companion, item in items:
            waiting.append(companion)
            yield item

    with closing(mapped(given())) as results:
        for result in results:
            yield waiting.popleft(), result
