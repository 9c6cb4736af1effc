"""Copy of a release's source to a private file. The source may be an inbox of files, a database, or
anything else that DuckDB reads.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base.errors import RequestError
from lexveil.base.runtime.tables import PARQUET
from lexveil.io.config import InboxParams
from lexveil.io.databases.address import FORMS, is_address, read_address
from lexveil.io.databases.base import quotable, spool_query, stripped
from lexveil.io.execution import duckdb_session
from lexveil.io.formats.base import Source
from lexveil.io.formats.input_files import find_sources
from lexveil.io.formats.messages import NoColumnError, name, shown
from lexveil.io.formats.readers import open_table
from lexveil.io.formats.values import plain_value, text_value

WITHDRAWN = "withdrawn"  # column that marks withdrawn rows
WITHDRAWN_IDS = "withdrawn.txt"  # file in an inbox with withdrawn ids
# types of this column; SQLite has only the numbers 0 and 1, and gives no type to a column of nulls
FLAGS = ("BOOLEAN", "INTEGER", "BIGINT", "VARCHAR")
ROWS_AT_A_TIME = 2_000  # rows in memory at once
DATABASE = "source"  # name of an attached database

# Messages of these errors describe the query. Messages of other errors may contain a value, or an
# address with a password.
ABOUT_THE_QUERY = (duckdb.ParserException, duckdb.CatalogException, duckdb.BinderException)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns to read from the source of a release. The private copy names them c0, c1, and so
    on, so that no names can clash.
    """

    id: str
    texts: tuple[str, ...]
    subject: str | None
    others: tuple[str, ...]
    spans: str | None = None

    @classmethod
    def of(cls, params: InboxParams) -> Columns:
        """Create the columns from the settings of lexveil.toml."""
        texts = tuple(params.text_columns)
        others = tuple(params.columns or ())
        return cls(params.id_column, texts, params.subject_column, others, params.spans_column)

    @property
    def names(self) -> list[str]:
        """The names of all columns, without duplicates, in the order in which the archive stores
        them.
        """
        spans = [] if self.spans is None else [self.spans]
        return list(dict.fromkeys([self.id, *self.subjects, *self.texts, *spans, *self.others]))

    @property
    def subjects(self) -> list[str]:
        """The name of the column with the subject of a document, as a list that is empty if there
        is no such column.
        """
        return [] if self.subject is None else [self.subject]

    def inner(self, column: str) -> str:
        """Return the name (c0, c1, …) of a column in the private copy of the source."""
        return f"c{self.names.index(column)}"


def gather(
    params: InboxParams, columns: Columns, con: duckdb.DuckDBPyConnection, out: Path
) -> set[str]:
    """Write all rows of a source to ``out``, with the columns place and is_withdrawn and the
    source's columns renamed to c0, c1, and so on. Return the ids of withdrawn documents.

    Spans are written as JSON, without a check.

    Args:
        out: Parquet file; its rows have the order of reading.

    Returns:
        Withdrawn ids, which need not be among the rows.

    Raises:
        RequestError: if there is nothing to read, a column is missing or of the wrong type, or a
            row has no id.
    """
    if params.source is not None and Path(params.source).is_dir():
        return _inbox(Path(params.source), columns, out)
    _query(params, columns, con, out)
    return set()


def _inbox(folder: Path, columns: Columns, out: Path) -> set[str]:
    listed = folder / WITHDRAWN_IDS
    schema = pa.schema(
        [("place", pa.string()), ("is_withdrawn", pa.bool_())]
        + [(columns.inner(column), pa.string()) for column in columns.names]
    )
    with pq.ParquetWriter(out, schema, **PARQUET) as writer:
        rows = itertools.chain.from_iterable(_rows(source, columns) for source in _files(folder))
        while batch := list(itertools.islice(rows, ROWS_AT_A_TIME)):
            writer.write_table(pa.Table.from_pylist(batch, schema))
    if not listed.is_file():
        return set()
    try:
        lines = listed.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise RequestError(
            f"{shown(listed)}: the file cannot be read as UTF-8; write one id per line"
        ) from None
    return {line.strip() for line in lines} - {""}


def _files(folder: Path) -> list[Source]:
    """Return the data files in an inbox folder, which may be empty."""
    files = [
        path
        for path in folder.iterdir()
        if not path.name.startswith(".") and path.name != WITHDRAWN_IDS
    ]
    return (
        [source for source in find_sources([folder]) if source.path != folder / WITHDRAWN_IDS]
        if files
        else []
    )


def _rows(source: Source, columns: Columns) -> Iterator[dict[str, object]]:
    with open_table(source, None, {*columns.names, WITHDRAWN}) as table:
        _require(table.columns, columns, source.shown)
        for row in table.rows:
            where = source.location(row.line)
            is_withdrawn = _is_true(row.values.get(WITHDRAWN), where)
            values = {"place": where, "is_withdrawn": is_withdrawn}
            for column in columns.names:
                value = row.values.get(column)
                if (
                    column not in row.values
                    and not is_withdrawn
                    and column in (*columns.texts, columns.spans)
                ):
                    needed = "its spans, or []" if column == columns.spans else "its text, or null"
                    raise RequestError(
                        f"{where}: the row has no {name(column)}; every row must have {needed}"
                    )
                if column == columns.spans:
                    values[columns.inner(column)] = _as_json(value, column, where)
                elif column in columns.texts:
                    values[columns.inner(column)] = text_value(value, column, where)
                else:
                    values[columns.inner(column)] = plain_value(value, column, where)
            yield values


