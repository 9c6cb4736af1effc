"""Conversion of the user's files to document sets (folder data/documents): one Parquet file per
document set, each with the same six columns. A seventh column, ``context``, holds the second text
of a text pair if that text is not to be rewritten.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base.errors import RequestError, option
from lexveil.base.runtime.tables import PARQUET
from lexveil.io.execution.stage import Progress
from lexveil.io.formats.base import InputRow, InputTable, Source
from lexveil.io.formats.input_files import dataset_names, find_sources
from lexveil.io.formats.messages import name, shown
from lexveil.io.formats.readers import open_table, tell_dialect
from lexveil.io.formats.values import plain_value, text_value

# All labels become strings, so that all sets can be read as one table, although one set numbers its
# classes and another names them. Nothing computes with a label; labels are compared, counted and
# written back.
SCHEMA = pa.schema(
    [
        (column, pa.string())
        for column in ("doc_id", "split", "text", "text_b", "label", "attribute")
    ]
)
# The second text of a pair, if it is not rewritten. Only classifiers read it.
CONTEXT = "context"
PAIRS = ("both", "first")  # which texts of a pair are rewritten
# columns besides the text; the user chooses the column of the text
OTHERS = ("doc_id", "split", "text_b", "label", "attribute")

# limits of a row group; they are fixed, so that the same rows give the same bytes
ROWS_AT_A_TIME = 16_384
CHARACTERS_AT_A_TIME = 2**24


def made_id(dataset: str, number: int) -> str:
    """Make a document id from the number of a row, for a file without ids.

    The id follows from the number of the row, never from the text. If it were a hash of a sensitive
    text, anyone could check a guess of that text.
    """
    return f"{dataset}-{number:06d}"


def document(doc_id: str, split: str, text: str, **others: str | None) -> dict[str, str | None]:
    """Return one document as a row with the columns of ``SCHEMA``."""
    return {
        "doc_id": doc_id,
        "split": split,
        "text": text,
        "text_b": None,
        "label": None,
        "attribute": None,
        **others,
    }


def write_set(
    rows: Iterable[dict[str, str | None]], path: Path, schema: pa.Schema = SCHEMA, **options: Any
) -> None:
    """Write the rows of one document set to a Parquet file, one row group at a time; each row has
    the columns of ``schema``.
    """
    with pq.ParquetWriter(path, schema, **(options or PARQUET)) as parquet:
        for group in _groups(rows):
            parquet.write_table(pa.Table.from_pylist(group, schema=schema))
    with path.open("rb") as written:
        os.fsync(written.fileno())


def _groups(rows: Iterable[dict[str, str | None]]) -> Iterator[list[dict[str, str | None]]]:
    group = list[dict[str, str | None]]()
    characters = 0
    for row in rows:
        group.append(row)
        characters += len(row["text"] or "") + len(row["text_b"] or "")
        if len(group) >= ROWS_AT_A_TIME or characters >= CHARACTERS_AT_A_TIME:
            yield group
            group = []
            characters = 0
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class DocumentSetReport:
    """Report about one document set that was written.

    Attributes:
        rows: number of documents.
        contexts: number of second texts of pairs that are not rewritten.
        made_ids: whether the ids were made from row numbers.
        unsplit: whether the set has a label or an attribute, but not the splits that evaluation
            needs.
        dropped_columns: columns that are not used.
    """

    rows: int
    contexts: int
    made_ids: bool
    unsplit: bool
    dropped_columns: list[str]


def write_documents(
    sources: Iterable[Source],
    folder: Path,
    text_column: str = "text",
    pairs: str = "both",
    files: Mapping[str, Path] = MappingProxyType({}),
) -> dict[str, DocumentSetReport]:
    """Convert each of ``sources`` to one document set in ``folder``, and return a report by set.
    Memory use grows with the number of ids only.

    Rows keep their order. An empty text is a document. A missing text (null) is an error, because
    its label would be lost silently. Without a column ``doc_id``, ids are made from row numbers;
    without a column ``split``, the split is "all".

    Args:
        pairs: which texts of a pair are rewritten, one of ``PAIRS``. A second text that is not
            rewritten becomes the ``context``.
        files: files by the name of the document set that each becomes; the sets of ``sources`` have
            the names of their files.

    Raises:
        RequestError: at the first fault, with file and row; ``folder`` is then unusable.
    """
    if text_column in OTHERS:
        raise RequestError(
            f"{option('text_column')} {text_column}: the name is reserved for another column; "
            "rename the column of texts in the files"
        )
    folder.mkdir(parents=True)
    writer = _SetWriter(folder, text_column, pairs)
    for dataset, source in _named_sets(sources, files).items():
        writer.write(dataset, source)
    if pairs == "first" and not any(report.contexts for report in writer.reports.values()):
        raise RequestError(
            f"{option('pairs')} first: no row of the documents has a second text (column `text_b`)"
        )
    return writer.reports


class _SetWriter:
    """Writer of document sets that checks that ids are unique over all sets.

    Attributes:
        reports: report about each set that was written, by name.
    """

    def __init__(self, folder: Path, text_column: str, pairs: str) -> None:
        self.reports: dict[str, DocumentSetReport] = {}
        self._folder = folder
        self._text_column = text_column
        self._takes_first = pairs == "first"
        self._places: dict[str, tuple[Source, int]] = {}
        self._progress = Progress("documents", 0, "documents")

    def write(self, dataset: str, source: Source) -> None:
        """Convert one source into a document set, write it, and store the report about it in
        ``reports``.
        """
        schema = SCHEMA.append(pa.field(CONTEXT, pa.string())) if self._takes_first else SCHEMA
        with open_table(source, self._text_column, OTHERS, tell=tell_dialect) as table:
            rows = self._rows(dataset, source, table)
            write_set(rows, self._folder / f"{dataset}.parquet", schema)

    def _rows(
        self, dataset: str, source: Source, table: InputTable
    ) -> Iterator[dict[str, str | None]]:
        seen = dict.fromkeys(table.columns)
        n_rows = 0
        n_contexts = 0
        for row in table.rows:
            seen |= dict.fromkeys(row.values)
            taken = normalised(table, row, self._text_column, dataset)
            self._note_id(str(taken["doc_id"]), source, row.line)
            self._progress.advance(1)
            n_rows += 1
            if self._takes_first and taken["text_b"] is not None:
                taken = _without_second(taken, source.location(row.line))
                n_contexts += 1
            yield taken
        known = (self._text_column, *OTHERS)
        self.reports[dataset] = DocumentSetReport(
            rows=n_rows,
            contexts=n_contexts,
            made_ids="doc_id" not in table.columns,
            unsplit="split" not in seen and ("label" in seen or "attribute" in seen),
            dropped_columns=[column for column in seen if column not in known],
        )

    def _note_id(self, doc_id: str, source: Source, line: int) -> None:
        """Record the file and line of a document id, and check that no other row has this id.

        Raises:
            RequestError: if another row has the same id.
        """
        if doc_id in self._places:
            other, other_line = self._places[doc_id]
            both = f"{other.location(other_line)} and {source.location(line)}"
            raise RequestError(f"{both} have the same doc_id; make ids unique over all files")
        self._places[doc_id] = (source, line)


def _named_sets(sources: Iterable[Source], files: Mapping[str, Path]) -> dict[str, Source]:
    """Return the sources of document sets by name: first the sets that the user named, then all
    others by the stems of their files.

    Raises:
        RequestError: if a name is not valid, two names are the same (also if only capitals differ),
            or a named set is a folder.
    """
    sets: dict[str, Source] = {}
    for set_name, path in files.items():
        if not re.fullmatch(r"[A-Za-z0-9_-]+", set_name):
            raise RequestError(
                f"{option('documents')} {shown(set_name)}=…: the name of a document set "
                "consists of letters, digits, _ and -"
            )
        if path.is_dir():
            raise RequestError(
                f"{shown(path)}: is a folder, and each file of a folder becomes its own "
                "document set; name a file"
            )
        (sets[set_name],) = find_sources([path])
    every = [*((set_name, sets[set_name]) for set_name in sets), *dataset_names(sources).items()]
    seen: dict[str, Source] = {}
    for dataset, source in every:
        other = seen.setdefault(dataset.lower(), source)
        if other is not source:
            raise RequestError(
                f"{shown(other.path)} and {shown(source.path)} would both become {dataset}; "
                f"name one of them by {option('documents')} NAME={shown(source.path)}"
            )
    return dict(every)


def _without_second(row: dict[str, str | None], where: str) -> dict[str, str | None]:
    """Move the second text of a text pair into the column ``context``, so that it is not rewritten,
    and return the row.

    Raises:
        RequestError: if the pair has no first text, so that nothing would be rewritten.
    """
    if not (row["text"] or "").strip():
        raise RequestError(f"{where}: the pair has no first text; give it one, or remove the row")
    return row | {"text_b": None, CONTEXT: row["text_b"]}


def normalised(
    table: InputTable, row: InputRow, text_column: str, dataset: str
) -> dict[str, str | None]:
    """Convert one row of an input table to the columns of ``SCHEMA``."""
    where = table.source.location(row.line)
    text = text_value(row.values.get(text_column), text_column, where)
    if text is None:
        raise RequestError(
            f"{where}: {name(text_column)} is null; fill in a text, or remove the row"
        )
    doc_id = plain_value(row.values.get("doc_id"), "doc_id", where)
    if doc_id is None:
        if "doc_id" in table.columns or "doc_id" in row.values:
            raise RequestError(
                f"{where}: `doc_id` is empty; give every row an id, or drop the column"
            )
        doc_id = made_id(dataset, row.number)
    split, label, attribute = (
        plain_value(row.values.get(column), column, where)
        for column in ("split", "label", "attribute")
    )
    text_b = text_value(row.values.get("text_b"), "text_b", where) or None
    return document(doc_id, split or "all", text, text_b=text_b, label=label, attribute=attribute)
