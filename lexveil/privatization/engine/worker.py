"""Counts and rewrites a batch of texts, in any process: plan of its tokens, output, token log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil.accounting.budgets import Action, DocumentBudget, epsilon_per_part
from lexveil.accounting.measurements import check_spent
from lexveil.accounting.shares import CLASSES, ShareClasses
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.detectors.given import GivenSpans
from lexveil.privatization.engine.batch import Batch, FlatTexts
from lexveil.privatization.engine.found import FoundCounts, count_found, given_in, plan_found
from lexveil.privatization.engine.keys import keys_of
from lexveil.privatization.engine.plan import Plan, count_planned, plan_tokens
from lexveil.privatization.engine.rewrite import Rewritten, count_actions
from lexveil.privatization.engine.rewriter import Rewriter, TextBatch
from lexveil.privatization.engine.rewritten_chunk import RewrittenChunk
from lexveil.privatization.engine.tally import Tally
from lexveil.privatization.settings import Settings
from lexveil.text.encode import Encoded, Lexicon, TokenClass, encode
from lexveil.text.languages.scripts import first_without_spaces
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
