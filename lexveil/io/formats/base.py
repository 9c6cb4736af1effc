"""The interface of file formats: a format reads a table row by row, and writes it back with other
texts.

A format is a class in a file of this folder, and an entry in ``registry``. It reads rows
(``table``), cuts them into chunks with all that is needed to write them back (``chunks``), and
makes a writer (``writer``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

from lexveil.base.errors import RequestError, option
from lexveil.io.formats.chunks import TEXT_LIMIT, Chunk, Matches, ParsedRow, Texts, gather
from lexveil.io.formats.messages import NoColumnError, is_name, name, shown
from lexveil.io.formats.values import plain_value, text_value

# a format is declared without numpy and Arrow, so that help that lists formats comes at once
if TYPE_CHECKING:
    from lexveil.base.types import Flags
    from lexveil.core.detectors.given import GivenSpans

# what becomes of a rewritten cell that a spreadsheet would compute
Formulas = Literal["keep", "quote", "refuse"]


@dataclass(frozen=True, slots=True)
class Source:
    """One file, and how the file is read.

    Attributes:
        compression: its ending, "" for none.
        stem: the file's name without the endings of format and compression.
        delimiter: the delimiter that the user gave; None detects the delimiter in the file.
        encoding: as what the user says text is encoded; None: as the file shows.
    """

    path: Path
    format: Format
    compression: str
    stem: str
    delimiter: str | None = None
    encoding: str | None = None

    @property
    def shown(self) -> str:
        """The path, for messages."""
        return shown(self.path)

    def location(self, line: int) -> str:
        """Where a row is, for messages."""
        return f"{shown(self.path)}, {self.format.row_name} {line}"


class InputRow(NamedTuple):
    """One record of a table.

    Attributes:
        number: the number of the row, from 1.
        line: the line where the row begins (Parquet: the row).
        values: the values of the row, by column.
        raw: the line as it is, if the format needs it to write the row back.
    """

    number: int
    line: int
    values: dict[str, object]
    raw: str = ""

    def __repr__(self) -> str:
        return f"InputRow(number={self.number})"


@dataclass(frozen=True, slots=True)
class InputTable:
    """An opened file.

    Attributes:
        columns: the columns of the header, the schema or the first object.
        rows: to iterate over once.
        layout: the data that the format needs to write the table back: the line end of CSV, the
            file of Parquet.
        n_rows: how many there are, if the file says so.
        encoding: as what the text of the file is encoded, as Python calls it.
        mark: a byte order mark, if one stands before the text.
        remark: how the file is read, where that is not what its name says; empty where it is.
        paths: text columns that are no columns, but are found within them, and where.
    """

    source: Source
    columns: list[str]
    rows: Iterator[InputRow]
    layout: Any = None
    n_rows: int | None = None
    encoding: str = "utf-8"
    mark: str = ""
    remark: str = ""
    paths: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableRequest:
    """The columns that are to be read of a table, and how its lines are read.

    Attributes:
        texts: the columns of texts.
        subject: the column that names the subject of a row.
        spans: the column that says what a detector found in the texts of a row. It counts
            characters of them, so that the writer leaves it empty.
        others: further columns to read, where a choice saves work (Parquet); None for all.
        keeps_blanks: whether lines without text are rows too, because they must be written back.
    """

    texts: Sequence[str]
    subject: str | None = None
    others: Collection[str] | None = None
    keeps_blanks: bool = False
    spans: str | None = None

    @property
    def rewritten(self) -> list[str]:
        """The columns whose values are replaced in the output."""
        return [*self.texts, *([] if self.spans is None else [self.spans])]

    @property
    def columns(self) -> list[str]:
        """The columns whose values are used: texts, spans and subject."""
        used = [*self.rewritten, *([] if self.subject is None else [self.subject])]
        return list(dict.fromkeys(used))

    def check(self, table: InputTable) -> None:
        """Check that the table has the requested columns.

        Raises:
            NoColumnError: naming the first column that the table has not.
        """
        requested = [(column, "text_column") for column in self.texts]
        for column, role in (
            *requested,
            (self.subject, "subject_column"),
            (self.spans, "spans_column"),
        ):
            if column is not None and column not in (*table.columns, *table.paths):
                hidden = (
                    ""
                    if all(map(is_name, table.columns))
                    else " (`lexveil inspect --show-examples` names them)"
                )
                raise NoColumnError(
                    table.source.shown,
                    column,
                    table.columns,
                    f"choose one with {option(role)}{hidden}",
                )

    def parse(
        self, values: Mapping[str, Any], line: int, source: Source, rest: Any = None
    ) -> ParsedRow:
        """Return the texts of a row, its subject, the spans of the row, and the data that the
        writer needs besides.

        Raises:
            RequestError: if a text is missing, not usable or too long, or the subject or the spans
                are.
        """
        where = source.location(line)
        texts = list[str | None]()
        counts = list[int]()
        for column in self.texts:
            if column not in values:
                raise RequestError(
                    f"{where}: the object has no {name(column)}; every one must have its "
                    "text, or null"
                )
            value = values[column]
            matches = value if isinstance(value, Matches) else [value]
            texts += [_text(each, column, where) for each in matches]
            counts.append(len(matches))
        has_paths = any(isinstance(values[column], Matches) for column in self.texts)
        subject = None
        if self.subject is not None:
            subject = plain_value(values.get(self.subject), self.subject, where)
            if subject is None:
                raise RequestError(
                    f"{where}: {name(self.subject)} is empty; every row must say whom it is about"
                )
        spans = self._spans(values, texts, where)
        return ParsedRow(line, texts, subject, rest, spans, tuple(counts) if has_paths else None)

    def _spans(
        self, values: Mapping[str, Any], texts: Sequence[str | None], where: str
    ) -> GivenSpans | None:
        if self.spans is None:
            return None
        from lexveil.core.detectors.given import given_spans

        if self.spans not in values:
            raise RequestError(
                f"{where}: the object has no {name(self.spans)}; every one must have its "
                "spans, or []"
            )
        return given_spans(values[self.spans], texts, self.texts, f"{where}, {name(self.spans)}")


def _text(value: object, column: str, where: str) -> str | None:
    text = text_value(value, column, where)
    if text is not None and len(text) > TEXT_LIMIT:
        raise RequestError(
            f"{where}: {name(column)} is longer than {TEXT_LIMIT:,} characters; divide it"
        )
    return text


class Writer(ABC):
    """Writer of the chunks of a table to a file. The file is complete once the writer is closed.

    Attributes:
        n_formulas: cells among the rewritten texts that a spreadsheet would take for formulas.
        first_formula: the row of the first of them in the output: those of the source would count
            what is withheld.
        n_rows: rows that are written or wait to be.
    """

    def __init__(self, table: InputTable, columns: Sequence[str], formulas: Formulas) -> None:
        self.table, self.columns, self.formulas = table, list(columns), formulas
        self.n_formulas = self.n_rows = 0
        self.first_formula: int | None = None
        self.files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.files.__exit__(*failure)  # type: ignore[arg-type]

    @abstractmethod
    def write(self, chunk: Chunk, texts: Texts, keep: Flags) -> None:
        """Write the rows of a chunk for which ``keep`` is true, with other texts."""


class Format(ABC):
    """Reader and writer of one kind of file, without any state of its own.

    Attributes:
        name: how `--format` calls it; one of the endings.
        title: how messages call it.
        endings: the endings of file names.
        row_name: the word by which messages call a row of a file.
        has_columns: whether rows have named fields; if not, all is one text.
        is_streamable: whether it can go to standard output, and files may be compressed as a whole.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    row_name: ClassVar[str] = "line"
    has_columns: ClassVar[bool] = True
    is_streamable: ClassVar[bool] = True

    @abstractmethod
    def table(self, stream: IO[bytes], source: Source, request: TableRequest) -> InputTable:
        """Open a table.

        Args:
            stream: the file's bytes, expanded.

        Raises:
            RequestError: naming file and row: empty, truncated, damaged, not UTF-8, not of this
                format. Faults further down are raised while the rows are read.
        """

    def text_columns(self, table: InputTable) -> list[str]:
        """Return the columns of a newly opened table whose type can hold texts; all columns if
        columns have no types.
        """
        return table.columns

    def chunks(
        self, table: InputTable, request: TableRequest, for_writing: bool
    ) -> Iterator[Chunk]:
        """Yield all rows of a newly opened table; with ``for_writing``, yield also the data of the
        rows that only the writer needs.

        Raises:
            RequestError: naming file and row of the first fault.
        """

        def parsed(row: InputRow) -> ParsedRow:
            rest = self.rest(row, table, request) if for_writing else None
            return request.parse(row.values, row.line, table.source, rest)

        return gather(map(parsed, table.rows), request.subject is not None)

    def nested_texts(self, table: InputTable) -> list[str]:  # noqa: ARG002
        """Return the paths of texts within columns of an opened table, by types alone."""
        return []

    def rest(self, row: InputRow, table: InputTable, request: TableRequest) -> Any:  # noqa: ARG002
        """Return the data of a row that the writer needs besides the texts."""
        return None

    @abstractmethod
    def writer(
        self, table: InputTable, columns: Sequence[str], out: Path | IO[bytes], formulas: Formulas
    ) -> Writer:
        """Return a writer of the chunks of ``table``, with replaced texts in ``columns``, to a file
        or an open stream.
        """
