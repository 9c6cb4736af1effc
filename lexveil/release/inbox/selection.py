"""Selection of the documents to release: new and changed documents, recognized by hashes from
earlier releases.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base.errors import RequestError
from lexveil.core.accounting.subject_keys import subject_key, text_keys
from lexveil.core.detectors.given import given_spans
from lexveil.io.config import Configuration
from lexveil.io.execution import duckdb_session
from lexveil.io.formats.messages import name
from lexveil.release.inbox.archive import (
    DOCUMENTS,
    HASH,
    IDS_SCHEMA,
    Archive,
    content_hash,
    document_hash,
)
from lexveil.release.inbox.report import ReleaseReport
from lexveil.release.inbox.source import ROWS_AT_A_TIME, Columns, gather, quoted, read_location
from lexveil.release.ledger.subjects import Hasher

PSEUDONYM = 16  # random bytes of a published id
INCOMING = pa.schema(
    [("position", pa.int64()), ("document", HASH), ("content", HASH), ("is_withdrawn", pa.bool_())]
)


@dataclass(frozen=True, slots=True)
class ReleaseSelection:
    """The documents of a source to release, after a comparison with earlier releases.

    Attributes:
        source: private file of the rows to release, with their published ids; None if there are no
            rows to release.
        subjects: subject of each of these rows; None if no column names subjects.
        ids: the operator's private records about these rows, in the same order, without the name of
            the release.
        gone: hashes of the ids of all documents that are withdrawn, now or earlier.
        report: counts of the comparison.
    """

    source: Path | None
    subjects: list[str] | None
    ids: pa.Table
    gone: set[bytes]
    report: ReleaseReport


def select_documents(
    configuration: Configuration, columns: Columns, archive: Archive, folder: Path
) -> ReleaseSelection:
    """Read the source, and classify its documents as new, changed, known or withdrawn.

    Args:
        folder: private folder for the source and the selected rows.

    Raises:
        RequestError: if the source cannot be read, if it has two contents for one id, or if a
            document to release has spans outside of its texts.
    """
    source = folder / "source.parquet"
    selected = folder / DOCUMENTS
    with duckdb_session.session(configuration.machine) as con:
        listed = gather(configuration.inbox, columns, con, source)
    gone = archive.withdrawn() | {document_hash(archive.hasher, document) for document in listed}
    with archive.known(gone) as con:
        n_rows = register_hashes(con, source, columns, archive.hasher)
        con.execute("create temp view known as select document, content, version from ids")
        if clash := duckdb_session.run(con, "release/collision").fetchone():
            first, second = (read_location(con, source, position) for position in clash)
            raise RequestError(
                f"{first} and {second} have the same id and different contents, so nothing "
                "was released; correct the ids, or remove the older row"
            )
        duckdb_session.create(con, "fates", "release/fates")
        # New and changed documents, in the order of the source.
        con.execute(
            "create temp view chosen as select *, row_number() over (order by position) as "
            "row from "
            f"read_parquet({duckdb_session.file_list([source])}, file_row_number = true) as rows "
            "join fates on fates.position = rows.file_row_number where fate in ('new', 'changed')"
        )
        withdrawn = con.execute("select document from fates where fate = 'withdrawn'").fetchall()
        gone |= {bytes(document) for (document,) in withdrawn}
        report = _counts(con, n_rows)
        if columns.subject is None and report.changed:
            raise RequestError(
                f"{report.changed:,} documents were released before with another text, so "
                "nothing was released; without lexveil.toml: inbox.subject_column each "
                "version would have its own budget, but with `subject_column = "
                f'"{columns.id}"` the versions of a document share one'
            )
        _check_spans(con, columns)
        ids = con.sql(
            "select '' as release, row, document, content, version::integer as version from "
            "chosen order by row"
        ).to_arrow_table()
        subjects = None if columns.subject is None else _values(con, columns.inner(columns.subject))
        names = _published(
            _values(con, columns.inner(columns.id)), columns, subjects, configuration.inbox.ids
        )
        if ids.num_rows:
            _write_selected(con, columns, names, selected)
    report.taken_out = _count_taken_out(archive, gone)
    ids = ids.append_column("published", names.column("id")).cast(IDS_SCHEMA)
    return ReleaseSelection(selected if ids.num_rows else None, subjects, ids, gone, report)


def _counts(con: duckdb.DuckDBPyConnection, n_rows: int) -> ReleaseReport:
    count = dict(con.execute("select fate, count(*) from fates group by fate").fetchall())
    ((repeats,),) = con.execute("select coalesce(sum(n_rows - 1), 0) from fates").fetchall()
    return ReleaseReport(
        rows=n_rows,
        new=count.get("new", 0),
        changed=count.get("changed", 0),
        duplicate=count.get("duplicate", 0) + int(repeats),
        withdrawn=count.get("withdrawn", 0),
    )


def _check_spans(con: duckdb.DuckDBPyConnection, columns: Columns) -> None:
    """Check the spans of new and changed documents while the original location of each row is still
    known.
    """
    if columns.spans is None:
        return
    inner = ", ".join(map(columns.inner, (columns.spans, *columns.texts)))
    batches = con.execute(f"select place, {inner} from chosen order by row")
    while rows := batches.fetchmany(ROWS_AT_A_TIME):
        for place, spans, *texts in rows:
            given_spans(spans, texts, columns.texts, f"{place}, {name(columns.spans)}")


def _values(con: duckdb.DuckDBPyConnection, inner: str) -> list[str]:
    """Return the values of a column for the new and changed documents."""
    return [
        value for (value,) in con.execute(f"select {inner} from chosen order by row").fetchall()
    ]


def _published(
    ids: list[str], columns: Columns, subjects: list[str] | None, how: Literal["pseudonym", "plain"]
) -> pa.Table:
    """Return the published id and subject of each row. They are random pseudonyms, which do not
    depend on any content, or the original names, according to ``how``.
    """
    if how == "pseudonym":
        ids = [secrets.token_hex(PSEUDONYM) for _ in ids]
        if subjects is not None:
            names = {
                subject: secrets.token_hex(PSEUDONYM)
                for subject in dict.fromkeys(map(subject_key, subjects))
            }
            is_id = columns.subject == columns.id
            subjects = ids if is_id else [names[subject_key(subject)] for subject in subjects]
    whom = pa.nulls(len(ids), pa.string()) if subjects is None else pa.array(subjects, pa.string())
    return pa.table({"id": pa.array(ids, pa.string()), "subject": whom})


def _write_selected(
    con: duckdb.DuckDBPyConnection, columns: Columns, names: pa.Table, out: Path
) -> None:
    """Write the rows of new and changed documents with their published ids and subjects.

    Every row has a name. The left join still makes DuckDB declare every column as nullable. With an
    inner join DuckDB would declare a column as nullable only if a row of the source is null, and
    the published file would show that.
    """
    inner = dict.fromkeys(columns.subjects, "names.subject") | {columns.id: "names.id"}
    wanted = ", ".join(
        f"{inner.get(column, columns.inner(column))} as {quoted(column)}"
        for column in columns.names
    )
    con.register(
        "named", names.append_column("row", pa.array(range(1, names.num_rows + 1), pa.int64()))
    )
    con.execute(
        f"copy (select {wanted} from named as names left join chosen using (row) order by "
        "position) "
        f"to '{out}' (format parquet, compression zstd, row_group_size {ROWS_AT_A_TIME})"
    )


def _count_taken_out(archive: Archive, gone: set[bytes]) -> int:
    """Return the number of document versions that will be removed from the archive because their
    hashes are in ``gone``.
    """
    with archive.known(gone - archive.withdrawn()) as con:
        ((n_versions,),) = con.execute(
            "select count(*) from marks where state = 'withdrawn'"
        ).fetchall()
    return int(n_versions)


def register_hashes(
    con: duckdb.DuckDBPyConnection, file: Path, columns: Columns, hasher: Hasher
) -> int:
    """Hash the document ids, subjects and contents of all rows into the table ``incoming``, and
    return the number of rows.

    Raises:
        RequestError: if a row has no id or no subject; the message names the first such row.
    """
    con.register("no_rows", INCOMING.empty_table())
    con.execute("create temp table incoming as select * from no_rows")
    n_rows = 0
    for hashed in _hashes(file, columns, hasher):
        con.register("hashed", hashed)
        con.execute("insert into incoming select * from hashed")
        n_rows += hashed.num_rows
    return n_rows


def _hashes(file: Path, columns: Columns, hasher: Hasher) -> Iterator[pa.Table]:
    """Yield the hashes of a source's rows, batch by batch, in the columns of ``INCOMING``."""
    wanted = list(dict.fromkeys([columns.id, *columns.subjects, *columns.texts]))
    start = 0
    for batch in pq.ParquetFile(file, pre_buffer=False).iter_batches(
        ROWS_AT_A_TIME, columns=["place", "is_withdrawn", *map(columns.inner, wanted)]
    ):
        values = {column: batch.column(columns.inner(column)).to_pylist() for column in wanted}
        documents = values[columns.id]
        subjects = documents if columns.subject is None else values[columns.subject]
        is_withdrawn = batch.column("is_withdrawn").to_pylist()
        for row, (document, subject, withdrawn) in enumerate(
            zip(documents, subjects, is_withdrawn, strict=True)
        ):
            if not subject_key(document or "") or (
                not subject_key(subject or "") and not withdrawn
            ):
                missing = "subject" if subject_key(document or "") else "id"
                location = batch.column("place")[row].as_py()
                raise RequestError(
                    f"{location} has no {missing}, without which the ledger cannot tell "
                    "whose budget the row spends; add it to the row"
                )
        keys = text_keys(list(zip(*map(values.__getitem__, columns.texts), strict=True)))
        content = [
            content_hash(hasher, document, subject or "", key)
            for document, subject, key in zip(documents, subjects, keys, strict=True)
        ]
        yield pa.table(
            [
                pa.array(np.arange(start, start + batch.num_rows)),
                pa.array([document_hash(hasher, document) for document in documents], HASH),
                pa.array(content, HASH),
                pa.array(is_withdrawn, pa.bool_()),
            ],
            schema=INCOMING,
        )
        start += batch.num_rows