def _as_json(spans: Any, column: str, where: str) -> str | None:
    """Return detected spans as JSON. Spans that a file already stores as JSON stay unchanged."""
    if spans is None or isinstance(spans, str):
        return text_value(spans, column, where)
    # a value without a JSON form is not a valid position or type, and the check of spans rejects it
    # later
    return json.dumps(spans, default=lambda _: None)


def _is_true(value: object, where: str) -> bool:
    known = {None: False, "": False, "false": False, "true": True, False: False, True: True}
    value = value.lower() if isinstance(value, str) else value
    if not isinstance(value, str | bool | None) or value not in known:
        raise RequestError(f"{where}: `{WITHDRAWN}` must be true or false")
    return known[value]


def _query(
    params: InboxParams, columns: Columns, con: duckdb.DuckDBPyConnection, out: Path
) -> None:
    key = "inbox.source" if params.sql is None else "inbox.sql"
    if is_address(params.source):
        raise RequestError(
            "lexveil.toml: inbox.source is the address of a database; write the address "
            "into inbox.attach, and a SELECT into inbox.sql"
        )
    if params.sql is None:
        assert params.source is not None
        query = f"from {_literal(params.source)}"
    elif is_address(params.attach):
        assert params.attach is not None
        rows = out.with_name("query.parquet")
        spool_query(read_address(params.attach), params.sql, rows)
        query = f"from {_literal(str(rows))}"
    else:
        query = stripped(params.sql)
        if params.attach is not None:
            _attach(params.attach, con)
    try:
        described = con.execute(f"describe select * from ({query}) as source").fetchall()
        kinds = {str(row[0]): str(row[1]) for row in described}
        _require(kinds, columns, f"lexveil.toml: {key}")
        for column in columns.texts:
            if kinds[column] != "VARCHAR":
                raise RequestError(
                    f"lexveil.toml: {key}: {name(column)} has the type {kinds[column]}, not "
                    "text; cast it"
                )
        if kinds.get(WITHDRAWN, "BOOLEAN") not in FLAGS:
            raise RequestError(
                f"lexveil.toml: {key}: `{WITHDRAWN}` has the type {kinds[WITHDRAWN]}, not "
                "boolean; cast it or rename it"
            )
        con.execute(
            f"copy ({_select(query, columns, kinds)}) to '{out}' (format parquet, compression zstd)"
        )
    except ABOUT_THE_QUERY as error:
        raise RequestError(f"lexveil.toml: {key}: {quotable(str(error), query)}") from None
    except duckdb.Error as error:
        raise RequestError(
            f"lexveil.toml: {key}: DuckDB cannot read the source ({type(error).__name__}; "
            "DuckDB's message may contain a value and is not shown); try the query in "
            "DuckDB itself"
        ) from None


def _select(query: str, columns: Columns, kinds: Mapping[str, str]) -> str:
    is_text = {columns.id, *columns.subjects}

    def value(column: str) -> str:
        if column == columns.spans and kinds[column] not in ("VARCHAR", "JSON"):
            return f"to_json({quoted(column)})::varchar"
        return (
            f"{quoted(column)}::varchar" if column in (*is_text, columns.spans) else quoted(column)
        )

    wanted = [f"{value(column)} as {columns.inner(column)}" for column in columns.names]
    is_withdrawn = (
        f"coalesce({quoted(WITHDRAWN)}::boolean, false)" if WITHDRAWN in kinds else "false"
    )
    start = "'row ' || row_number() over () as place"
    return (
        f"select {start}, {is_withdrawn} as is_withdrawn, {', '.join(wanted)} from "
        f"({query}) as source"
    )


def _attach(target: str, con: duckdb.DuckDBPyConnection) -> None:
    if ":" in target:
        raise RequestError(
            f"lexveil.toml: inbox.attach is neither a file of DuckDB nor an address; write {FORMS}"
        )
    try:
        con.execute(f"attach {_literal(target)} as {DATABASE} (read_only)")
        con.execute(f"use {DATABASE}")
    except duckdb.Error as error:
        raise RequestError(
            "lexveil.toml: inbox.attach: the database cannot be opened "
            f"({type(error).__name__}); check that it exists and is a file of DuckDB"
        ) from None


def _literal(text: str) -> str:
    """Return a text as a quoted SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _require(known: Collection[str], columns: Columns, where: str) -> None:
    for column in columns.names:
        if column not in known:
            hint = (
                "see lexveil.toml: inbox.id_column, text_columns, subject_column, "
                "spans_column, columns"
            )
            raise NoColumnError(where, column, known, hint)


def quoted(column: str) -> str:
    """Quote an identifier for SQL."""
    return '"' + column.replace('"', '""') + '"'


def read_location(con: duckdb.DuckDBPyConnection, file: Path, position: int) -> str:
    """Return the original location (file and row) of a row in the private copy of the source."""
    row = con.execute(
        f"select place from read_parquet({duckdb_session.file_list([file])}, file_row_number "
        "= true) "
        "where file_row_number = ?",
        [position],
    ).fetchone()
    assert row is not None
    return str(row[0])
