"""The archive of releases: what is remembered of each, and the index and newest versions of all of them.

A release is a folder whose documents.parquet has its name, which the ledger gives it when it is paid for. Everything
else is derived from the releases and the list of withdrawn ids, so that the next run completes what a killed one began.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil.config import MachineParams
from lexveil.errors import LexveilError, RequestError
from lexveil.formats.messages import shown
from lexveil.ledger.subjects import Hasher
from lexveil.runtime import duckdb_session
from lexveil.runtime.hashes import sha256
from lexveil.runtime.tables import PARQUET, atomic_file, write_json, write_table

DOCUMENTS = "documents.parquet"
RECORD, TOKENS = f"{DOCUMENTS}.record.json", f"{DOCUMENTS}.tokens.parquet"
CHECKS, PAGE, IDS = "checks.json", "checks.html", "ids.parquet"
AS_RELEASED = "record.as_released.json"  # the record whose hash the ledger's chain has, once the other was changed
CURRENT, INDEX, WITHDRAWN = "current.parquet", "index.parquet", "withdrawn.parquet"

HASH = pa.binary(16)
IDS_SCHEMA = pa.schema(
    [("release", pa.string()), ("row", pa.int64()), ("document", HASH), ("content", HASH), ("version", pa.int32())]
)
WITHDRAWN_SCHEMA = pa.schema([("document", HASH)])
BATCH = 2_000  # rows of texts that are held at a time


def document_hash(hasher: Hasher, document: str) -> bytes:
    """The keyed hash of a document's id. It never meets that of a subject."""
    return hasher.one(f"document:{document}")


def content_hash(hasher: Hasher, document: str, subject: str, texts: Iterable[str | None]) -> bytes:
    """The keyed hash of what is in a document: equal texts of two documents have different ones."""
    return hasher.one("content:" + json.dumps([document, subject, *texts]))


