"""Data types for documents on their way to a worker and back: their texts, the keys of their noise,
and their results.

A ``Chunk`` of rows becomes a ``Batch`` of texts. A worker rewrites a batch to a ``Rewritten``, and
returns a ``RewrittenChunk``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil.base.types import Flags, Floats, Ids, ModelRows, WordNumbers
from lexveil.core.accounting.budgets import Action, Codes
from lexveil.core.accounting.changes import TextChanges, changes_of
from lexveil.core.accounting.shares import CLASSES
from lexveil.core.accounting.subject_keys import keys_of_columns
from lexveil.core.detectors.given import GivenSpans
from lexveil.core.text.encode import Encoded, Lexicon, TokenClass, encode
from lexveil.core.text.languages.scripts import emptied
from lexveil.core.text.pieces import Pieces, escaped
from lexveil.core.text.render import render
from lexveil.core.text.spans import Span
from lexveil.core.text.strings import Strings, letters_of
from lexveil.io.formats.arrow_tables import ArrowRows
from lexveil.io.formats.chunks import Chunk, Texts
from lexveil.release.engine.plan import TokenPlan
from lexveil.release.settings import Settings

T = TypeVar("T")

# characters per batch for a slow worker, so that all workers end at about the same time
PART = 2**16
# If there are this many times more words than tokens, only the drawn words are converted to texts.
FEW = 8

# Columns that the engine writes about every token. An adapter chooses some of them for its token
# log.
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
        ("type", pa.string()),  # type of the entity that a detector found
    ]
)


def token_log_schema(n_columns: int, settings: Settings) -> pa.Schema:
    """Return the schema of the token log of a user's rows.

    The log has no output words. It has the text column if there are several, the class of each
    token if classes have different shares of the budget, and the type of each match if there are
    detectors.

    Args:
        n_columns: number of text columns.
    """
    has = {
        "column": n_columns > 1,
        "share": settings.shares is not None,
        "type": settings.detection is not None,
    }
    names = (
        "row",
        "position",
        "class",
        "epsilon",
        "action",
        *(name for name, is_there in has.items() if is_there),
    )
    return pa.schema([TOKEN_LOG.field(name) for name in names])


@dataclass(frozen=True, repr=False)
class Batch:
    """Consecutive documents that a worker rewrites together. A batch holds source text, but the
    worker's results do not.

    Attributes:
        rows: the texts of each document.
        keys: (n_documents,) the key that names each document in the run, and determines the
            document's noise in a seeded run.
        first_row: the number of the first document in the token log.
        part_epsilon: (n_texts,) for each text, the planned epsilon of each of its tokens that
            spends any; None if the engine divides the document budget.
        for_ledger: whether the worker that counts the batch also computes the ledger key of each
            row from its texts.
        given: the detected spans that the user supplied with the documents; None if there are none.
        widths: number of texts per row of each text column, as in ``Chunk``.
    """

    rows: Texts
    keys: Sequence[tuple[str, ...]]
    first_row: int = 0
    part_epsilon: Floats | None = None
    for_ledger: bool = False
    given: Sequence[GivenSpans] | None = None
    widths: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def arrow(self) -> ArrowRows:
        """The texts as Arrow columns."""
        return arrow_rows(self.rows)

    @cached_property
    def _flat(self) -> tuple[Strings, Ids, Ids]:
        array, cell = self.arrow.flat()
        width = len(self.arrow.columns)
        return Strings(array), cell // width, cell % width

    @property
    def texts(self) -> Strings:
        """(n_texts,) the texts of all documents in order, without missing texts."""
        return self._flat[0]

    @property
    def document(self) -> Ids:
        """(n_texts,) the document of each text, from 0."""
        return self._flat[1]

    @property
    def column(self) -> npt.NDArray[np.int16]:
        """(n_texts,) the number of the text column that each text comes from."""
        return self._places[0]

    @property
    def place(self) -> Ids:
        """(n_texts,) the position of each text among the texts of its row and column, from 0."""
        return self._places[1]

    @cached_property
    def _places(self) -> tuple[npt.NDArray[np.int16], Ids]:
        cell = self._flat[2]
        if self.widths is None:
            return cell.astype(np.int16), np.zeros(len(cell), dtype=np.int64)
        widths = np.array(self.widths, dtype=np.int64)
        column = np.repeat(np.arange(len(widths)), widths)[cell]
        return column.astype(np.int16), cell - (np.cumsum(widths) - widths)[column]

    @property
    def given_spans(self) -> list[tuple[int, Span]]:
        """The detected spans that the user supplied with the documents, each with the number of its
        text.
        """
        cells = zip(self.document.tolist(), self.column.tolist(), strict=True)
        number = {cell: text for text, cell in enumerate(cells)} if self.given else {}
        return [
            (number[document, column], span)
            for document, spans in enumerate(self.given or ())
            for column, span in spans
            if (document, column) in number
        ]

    @property
    def text_keys(self) -> list[str]:
        """The keys that identify the documents in the budget ledger, computed from their texts."""
        return keys_of_columns(self.arrow.columns)

    def with_texts(self, texts: Strings) -> ArrowRows:
        """Return the same documents with other texts, as Arrow columns."""
        columns = []
        for column in range(len(self.arrow.columns)):
            of_column = np.flatnonzero(self._flat[2] == column)
            number = np.full(len(self), -1)
            number[self.document[of_column]] = of_column
            is_whole = len(of_column) == len(self) == len(texts)
            columns.append(
                texts.array if is_whole else texts.array.take(pa.array(number, mask=number < 0))
            )
        return ArrowRows(columns)

    def parts(self, size: int) -> list[Batch]:
        """Split the batch into batches of about ``size`` characters. The documents stay in
        order.
        """
        ends = np.cumsum(
            np.sum([np.diff(letters_of(column)[1]) for column in self.arrow.columns], axis=0)
        )
        # number of the smaller batch that each document belongs to
        number = np.maximum(ends - 1, 0) // size
        cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
        if len(cuts) <= 3 and (not len(ends) or ends[-1] < 2 * size):
            return [self]
        return [
            replace(
                self,
                rows=self.arrow[start:end],
                keys=self.keys[start:end],
                first_row=self.first_row + start,
                given=None if self.given is None else self.given[start:end],
            )
            for start, end in pairwise(cuts)
        ]


@dataclass(frozen=True, repr=False)
class Rewritten:
    """The result of rewriting a batch of texts, with the action on each of its n tokens.

    Attributes:
        encoded: the source's tokens. They hold source text and must not leave the process.
        plan: the planned action for each token.
        texts: the rewritten texts.
        token_epsilon: (n,) the epsilon spent on each token. It is 0 for a token that is not
            perturbed, or that takes the replacement of an earlier equal token.
        rows: (n,) row of the output token in the embedding; -1 if the token is kept, dropped or in
            ``written``.
        out_words: (n,) number of words in the output token; 0 if the token is dropped.
        written: the texts that replace the tokens that a detector found, by the number of the
            token.
        n_in_bank: the number of sentences of the source that the sentence bank contains; None if
            words are replaced.
    """

    encoded: Encoded
    plan: TokenPlan
    texts: Strings
    token_epsilon: Floats
    rows: ModelRows
    out_words: npt.NDArray[np.int8]
    written: Mapping[int, str] = field(default_factory=dict)
    n_in_bank: int | None = None

    @property
    def action(self) -> Codes:
        """The action on each token, such as perturbed, kept or dropped, shape (n,)."""
        return self.plan.action

    def per_text(
        self, values: npt.NDArray[np.float64] | npt.NDArray[np.int64] | npt.NDArray[np.bool_]
    ) -> Floats:
        """Sum values per token over each text, shape (n_texts,)."""
        summed = np.bincount(self.encoded.text_of, weights=values, minlength=self.encoded.n_texts)
        return summed.astype(np.float64)  # integers if there is no token at all

    def changes(self, texts: Sequence[str], lexicon: Lexicon) -> list[TextChanges]:
        """Return the change of each token of the source texts: its source, and the words that
        replace it.
        """
        return changes_of(
            self.encoded, texts, self.texts, self.action, self.rows, lexicon, self.written
        )

    def token_log(
        self, names: Sequence[str], row: Ids, column: npt.NDArray[np.int16], titles: Sequence[str]
    ) -> pa.Table:
        """Return the token log, a table of the action on each token and of its epsilon.

        Args:
            names: the requested columns of ``TOKEN_LOG``.
            row, column: (n_texts,) the row and the column of each text.
            titles: the names of the text columns.
        """
        encoded, text_of, n = self.encoded, self.encoded.text_of, len(self.rows)
        found = encoded.found
        has_found = found is not None
        has_others = has_found or bool((encoded.kind == TokenClass.SENTENCE.value).any())
        share = np.zeros(n, dtype=np.int8) if self.plan.share is None else self.plan.share
        columns: dict[str, Callable[[], pa.Array]] = {
            "row": lambda: pa.array(row[text_of]),
            "position": lambda: pa.array(
                (np.arange(n) - encoded.offsets()[text_of]).astype(np.int32)
            ),
            "class": lambda: _labelled(encoded.classes, TokenClass.labels(with_found=has_others)),
            "epsilon": lambda: pa.array(self.token_epsilon),
            "action": lambda: _labelled(self.action, Action.labels(with_found=has_found)),
            "column": lambda: _labelled(column[text_of], titles),
            "n_words": lambda: pa.array(self.out_words),
            "word_id": lambda: pa.array(self.rows.astype(np.int32)),
            "share": lambda: _labelled(share, CLASSES),
            "type": lambda: (
                pa.nulls(n, pa.string()) if found is None else pa.array(found.names(), pa.string())
            ),
        }
        return pa.table(
            [columns[name]() for name in names], schema=pa.schema(map(TOKEN_LOG.field, names))
        )


def _labelled(numbers: npt.NDArray[Any], labels: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(numbers, pa.array(labels, pa.string()))


def arrow_rows(rows: Texts) -> ArrowRows:
    """Return texts of rows as Arrow columns. Without rows, return one empty column."""
    if isinstance(rows, ArrowRows):
        return rows
    columns: Iterable[Sequence[str | None]] = zip(*rows, strict=True) if rows else ([],)
    return ArrowRows([pa.array(column, pa.large_string()) for column in columns])


def supported(chunk: Chunk) -> tuple[Chunk, int]:
    """Empty the texts of a chunk that are in a script without spaces between words, and remove
    their spans. Return the chunk, and the number of emptied texts.
    """
    rows = list[list[str | None]]()
    n_emptied = 0
    for row in chunk.texts:
        texts, n = emptied(row)
        rows.append(texts)
        n_emptied += n
    if not n_emptied:
        return chunk, 0
    spans = chunk.spans and [
        [span for span in of_row if texts[span[0]] != ""]
        for of_row, texts in zip(chunk.spans, rows, strict=True)
    ]
    return replace(chunk, texts=rows, spans=spans), n_emptied


def batch_of(chunk: Chunk, *, for_ledger: bool = False) -> Batch:
    """Return the selected texts of a chunk as a batch for a worker. Other columns of the rows stay
    in this process.

    Args:
        for_ledger: whether the rows will be charged to the budget ledger. If no column names
            subjects, each text is its own subject, so the batch asks for keys of texts.
    """
    file = (chunk.file,) if chunk.file else ()
    first = chunk.first
    keys = [(*file, str(row)) for row in range(first - 1, first - 1 + len(chunk))]
    return Batch(
        selected_texts(chunk),
        keys,
        first,
        for_ledger=for_ledger and chunk.subjects is None,
        given=chunk.spans,
        widths=chunk.widths,
    )


def selected_texts(chunk: Chunk) -> ArrowRows:
    """Return the texts of all rows, with no texts for rows that are not selected."""
    rows = arrow_rows(chunk.texts)
    return rows if chunk.selection is None or chunk.selection.all() else rows.only(chunk.selection)


def split_batches(batches: Iterable[tuple[T, Batch]]) -> Iterator[tuple[T | None, Batch]]:
    """Split each batch into smaller batches. The last of the smaller batches keeps the object that
    is paired with the batch, and the others are paired with None.
    """
    for companion, batch in batches:
        *parts, last = batch.parts(PART)
        for part in parts:
            yield None, part
        yield companion, last


def in_plain_layout(
    encoded: Encoded,
    lexicon: Lexicon,
    rows: Ids,
    kept: Ids,
    stays: Flags,
    written: Mapping[int, str],
) -> Strings:
    """Join output tokens to texts with ordinary spacing.

    Args:
        rows: (n,) row of each output token in the embedding, -1 if a token is kept or in
            ``written``.
        kept: the indices of the kept tokens.
        stays: (n,) whether a token has an output; False if the token is dropped.
        written: replacement texts by token, as in ``Rewritten``.
    """
    form = encoded.word[encoded.first_word[kept]]
    is_kept = np.zeros(len(encoded.forms), dtype=bool)
    is_kept[form] = True
    numbers = np.flatnonzero(is_kept)
    forms = Pieces.of([encoded.forms[number] for number in numbers.tolist()])
    if (len(rows) - len(kept)) * FEW > len(lexicon.tokens):
        pieces = lexicon.pieces
        token = rows.astype(np.int32)
    else:
        drawn, number = np.unique(rows, return_inverse=True)
        token = number.astype(np.int32)
        pieces = Pieces.of([lexicon.tokens[row] if row >= 0 else "" for row in drawn.tolist()])
    token[kept] = len(pieces.place) + (np.cumsum(is_kept, dtype=np.int32) - 1)[form]
    pieces = Pieces.joined(pieces, forms)
    if written:
        token[list(written)] = len(pieces.place) + np.arange(len(written), dtype=np.int32)
        pieces = Pieces.joined(pieces, Pieces.of([escaped(text) for text in written.values()]))
    text_of = encoded.text_of
    if not stays.all():
        token = token[stays]
        text_of = text_of[stays]
    return render(pieces, token, text_of, encoded.n_texts)


def unchanged(texts: Strings) -> Rewritten:
    """Return the result of leaving a batch of texts unchanged: every token is kept."""
    encoded = encode(texts, Lexicon.build("word", [], None))
    # No vocabulary is involved, so no word counts as out of vocabulary.
    encoded.kind[encoded.kind == TokenClass.OOV.value] = TokenClass.WORD
    n = len(encoded.rows)
    none = np.full(len(encoded.rows), -1, dtype=np.int64)
    plan = TokenPlan(WordNumbers(none), np.full(n, Action.KEPT, dtype=np.int8), None)
    return Rewritten(encoded, plan, texts, np.zeros(n), ModelRows(none), np.ones(n, dtype=np.int8))
