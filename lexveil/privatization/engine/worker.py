"""Counts and rewrites a batch of texts, in any process: plan of its tokens, output, token log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil.accounting.budgets import Action, DocumentBudget, epsilon_per_part
from lexveil.accounting.measurements import check_spent
from lexveil.accounting.shares import CLASSES, ShareClasses
from lexveil.mechanisms.noise.streams import release_generator, stream
from lexveil.privatization.engine.batch import Batch, RewrittenChunk, keys_of
from lexveil.privatization.engine.counts import Tally
from lexveil.privatization.engine.plan import (
    FoundCounts,
    TokenPlan,
    count_found,
    count_planned,
    plan_found,
    plan_tokens,
    write_found,
)
from lexveil.privatization.engine.rewrite import Components, Rewritten, count_actions, rewrite, unchanged
from lexveil.privatization.settings import Settings
from lexveil.text.encode import Encoded, TokenClass, encode
from lexveil.text.languages.scripts import first_without_spaces
from lexveil.text.render import NOTHING
from lexveil.types import Floats, Ids

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


def token_log_schema(n_columns: int, settings: Settings) -> pa.Schema:
    """The columns of the token log of a user's rows: without output words, with the text column if there are several.

    Where classes of tokens have shares of their own, the log says which class each token is of, and where there are
    detectors, the type of what they found.

    Args:
        n_columns: text columns.
    """
    has = {"column": n_columns > 1, "share": settings.shares is not None, "type": settings.detection is not None}
    names = ("row", "position", "class", "epsilon", "action", *(name for name, is_there in has.items() if is_there))
    return pa.schema([TOKEN_LOG.field(name) for name in names])


@dataclass(frozen=True, slots=True)
class BatchCounts:
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


@dataclass(frozen=True)
class BatchWorker:
    """Counts batches and rewrites them, in any process. It holds no generator, so no two processes can share one.

    Attributes:
        components: None leaves all texts as they are.
        columns: the names of the text columns.
        column_keys: (n_columns,) what each column adds to a document's key.
        shares: the class of each word that decides its share of the budget; None if all have the same.
        log: the columns of ``TOKEN_LOG`` that are asked for; the others take time on their way between processes.
        budget_name: what names the noise of a seeded run beside mechanism, strategy and keys; None is the budget.
    """

    settings: Settings
    components: Components | None
    columns: tuple[str, ...] = ("text",)
    column_keys: tuple[tuple[str, ...], ...] = ((),)
    shares: ShareClasses | None = None
    log: tuple[str, ...] = tuple(TOKEN_LOG.names)
    budget_name: str | None = None

    def __call__(self, work: tuple[Batch, DocumentBudget | None]) -> Any:
        """The ``BatchCounts`` of a batch, or with a budget of each document its ``RewrittenChunk``."""
        batch, budget = work
        return self.count(batch) if budget is None else self.rewrite(batch, budget)

    def plan(self, batch: Batch) -> tuple[Encoded, TokenPlan]:
        """The tokens of a batch, and what is to happen to each."""
        settings, components = self.settings, self.components
        assert components is not None
        detection = settings.detection
        claim = None if detection is None else detection.claim(batch.texts, batch.given_spans)
        encoded = encode(batch.texts, components.lexicon, claim)
        document_of = batch.document if settings.consistent else None
        plan = plan_tokens(encoded, components.vocabulary.number, settings.policy, document_of, self.shares)
        if detection is not None:
            plan = plan_found(encoded, plan, detection, batch.document, consistent=settings.consistent)
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
            keys_of(batch) if batch.for_ledger else None,
            refused,
        )

    def rewrite(self, batch: Batch, budget: DocumentBudget | None = None) -> RewrittenChunk:
        """Rewrite the texts of a batch and account for it.

        Args:
            budget: of each document; None if the batch brings the epsilon of its tokens.
        """
        rewritten, tally = self.draw(batch, budget), Tally()
        vocabulary = None if self.components is None else self.components.vocabulary
        tally.add(rewritten, batch.document, vocabulary)
        document, n = batch.document, len(batch)
        spent = np.bincount(document, weights=rewritten.per_text(rewritten.epsilon), minlength=n).astype(np.float64)
        per_token = np.zeros(n)
        np.maximum.at(per_token, document[rewritten.encoded.text_of], rewritten.epsilon)
        if budget is not None:
            parts = np.ones(len(rewritten.action)) if rewritten.parts is None else rewritten.parts.astype(np.float64)
            per_part = np.zeros(n)
            np.maximum.at(per_part, document[rewritten.encoded.text_of], rewritten.epsilon / parts)
            paid = rewritten.per_text(np.where(rewritten.epsilon > 0, parts, 0.0))
            n_paid = np.bincount(document, weights=paid, minlength=n)
            check_spent(spent, per_token, per_part, n_paid.astype(np.float64), budget)
        texts = batch.with_texts(rewritten.texts, len(self.columns))
        return RewrittenChunk(texts, self._token_log(rewritten, batch), tally, spent, per_token)

    def draw(self, batch: Batch, budget: DocumentBudget | None = None) -> Rewritten:
        """Rewrite the texts of a batch, without accounting. What comes back holds source text."""
        if self.components is None:
            return unchanged(batch.texts)
        settings = self.settings
        encoded, plan = self.plan(batch)
        epsilon = batch.epsilon
        if epsilon is None:
            assert budget is not None
            counts = count_planned(encoded, plan, batch.document, len(batch))
            epsilon = allocate(settings.strategy, budget, counts, self.shares)[batch.document]
        budget_name = self.budget_name or repr(None if budget is None else budget.total)
        written = NOTHING
        if settings.detection is not None:
            generator = self._generator(batch, budget_name, "found")
            written = write_found(encoded, plan, batch.texts, settings.detection, batch.document, generator)
        generator = self._generator(batch, budget_name)
        keep_layout = settings.keep_layout
        return rewrite(
            batch.texts, (encoded, plan), epsilon, self.components, generator, written, keep_layout=keep_layout
        )

    def _generator(
        self, batch: Batch, budget_name: str, *purpose: str
    ) -> np.random.Generator | Callable[[int], np.random.Generator]:
        """In release mode one of this batch alone, keyed here and now by the system; of an experiment, each text's."""
        settings, seed = self.settings, self.settings.seed
        if seed is None:
            return release_generator()

        def generator_of(text: int) -> np.random.Generator:
            keys = (*batch.keys[int(batch.document[text])], *self.column_keys[int(batch.column[text])])
            return stream(seed, settings.mechanism, settings.strategy, budget_name, *keys, *purpose)

        return generator_of

    def _token_log(self, rewritten: Rewritten, batch: Batch) -> pa.Table:
        text_of, found = rewritten.encoded.text_of, rewritten.encoded.found
        with_found = found is not None
        columns: dict[str, Callable[[], pa.Array]] = {
            "row": lambda: pa.array((batch.document + batch.first_row)[text_of]),
            "position": lambda: pa.array(rewritten.position),
            "class": lambda: _labelled(rewritten.encoded.classes, TokenClass.labels(with_found=with_found)),
            "epsilon": lambda: pa.array(rewritten.epsilon),
            "action": lambda: _labelled(rewritten.action, Action.labels(with_found=with_found)),
            "column": lambda: _labelled(batch.column[text_of], self.columns),
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


def allocate(strategy: str, budget: DocumentBudget, counts: Ids, shares: ShareClasses | None = None) -> Floats:
    """(n_documents,) epsilon of each part of the budget, from the counts of ``BatchCounts``."""
    return epsilon_per_part(strategy, budget, counts[2], counts[3], 1 if shares is None else shares.most)


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

    def add(self, counted: BatchCounts) -> None:
        """Add what a batch holds."""
        self.rows += counted.counts.shape[1]
        self.documents += counted.documents
        self.texts += counted.texts
        self.totals += counted.counts.sum(axis=1)
        self.by_class += counted.by_class
        self.found += counted.found
