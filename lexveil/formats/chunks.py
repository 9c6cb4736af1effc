"""A user's table, chunk by chunk in bounded memory, with all that it takes to write it back (``writers``)."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import IO, Any

import pyarrow as pa

from lexveil.errors import RequestError
from lexveil.formats.input_files import Source, shown
from lexveil.formats.readers import (
    delimited,
    json_object,
    name,
    names,
    no_documents,
    open_parquet,
    opened,
    place,
    plain_value,
    python_rows,
    text_lines,
    text_value,
)

ROWS = 2_000  # of a chunk, at most
CHARACTERS = 2**19  # of the texts of a chunk, after which it ends: a few seconds of the slowest mechanism
TEXT_LIMIT = 8 * 2**20  # characters; a text is rewritten in one piece, and this bounds what that takes

_SPACE = re.compile(r"[ \t\n\r]*")
_SCAN = json.JSONDecoder()

Texts = list[list[str | None]]  # of each row, one text for each text column


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a table.

    Attributes:
        first: the number of its first row in the table, from 1.
        places: where each row begins, for messages: a line, in Parquet a row.
        texts: of each row, one for each text column; None where there is none.
        subjects: whom each row is about; None if no column says so.
        rest: what else is in the rows, for the writer.
    """

    first: int
    places: Sequence[int]
    texts: Texts
    subjects: list[str] | None
    rest: Any

    def __len__(self) -> int:
        return len(self.texts)


class Reader:
    """A table that can be gone through more than once, and written back.

    Args:
        source: the file; its kind and packing decide how it is read.
        text_columns: the columns to rewrite.
        subject_column: the column that says whom a row is about.
        reopen: opens the bytes anew, where they do not lie at the source's path.
        descriptor: of their file, then.

    Raises:
        RequestError: from ``chunks``, naming file and row of the first fault.
    """

    def __init__(
        self,
        source: Source,
        text_columns: Sequence[str],
        subject_column: str | None = None,
        reopen: Callable[[], IO[bytes]] | None = None,
        descriptor: int | None = None,
    ) -> None:
        self.source, self.text_columns, self.subject_column = source, list(text_columns), subject_column
        self.reopen, self.descriptor = reopen, descriptor
        self.columns: list[str] = []  # known once reading has begun, as is the rest
        self.end = "\n"  # of the header's line; lines are written as they were
        self.schema = pa.schema([])
        self.for_writing = True

    @property
    def size(self) -> int:
        """Bytes to read, as they lie there."""
        return self.source.path.stat().st_size if self.descriptor is None else os.fstat(self.descriptor).st_size

    def chunks(self, for_writing: bool = True) -> Iterator[Chunk]:
        """All rows, from the first; ``for_writing`` with what else is in them."""
        self.for_writing = for_writing
        read = {"json": self._json, "txt": self._plain, "parquet": self._parquet}.get(self.source.kind, self._delimited)
        return read()

    def _opened(self) -> IO[bytes]:
        return opened(self.source, self.reopen() if self.reopen else None)

    def _know(self, columns: Iterable[str]) -> None:
        """Take the table's columns, among which those that were asked for must be."""
        self.columns = list(columns)
        asked = [(column, "--text-column") for column in self.text_columns]
        asked += [(self.subject_column, "--subject-column")] if self.subject_column is not None else []
        for column, option in asked:
            if column not in self.columns:
                raise RequestError(
                    f"{shown(self.source.path)}: there is no column {name(column)}; the columns are "
                    f"{names(self.columns)}; choose one with {option}"
                )

    def _checked(self, values: Mapping[str, Any], line: int) -> tuple[list[str | None], str | None]:
        """The texts of a row and whom it is about."""
        where = place(self.source, line)
        texts = []
        for column in self.text_columns:
            if column not in values:
                raise RequestError(f"{where}: the object has no {name(column)}; every one must have its text, or null")
            text = text_value(values[column], column, where)
            if text is not None and len(text) > TEXT_LIMIT:
                raise RequestError(
                    f"{where}: {name(column)} is a text of more than {TEXT_LIMIT // 2**20} Mi characters; divide it"
                )
            texts.append(text)
        if self.subject_column is None:
            return texts, None
        subject = plain_value(values.get(self.subject_column), self.subject_column, where)
        if subject is None:
            raise RequestError(
                f"{where}: {name(self.subject_column)} is empty; every row must say whom it is about, so that the "
                "ledger knows whose budget it spends"
            )
        return texts, subject

    def _gathered(self, rows: Iterable[ParsedRow]) -> Iterator[Chunk]:
        chunks = gather(rows, self.subject_column is not None)
        first = next(chunks, None)
        if first is None:
            raise no_documents(shown(self.source.path))
        yield first
        yield from chunks

    def _json(self) -> Iterator[Chunk]:
        where = shown(self.source.path)

        wanted = {column: number for number, column in enumerate(self.text_columns)}

        def rows(stream: IO[bytes]) -> Iterator[ParsedRow]:
            for at, line in enumerate(text_lines(stream, where, self.source.packing), 1):
                if line.strip():
                    values = json_object(line, f"{where}, line {at}", not self.columns)
                    if not self.columns:
                        self._know(values)
                    texts, subject = self._checked(values, at)
                    rest = _pieces(line, wanted, f"{where}, line {at}") if self.for_writing else None
                    yield ParsedRow(at, texts, subject, rest)

        with self._opened() as stream:
            self.columns = []
            yield from self._gathered(rows(stream))

    def _plain(self) -> Iterator[Chunk]:
        """One text a line. A blank line stays as it is, so that the lines of input and output correspond."""
        where = shown(self.source.path)
        if len(self.text_columns) > 1 or self.subject_column is not None:
            raise RequestError(f"{where}: a text file has no columns; leave --text-column and --subject-column out")
        column = self.text_columns[0]

        def rows(stream: IO[bytes]) -> Iterator[ParsedRow]:
            for at, line in enumerate(text_lines(stream, where, self.source.packing), 1):
                text = line.rstrip("\r\n")
                blank = not text.strip()
                texts, _ = self._checked({column: None if blank else text}, at)
                yield ParsedRow(at, texts, None, line if blank else line[len(text) :])

        with self._opened() as stream:
            self.columns = [column]
            chunks = self._gathered(rows(stream))
            held: list[Chunk] = []  # until there is a text
            for chunk in chunks:
                held.append(chunk)
                if any(texts[0] is not None for texts in chunk.texts):
                    break
            else:
                raise no_documents(where)
            yield from held
            yield from chunks

    def _delimited(self) -> Iterator[Chunk]:
        where = shown(self.source.path)
        with self._opened() as stream:
            lines = text_lines(stream, where, self.source.packing)
            first = list(itertools.islice(lines, 1))
            self.end = "\r\n" if first and first[0].endswith("\r\n") else "\n"
            lines = itertools.chain(first, lines)
            header, found = delimited(lines, where, "\t" if self.source.kind == "tsv" else ",")
            if header:
                self._know(header)
            yield from self._gathered(
                ParsedRow(row.line, *self._checked(row.values, row.line), list(row.values.values())) for row in found
            )

    def _parquet(self) -> Iterator[Chunk]:
        where = shown(self.source.path)
        with self._opened() as stream:
            file = open_parquet(stream, self.source)
            self.schema = file.schema_arrow
            self._know(self.schema.names)
            for column in self.text_columns:
                kind = self.schema.field(column).type
                if not is_text(kind):
                    raise RequestError(
                        f"{where}: {name(column)} is of type {_type_name(kind)}, not text; choose another --text-column"
                    )
            wanted = dict.fromkeys([*self.text_columns, *([self.subject_column] if self.subject_column else [])])
            number = 0
            try:
                for batch in file.iter_batches(batch_size=ROWS):
                    values = python_rows(batch.select([*wanted]), number, where)
                    rows = (
                        ParsedRow(number + i, *self._checked(row, number + i), None) for i, row in enumerate(values, 1)
                    )
                    at = 0
                    for chunk in self._gathered(rows):
                        yield replace(chunk, first=number + at + 1, rest=batch.slice(at, len(chunk)))
                        at += len(chunk)
                    number += batch.num_rows
            except (pa.ArrowException, OSError):
                raise RequestError(f"{where}: damaged after row {number}; copy or write it again") from None
            if not number:
                raise no_documents(where)