@dataclass(frozen=True, slots=True)
class Archive:
    """The releases of a folder.

    Attributes:
        folder: relative to the project.
        salt: the fingerprint of the ledger's salt, under which ids are hashed.
    """

    folder: Path
    machine: MachineParams
    hasher: Hasher
    salt: str

    def releases(self) -> list[Path]:
        """The folders of all releases, oldest first."""
        return sorted((path.parent for path in self.folder.glob(f"*/{RECORD}")), key=lambda path: path.name)

    def check(self, paid: Iterable[str]) -> None:
        """See that every release that was paid for is there, whole, and remembered under the ledger's salt.

        Args:
            paid: names of the releases that the ledger has paid for.

        Raises:
            RequestError: naming what is missing: without its memory documents would be paid for once more.
        """
        releases = self.releases()
        for name in sorted(set(paid) - {release.name for release in releases}):
            raise RequestError(
                f"{shown(self.folder / name)} is not there, or not whole, but the ledger has paid for it: without it "
                "its documents would be paid for again. Bring it back by `dvc checkout "
                f"{shown(self.folder)}/{name}.dvc` or `dvc pull`; `lexveil ledger show` says whether it could not be "
                "completed; to begin anew on purpose, choose another folder in params.yaml: release.archive"
            )
        for release in releases:
            for file in (DOCUMENTS, TOKENS, IDS):
                if not (release / file).is_file():
                    raise RequestError(
                        f"{shown(release / file)} is missing; bring it back by `dvc checkout {shown(release)}.dvc`"
                    )
            if read_record(release)["publication"]["salt"] != self.salt:
                raise RequestError(
                    f"{shown(release)}: was released with another ledger, under whose salt its documents are known; "
                    "bring that ledger back (params.yaml: release.ledger), or choose another release.archive"
                )

    def withdrawn(self) -> set[bytes]:
        """The hashes of all ids that were ever withdrawn."""
        file = self.folder / WITHDRAWN
        return set(pq.read_table(file).column("document").to_pylist()) if file.exists() else set()

    def withdraw(self, gone: set[bytes]) -> None:
        """Remember for ever that documents are withdrawn."""
        write_table(pa.table([pa.array(sorted(gone), HASH)], schema=WITHDRAWN_SCHEMA), self.folder / WITHDRAWN)

    @contextmanager
    def known(self, gone: set[bytes]) -> Iterator[duckdb.DuckDBPyConnection]:
        """A database session with ``ids`` of all released versions, their states as ``marks``, and ``gone``."""
        with duckdb_session.session(self.machine) as con:
            files = [release / IDS for release in self.releases()]
            con.register("gone_ids", pa.table([pa.array(sorted(gone), HASH)], schema=WITHDRAWN_SCHEMA))
            con.execute("create temp table gone as select * from gone_ids")
            if files:
                duckdb_session.view(con, "ids", *files)
            else:
                con.register("no_ids", IDS_SCHEMA.empty_table())
                con.execute("create temp view ids as select * from no_ids")
            duckdb_session.create(con, "marks", "release/index")
            yield con

    def settle(self) -> int:
        """Take withdrawn documents out of every release, and write index and newest versions anew.

        Returns:
            How many documents current.parquet has.
        """
        gone = self.withdrawn()
        with self.known(gone) as con:
            withdrawn = con.execute(
                "select release, list(row) filter (state = 'withdrawn') from marks group by release order by release"
            ).fetchall()
            for name, rows in withdrawn:
                self._take_out(self.folder / name, rows or [], gone)
            if not withdrawn:
                return 0
            with atomic_file(self.folder / INDEX) as partial:
                con.execute(f"copy (select * from marks order by release, row) to '{partial}' (format parquet)")
            files = duckdb_session.file_list(release / DOCUMENTS for release in self.releases())
            con.execute(
                f"create temp view archived as select * from read_parquet({files}, union_by_name = true, "
                "filename = true, file_row_number = true)"
            )
            n_current = duckdb_session.materialize(con, "release/current", self.folder / CURRENT, group_rows=BATCH)
            (wanted,) = con.execute("select count(*) from marks where state = 'current'").fetchone() or (0,)
        if n_current != wanted:
            raise LexveilError(
                f"{shown(self.folder)}: the releases hold {n_current:,} of {wanted:,} documents that are current; one "
                "was changed by hand. Bring them back by `dvc checkout`"
            )
        return n_current

    def _take_out(self, release: Path, rows: list[int], gone: set[bytes]) -> None:
        """Take rows out of a release's documents and tokens; its record comes last and says that it is done."""
        record = read_record(release)
        if record["withdrawn"] == len(rows):
            return
        if not (release / AS_RELEASED).exists():
            with atomic_file(release / AS_RELEASED) as partial:
                shutil.copyfile(release / RECORD, partial)
        id_column, taken_out = record["publication"]["id_column"], pa.array(rows, pa.int64())
        _filter(release / DOCUMENTS, lambda batch: self._stays(batch.column(id_column), gone))
        _filter(release / TOKENS, lambda batch: pc.invert(pc.is_in(batch.column("row"), taken_out)))
        hashes = {"sha256": sha256(release / DOCUMENTS), "tokens_sha256": sha256(release / TOKENS)}
        changed = {"withdrawn": len(rows), "output": record["output"] | hashes}
        write_json(record | changed, release / RECORD)

    def _stays(self, ids: pa.Array, gone: set[bytes]) -> pa.Array:
        return pa.array([document_hash(self.hasher, document) not in gone for document in ids.to_pylist()], pa.bool_())

    def clear(self) -> None:
        """Remove the folders of releases that never appeared; what the ledger had to complete is complete by now."""
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            if folder.is_dir() and not any(not path.name.startswith(".") for path in folder.iterdir()):
                shutil.rmtree(folder)


def read_record(release: Path) -> dict[str, Any]:
    """The privacy record of a release of this folder.

    Raises:
        RequestError: if it is none.
    """
    try:
        record: dict[str, Any] = json.loads((release / RECORD).read_text(encoding="utf-8"))
        known = {"salt", "id_column"} <= record["publication"].keys() and "withdrawn" in record
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise RequestError(
            f"{shown(release / RECORD)}: no record of `lexveil release`; bring it back by `dvc checkout`"
        )
    return record


def _filter(file: Path, stays: Any) -> None:
    """Rewrite a Parquet file without some of its rows, in bounded memory."""
    source = pq.ParquetFile(file)
    with atomic_file(file) as partial, pq.ParquetWriter(partial, source.schema_arrow, **PARQUET) as writer:
        for batch in source.iter_batches(batch_size=BATCH):
            writer.write_batch(batch.filter(stays(batch)))
