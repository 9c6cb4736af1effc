"""Writing a user's table back in its own form: the text columns replaced, everything else and its order as it was.

Of JSON the bytes between texts stay as they are, number for number; of CSV and TSV every other field keeps its
characters; of Parquet every column keeps its type.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.errors import RequestError
from lexveil.formats.chunks import Chunk, Reader, Texts, rewritten_type
from lexveil.formats.input_files import Source, shown
from lexveil.formats.readers import place

Formulas = Literal["keep", "quote", "refuse"]
FORMULA = re.compile(r"[=+\-@\t\r]")  # a cell that begins so is a formula to a spreadsheet


def open_writer(reader: Reader, out: Path | IO[bytes], formulas: Formulas = "keep") -> Writer:
    """Return what writes the chunks of ``reader``, which must have begun to read, to a file or an open stream."""
    return (ParquetWriter if reader.source.kind == "parquet" else TextWriter)(reader, out, formulas)


class Writer:
    """Writes the chunks of a table to a file, which is whole once this is closed.

    Attributes:
        n_formulas: cells among the rewritten texts that a spreadsheet would take for formulas.
        first_formula: the row of the first of them.
    """

    def __init__(self, reader: Reader, formulas: Formulas) -> None:
        self.reader, self.formulas = reader, formulas
        self.n_formulas = 0
        self.first_formula: int | None = None
        self.files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.files.__exit__(*failure)  # type: ignore[arg-type]

    def write(self, chunk: Chunk, texts: Texts, keep: npt.NDArray[np.bool_]) -> None:
        """Write the rows of a chunk for which ``keep`` is true, with other texts."""
        raise NotImplementedError


class TextWriter(Writer):
    """Writes JSON lines, CSV, TSV and text, packed as the source was."""

    def __init__(self, reader: Reader, out: Path | IO[bytes], formulas: Formulas = "keep") -> None:
        super().__init__(reader, formulas)
        plain: IO[bytes] = self.files.enter_context(out.open("wb")) if isinstance(out, Path) else out
        self.stream: Any = plain
        if reader.source.packing == "gz":
            # No time and no name in the header: the same rows give the same bytes.
            self.stream = self.files.enter_context(gzip.GzipFile("", "wb", 6, fileobj=plain, mtime=0))
        elif reader.source.packing == "zst":
            self.stream = self.files.enter_context(
                pa.CompressedOutputStream(pa.PythonFile(_Kept(plain), mode="w"), "zstd")
            )
        self.is_headed = reader.source.kind not in ("csv", "tsv")
        self.at = [reader.columns.index(column) for column in reader.text_columns] if not self.is_headed else []

    def write(self, chunk: Chunk, texts: Texts, keep: npt.NDArray[np.bool_]) -> None:
        """Write the chosen rows."""
        chosen = np.flatnonzero(keep).tolist()
        if self.reader.source.kind == "json":
            lines = [_joined(chunk.rest[i], texts[i]) for i in chosen]
        elif self.reader.source.kind == "txt":
            lines = [(texts[i][0] or "") + chunk.rest[i] for i in chosen]
        else:
            lines = [self._fields(chunk, texts, chosen)]
        self.stream.write("".join(lines).encode("utf-8"))

    def _fields(self, chunk: Chunk, texts: Texts, chosen: Sequence[int]) -> str:
        end = self.reader.end
        is_tsv = self.reader.source.kind == "tsv"
        rows = [] if self.is_headed else [self.reader.columns]
        self.is_headed = True
        for i in chosen:
            fields = chunk.rest[i]
            for at, text in zip(self.at, texts[i], strict=True):
                fields[at] = self._cell(text or "", chunk.first + i, chunk.places[i])
                if is_tsv and any(mark in fields[at] for mark in "\t\n\r"):
                    raise RequestError(
                        f"{place(self.reader.source, chunk.places[i])}: a rewritten text holds a tab or line break, "
                        "which TSV cannot; write CSV"
                    )
                if is_tsv and fields == [""]:
                    raise RequestError(
                        f"{place(self.reader.source, chunk.places[i])}: nothing is left of a text, and a TSV of one "
                        "column cannot hold that, its line being blank; write CSV"
                    )
            rows.append(fields)
        if is_tsv:
            return "".join("\t".join(fields) + end for fields in rows)
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator=end).writerows(rows)
        return buffer.getvalue()

    def _cell(self, text: str, row: int, line: int) -> str:
        if not FORMULA.match(text):
            return text
        if self.formulas == "refuse":
            raise RequestError(
                f"{place(self.reader.source, line)}: a rewritten text begins like a formula, which spreadsheets would "
                "compute; --formulas quote puts an apostrophe before such texts"
            )
        self.n_formulas += 1
        self.first_formula = self.first_formula or row
        return f"'{text}" if self.formulas == "quote" else text


class _Kept(io.RawIOBase):
    """A stream that stays open when what writes to it is closed: standard output, for one."""

    def __init__(self, plain: IO[bytes]) -> None:
        self.plain = plain

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self.plain.write(content)


class ParquetWriter(Writer):
    """Writes Parquet with the source's schema; but a dictionary of texts gets more room, ``rewritten_type``."""

    def __init__(self, reader: Reader, out: Path | IO[bytes], formulas: Formulas = "keep") -> None:
        super().__init__(reader, formulas)
        self.schema = reader.schema
        for column in reader.text_columns:
            field = self.schema.field(column)
            at = self.schema.get_field_index(column)
            self.schema = self.schema.set(at, field.with_type(rewritten_type(field.type)))
        self.writer = self.files.enter_context(pq.ParquetWriter(out, self.schema, compression="zstd"))

    def write(self, chunk: Chunk, texts: Texts, keep: npt.NDArray[np.bool_]) -> None:
        """Write the chosen rows."""
        batch: pa.RecordBatch = chunk.rest
        for number, column in enumerate(self.reader.text_columns):
            at = batch.schema.get_field_index(column)
            new = pa.array([of_row[number] for of_row in texts], pa.large_string())
            batch = batch.set_column(at, self.schema.field(at), new.cast(self.schema.field(at).type))
        # Runs of rows, because Arrow filters not every type (string_view).
        edges = np.flatnonzero(np.diff(np.concatenate([[False], keep, [False]]))).tolist()
        runs = [batch.slice(start, stop - start) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
        if runs:
            self.writer.write_table(pa.Table.from_batches(runs))


def _joined(rest: tuple[list[str], list[int]], texts: Sequence[str | None]) -> str:
    pieces, order = rest
    parts = [pieces[0]]
    for number, piece in zip(order, pieces[1:], strict=True):
        parts += (json.dumps(texts[number], ensure_ascii=False), piece)
    return "".join(parts) if parts[-1].endswith("\n") else "".join(parts) + "\n"


def check_output(out: Path, source: Path | None, form: Source, named: Source | None) -> None:
    """See to it that ``out`` can be written before any work is done.

    Args:
        out: the file to write.
        source: the file that is read, if it is one.
        form: how it is read.
        named: how the name of ``out`` says that it is to be read.

    Raises:
        RequestError: if it is the input, a link, exists and is not empty, has no folder, or has another form's ending.
    """
    if source is not None and out.exists() and out.samefile(source):
        raise RequestError(f"{shown(out)}: the output would replace the input; give it another name")
    if out.is_symlink():
        raise RequestError(f"{shown(out)}: is a link; remove it or name the file to write")
    if out.is_dir():
        raise RequestError(f"{shown(out)}: is a folder; name the file to write")
    if out.exists() and out.stat().st_size:
        raise RequestError(f"{shown(out)}: exists already; remove it or choose another name")
    if not out.parent.is_dir():
        raise RequestError(f"{shown(out.parent)}: there is no such folder; make it first")
    if named is None or (named.kind, named.packing) != (form.kind, form.packing):
        raise RequestError(f"{shown(out)}: the output has the input's form, so its name must end like the input's")