@dataclass(frozen=True, slots=True)
class ParsedRow:
    """A row on its way into a chunk; see there."""

    line: int
    texts: list[str | None]
    subject: str | None
    rest: Any


def gather(rows: Iterable[ParsedRow], has_subjects: bool) -> Iterator[Chunk]:
    """Cut rows into chunks; where they are cut depends on the rows alone."""
    first, gathered, characters = 1, list[ParsedRow](), 0

    def chunk() -> Chunk:
        subjects = [row.subject or "" for row in gathered] if has_subjects else None
        places, texts = [row.line for row in gathered], [row.texts for row in gathered]
        return Chunk(first, places, texts, subjects, [row.rest for row in gathered])

    for row in rows:
        gathered.append(row)
        characters += sum(len(text) for text in row.texts if text is not None)
        if len(gathered) == ROWS or characters >= CHARACTERS:
            yield chunk()
            first, gathered, characters = first + len(gathered), [], 0
    if gathered:
        yield chunk()


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of an Arrow type holds texts."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def rewritten_type(kind: pa.DataType) -> pa.DataType:
    """The type of rewritten texts: that of the texts. A dictionary gets room, because equal texts become different."""
    return pa.dictionary(pa.int32(), kind.value_type) if pa.types.is_dictionary(kind) else kind


def _type_name(kind: pa.DataType) -> str:
    """A type without the fields in it, whose names are the user's."""
    return str(kind).partition("<")[0]


def _pieces(line: str, wanted: Mapping[str, int], where: str) -> tuple[list[str], list[int]]:
    """Cut the line of a valid object at the values of the columns ``wanted``, each of which has a number.

    Returns:
        What stands between the values, and the number of each value, in the order of the line.

    Raises:
        RequestError: if a column is there twice: the second would hide the first from every reader but this one.
    """
    pieces, order = list[str](), list[int]()
    done = 0
    at = line.index("{") + 1
    while True:
        at = _skip(line, at)
        if line[at] == "}":
            break
        key, at = scanstring(line, at + 1)
        at = _skip(line, _skip(line, at) + 1)  # the colon
        _, end = _SCAN.raw_decode(line, at)
        if key in wanted:
            if wanted[key] in order:
                raise RequestError(f"{where}: {name(key)} is there twice in the object; remove one")
            pieces.append(line[done:at])
            order.append(wanted[key])
            done = end
        at = _skip(line, end)
        if line[at] == ",":
            at += 1
    pieces.append(line[done:])
    return pieces, order


def _skip(line: str, at: int) -> int:
    return _SPACE.match(line, at).end()  # type: ignore[union-attr]
