"""Writing a user's table back in its own form: the text column replaced, everything else and its order as it was."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import RequestError
from tasks.intake.files import Kind, shown
from tasks.io.tables import atomic_file

Values = dict[str, Any]


def lines(kind: Kind, columns: Sequence[str], rows: Iterable[Values]) -> Iterator[str]:
    """The lines of a table of text form, line feeds included."""
    if kind == "json":
        for values in rows:
            yield json.dumps(values, ensure_ascii=False) + "\n"
    elif kind == "txt":
        for values in rows:
            yield values[columns[0]] + "\n"
    elif kind == "tsv":
        yield "\t".join(columns) + "\n"
        for number, values in enumerate(rows, 1):
            fields = [str(values[column]) for column in columns]
            if any(separator in field for field in fields for separator in "\t\n\r"):
                raise RequestError(
                    f"row {number}: a rewritten text holds a tab or line break, which TSV cannot; write CSV"
                )
            yield "\t".join(fields) + "\n"
    else:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(columns)
        for values in rows:
            writer.writerow([values[column] for column in columns])
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
        yield buffer.getvalue()  # the header alone, where there are no rows


def write_rows(kind: Kind, columns: Sequence[str], rows: Iterable[Values], out: Path) -> None:
    """Write a table of text form; gzipped if the name ends in .gz."""
    with atomic_file(out) as partial:
        # No time and no name in the header: the same rows give the same bytes.
        plain = partial.open("wb")
        with plain, gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if out.suffix == ".gz" else plain as stream:
            for line in lines(kind, columns, rows):
                stream.write(line.encode("utf-8"))


def write_parquet(source: Path, column: str, texts: Sequence[str], out: Path) -> None:
    """Write a Parquet file again with one column replaced; other columns keep their types."""
    table = pq.read_table(source)
    at = table.schema.get_field_index(column)
    replaced = table.set_column(at, pa.field(column, pa.string()), pa.array(texts, pa.string()))
    with atomic_file(out) as partial:
        pq.write_table(replaced, partial, compression="zstd")


def check_output(out: Path, source: Path | None, kind: Kind, out_kind: Kind | None) -> None:
    """See to it that ``out`` can be written before any work is done.

    Raises:
        RequestError: if it is the input, exists and is not empty, has no folder, or has another form's ending.
    """
    if source is not None and out.resolve() == source.resolve():
        raise RequestError(f"{shown(out)}: the output would replace the input; give it another name")
    if out.is_dir():
        raise RequestError(f"{shown(out)}: is a folder; name the file to write")
    if out.exists() and out.stat().st_size:
        raise RequestError(f"{shown(out)}: exists already; remove it or choose another name")
    if not out.parent.is_dir():
        raise RequestError(f"{shown(out.parent)}: there is no such folder; make it first")
    if out_kind != kind:
        raise RequestError(f"{shown(out)}: the output has the input's form, so its name must end like the input's")
