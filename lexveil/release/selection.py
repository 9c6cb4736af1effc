"""Which rows of a source are released: those that are new or changed, by the hashes of what was released before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.config import Params
from lexveil.errors import RequestError
from lexveil.ledger.subjects import Hasher
from lexveil.release.archive import DOCUMENTS, HASH, IDS_SCHEMA, Archive, content_hash, document_hash
from lexveil.release.report import ReleaseReport
from lexveil.release.source import BATCH, Columns, gather, quoted, read_location
from lexveil.runtime import duckdb_session

INCOMING = pa.schema([("position", pa.int64()), ("document", HASH), ("content", HASH), ("is_withdrawn", pa.bool_())])


@dataclass(frozen=True, slots=True)
class ReleaseSelection:
    """What a source holds, compared with what was released before.

    Attributes:
        source: the private file of the rows to release; None if there are none.
        ids: what is to be remembered of them, in their order, but for the name of the release.
        gone: hashes of all that is withdrawn, now and earlier.
        report: counts of it.
    """

    source: Path | None
    ids: pa.Table
    gone: set[bytes]
    report: ReleaseReport


def select_documents(params: Params, columns: Columns, archive: Archive, folder: Path) -> ReleaseSelection:
    """Read the source and tell what of it is new, changed, known and withdrawn.

    Args:
        folder: private; for the source and what is selected of it.

    Raises:
        RequestError: if the source cannot be read, or holds two contents under one id.
    """
    source, selected = folder / "source.parquet", folder / DOCUMENTS
    with duckdb_session.session(params.machine) as con:
        listed = gather(params.release, columns, con, source)
    gone = archive.withdrawn() | {document_hash(archive.hasher, document) for document in listed}
    with archive.known(gone) as con:
        n_rows = register_hashes(con, source, columns, archive.hasher)
        con.execute("create temp view known as select document, content, version from ids")
        if clash := duckdb_session.run(con, "release/collision").fetchone():
            first, second = (read_location(con, source, position) for position in clash)
            raise RequestError(
                f"{first} and {second} have the same id and different contents; nothing was released. Correct the ids, "
                "or leave the older one out"
            )
        duckdb_session.create(con, "fates", "release/fates")
        withdrawn = con.execute("select document from fates where fate = 'withdrawn'").fetchall()
        gone |= {bytes(document) for (document,) in withdrawn}
        report = _counts(con, n_rows)
        ids = _ids(con)
        if ids.num_rows:
            _write_selected(con, source, columns, selected)
    report.taken_out = _count_taken_out(archive, gone)
    return ReleaseSelection(selected if ids.num_rows else None, ids, gone, report)


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


def _ids(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """What is to be remembered of new and changed documents."""
    selected = con.sql(
        "select '' as release, row_number() over (order by position) as row, document, content, "
        "version::integer as version from fates where fate in ('new', 'changed') order by position"
    )
    return selected.to_arrow_table().cast(IDS_SCHEMA)


def _write_selected(con: duckdb.DuckDBPyConnection, source: Path, columns: Columns, out: Path) -> None:
    """Write the rows of new and changed documents, in the order of ``_ids``."""
    wanted = ", ".join(f"{columns.inner(column)} as {quoted(column)}" for column in columns.names)
    con.execute(
        f"copy (select {wanted} from read_parquet({duckdb_session.file_list([source])}, "
        "file_row_number = true) as rows join fates on fates.position = rows.file_row_number "
        "where fate in ('new', 'changed') "
        f"order by position) to '{out}' (format parquet, compression zstd, row_group_size {BATCH})"
    )


def _count_taken_out(archive: Archive, gone: set[bytes]) -> int:
    """How many archived versions ``gone`` takes out."""
    with archive.known(gone - archive.withdrawn()) as con:
        ((n_versions,),) = con.execute("select count(*) from marks where state = 'withdrawn'").fetchall()
    return int(n_versions)


def register_hashes(con: duckdb.DuckDBPyConnection, file: Path, columns: Columns, hasher: Hasher) -> int:
    """Keep the hashes of all rows of a source as ``incoming``; return how many rows there are.

    Raises:
        RequestError: naming the first row without an id or a subject.
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
    """Yield the hashes of a source, batch by batch, in the columns of ``INCOMING``."""
    wanted = list(dict.fromkeys([columns.id, columns.subject, *columns.texts]))
    start = 0
    for batch in pq.ParquetFile(file).iter_batches(
        BATCH, columns=["place", "is_withdrawn", *map(columns.inner, wanted)]
    ):
        values = {column: batch.column(columns.inner(column)).to_pylist() for column in wanted}
        documents, subjects = values[columns.id], values[columns.subject]
        is_withdrawn = batch.column("is_withdrawn").to_pylist()
        for row, (document, subject, withdrawn) in enumerate(zip(documents, subjects, is_withdrawn, strict=True)):
            if not document or (not subject and not withdrawn):
                location, missing = batch.column("place")[row].as_py(), "id" if not document else "subject"
                raise RequestError(f"{location} has no {missing}; without it nobody knows whose budget it spends")
        contents = zip(documents, subjects, zip(*map(values.__getitem__, columns.texts), strict=True), strict=True)
        content = [content_hash(hasher, document, subject or "", texts) for document, subject, texts in contents]
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
