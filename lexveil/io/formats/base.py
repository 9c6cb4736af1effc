"""Interface of file formats. A format reads a table row by row, and writes it back with other
texts.

A format is a class in a module of this package, and an entry in ``registry``. It reads rows
(``table``), cuts them into chunks with all data that is needed to write them back (``chunks``), and
creates a writer (``writer``).
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

# formats are declared without importing numpy and Arrow, so that help that lists formats is fast
if TYPE_CHECKING:
    from lexveil.base.types import Flags
    from lexveil.core.detectors.given import GivenSpans

# treatment of a rewritten cell that a spreadsheet would compute as a formula
Formulas = Literal["keep", "quote", "refuse"]


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a table, with the settings for reading it.

    Attributes:
        compression: the ending of the compression, "" for an uncompressed file.
        stem: the file's name without the endings of format and compression.
        delimiter: the delimiter that the user gave; None detects the delimiter in the file.
        encoding: the text encoding that the user gave; None detects the encoding in the file.
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
        """Return the file and the number of a row or line, for messages."""
        return f"{shown(self.path)}, {self.format.row_name} {line}"


class InputRow(NamedTuple):
    """One record of a table.

    Attributes:
        number: the number of the row, from 1.
        line: the line where the row begins; in Parquet, the row.
        values: the values of the row, by column.
        raw: the unchanged line, if the format needs it to write the row back.
    """

    number: int
    line: int
    values: dict[str, object]
    raw: str = ""

    def __repr__(self) -> str:
        return f"InputRow(number={self.number})"


@dataclass(frozen=True, slots=True)
class InputTable:
    """An opened table file.

    Attributes:
        columns: the columns of the header, of the schema or of the first object.
        rows: the rows, which can be iterated once.
        layout: the data that the format needs to write the table back, such as the line end of a
            CSV file or the file object of Parquet.
        n_rows: the number of rows, if the file states it.
        encoding: Python's name of the text encoding of the file.
        mark: the byte order mark before the text, or "".
        remark: a sentence about how the file is read, if its name does not tell; otherwise "".
        paths: the paths of text columns that are nested in columns, each with its parsed steps.
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
    """Request to read certain columns of a table.

    Attributes:
        texts: the columns of texts.
        subject: the column that names the subject of a row.
        spans: the column with the spans that a detector found in the texts of a row. The writer
            leaves it empty, because spans count characters of the source texts.
        others: further columns to read, if reading fewer columns saves work (Parquet); None reads
            all columns.
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
            NoColumnError: if a column is missing; the message names the first such column.
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
        """Return the requested parts of a row: its texts, its subject, its spans, and the other
        data that the writer needs.

        Raises:
            RequestError: if a text, the subject or the spans are missing or not valid, or if a text
                is too long.
        """
        where = source.location(line)
        texts = list[str | None]()
        counts = list[int]()
        for column in self.texts:
            if column not in values:
                raise RequestError(
                    f"{where}: the object has no {name(column)}; every object must have a "
                    "text for this key, or null"
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
                    f"{where}: {name(self.subject)} is empty; every row must name its subject"
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
                f"{where}: the object has no {name(self.spans)}; every object must have its "
                "spans, or []"
            )
        return given_spans(values[self.spans], texts, self.texts, f"{where}, {name(self.spans)}")


def _text(value: object, column: str, where: str) -> str | None:
    text = text_value(value, column, where)
    if text is not None and len(text) > TEXT_LIMIT:
        raise RequestError(
            f"{where}: {name(column)} is longer than {TEXT_LIMIT:,} characters; divide the text"
        )
    return text


class Writer(ABC):
    """Writer of the chunks of a table to a file. The file is complete once the writer is closed.

    Attributes:
        n_formulas: number of cells of rewritten texts that a spreadsheet would compute as formulas.
        first_formula: the row of the first such cell in the output. The row in the source would
            disclose how many rows are withheld.
        n_rows: number of rows that are written or buffered.
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
        """Write the rows of a chunk for which ``keep`` is true, with ``texts`` in place of their
        texts.
        """


class Format(ABC):
    """Reader and writer of one kind of file. A format has no state.

    Attributes:
        name: name of the format for `--format`; it is one of the endings.
        title: name of the format in messages.
        endings: the endings of file names.
        row_name: the word for a row of a file in messages.
        has_columns: whether rows have named fields. If not, a row is one text.
        is_streamable: whether the format can be written to standard output, and its files may be
            compressed as a whole.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    row_name: ClassVar[str] = "line"
    has_columns: ClassVar[bool] = True
    is_streamable: ClassVar[bool] = True

    @abstractmethod
    def table(self, stream: IO[bytes], source: Source, request: TableRequest) -> InputTable:
        """Open a table file of this format.

        Args:
            stream: the file's bytes, decompressed.

        Raises:
            RequestError: if the file is empty, truncated, damaged, not UTF-8 or not of this format;
                the message names file and row. Faults in later rows are raised while rows are read.
        """

    def text_columns(self, table: InputTable) -> list[str]:
        """Return the columns of a newly opened table whose type allows texts. If columns have no
        types, return all columns.
        """
        return table.columns

    def chunks(
        self, table: InputTable, request: TableRequest, for_writing: bool
    ) -> Iterator[Chunk]:
        """Yield all rows of a newly opened table in chunks. With ``for_writing``, the chunks also
        have the data that only the writer needs.

        Raises:
            RequestError: if a row has a fault; the message names the file and the first such row.
        """

        def parsed(row: InputRow) -> ParsedRow:
            rest = self.rest(row, table, request) if for_writing else None
            return request.parse(row.values, row.line, table.source, rest)

        return gather(map(parsed, table.rows), request.subject is not None)

    def nested_texts(self, table: InputTable) -> list[str]:  # noqa: ARG002
        """Return the paths of texts that are nested inside columns of an opened table, judged by
        types alone.
        """
        return []

    def rest(self, row: InputRow, table: InputTable, request: TableRequest) -> Any:  # noqa: ARG002
        """Return the data of a row, besides its texts, that the writer needs."""
        return None

    @abstractmethod
    def writer(
        self, table: InputTable, columns: Sequence[str], out: Path | IO[bytes], formulas: Formulas
    ) -> Writer:
        """Return a writer that writes the chunks of ``table`` to a file or an open stream. The
        texts in ``columns`` are replaced.
        """
