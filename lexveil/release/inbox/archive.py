"""The archive of releases, and the operator's private records about each release, which are never
in the archive.

A release is a folder with a documents.parquet. The ledger records its name when its epsilon is
charged. The index and the newest versions of documents are computed from the releases and the
operator's private records, so that the next run can complete a killed run. Published ids are names
that are not a function of any content.
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

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.tables import PARQUET, atomic_file, read_object, write_json, write_table
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.core.accounting.statement import statement_for_recipients
from lexveil.core.accounting.subject_keys import subject_key
from lexveil.io.config import MachineParams
from lexveil.io.execution import duckdb_session
from lexveil.io.formats.messages import shown
from lexveil.release.ledger.locks import sync
from lexveil.release.ledger.output_files import make_folder
from lexveil.release.ledger.subjects import Hasher
from lexveil.release.preconditions import STAMP

DOCUMENTS = "documents.parquet"
RECORD = f"{DOCUMENTS}.record.json"
STATEMENT = f"{DOCUMENTS}.statement.txt"
# Files of the operator: the memory of a release, and the results of the gate about the source.
REPORT = f"{DOCUMENTS}.operator.json"
TOKENS = f"{DOCUMENTS}.tokens.parquet"
IDS = "ids.parquet"
# the original record, whose hash is in the ledger's chain, if the published record was changed
AS_RELEASED = "record.as_released.json"
CURRENT = "current.parquet"
CURRENT_WITHOUT = f"current.{STAMP}.parquet"
INDEX = "index.parquet"
WITHDRAWN = "withdrawn.parquet"

HASH = pa.binary(16)

IDS_SCHEMA = pa.schema(
    [
        ("release", pa.string()),
        ("row", pa.int64()),
        ("document", HASH),
        ("content", HASH),
        ("version", pa.int32()),
        ("published", pa.string()),
    ]
)
WITHDRAWN_SCHEMA = pa.schema([("document", HASH)])
ROWS_AT_A_TIME = 2_000  # rows of texts in memory at once


def document_hash(hasher: Hasher, document: str) -> bytes:
    """Return the keyed hash of a document's id, after normalizing the id like a subject key. Hashes
    of documents are never compared with hashes of subjects.
    """
    return hasher.one(f"document:{subject_key(document)}")


def content_hash(hasher: Hasher, document: str, subject: str, text_key: str) -> bytes:
    """Return the keyed hash of a document's id, subject and texts, by which changed documents are
    recognized. Equal texts of two documents have different hashes.
    """
    return hasher.one(
        "content:" + json.dumps([subject_key(document), subject_key(subject), text_key])
    )


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive: a folder of releases, with the operator's private records about them.

    Attributes:
        folder: folder of the releases, relative to the project.
        memory: the folder of the operator's private records, which nobody else may read.
        salt: fingerprint of the budget ledger's salt, with which ids are hashed.
    """

    folder: Path
    memory: Path
    machine: MachineParams
    hasher: Hasher
    salt: str

    def releases(self) -> list[Path]:
        """Return the folders of all releases, oldest first."""
        return sorted(
            (path.parent for path in self.folder.glob(f"*/{RECORD}")), key=lambda path: path.name
        )

    def check(self, paid: Iterable[str]) -> None:
        """Check that every charged release exists, is complete, and has its private records, made
        with the ledger's salt.

        Args:
            paid: names of the releases that the ledger has charged.

        Raises:
            RequestError: if a file is missing; the message names it. Without its private records,
                the documents of a release would be charged again.
        """
        releases = self.releases()
        for name in sorted(set(paid) - {release.name for release in releases}):
            raise RequestError(
                f"{shown(self.folder / name)} is missing or incomplete, but the ledger has "
                "charged this release, and its documents would be charged again without it. "
                f"Restore it by `dvc checkout {shown(self.folder)}/{name}.dvc` or `dvc "
                "pull`; `lexveil ledger show` says whether the release could not be "
                "completed; to start a new archive on purpose, choose another folder in "
                "lexveil.toml: inbox.archive"
            )
        for release in releases:
            self._check_release(release)
        if (
            any(read_record(release)["withdrawn"] for release in releases)
            and not (self.memory / WITHDRAWN).is_file()
        ):
            raise self._forgotten(self.memory / WITHDRAWN)

    def _check_release(self, release: Path) -> None:
        if not (release / DOCUMENTS).is_file():
            raise RequestError(
                f"{shown(release / DOCUMENTS)} is missing; restore it by `dvc checkout "
                f"{shown(release)}.dvc`"
            )
        memory = self.memory / release.name
        for file in (IDS, TOKENS, REPORT):
            if not (memory / file).is_file():
                raise self._forgotten(memory / file)
        if read_object(memory / REPORT).get("release", {}).get("salt") != self.salt:
            raise RequestError(
                f"{shown(release)}: the release was made with another ledger, and its "
                "documents are known only under the salt of that ledger; restore that "
                "ledger (lexveil.toml: ledger.folder), or choose another inbox.archive"
            )

    def _forgotten(self, file: Path) -> RequestError:
        return RequestError(
            f"{shown(file)} is missing, but without it the documents of "
            f"{shown(self.folder)} would not be recognized, and would be charged and "
            "released again; restore it from your copy of inbox.operator, or, to start a "
            "new archive on purpose, choose another inbox.archive"
        )

    def withdrawn(self) -> set[bytes]:
        """Return the hashes of the ids of all documents that were ever withdrawn."""
        file = self.memory / WITHDRAWN
        return set(pq.read_table(file).column("document").to_pylist()) if file.exists() else set()

    def withdraw(self, gone: set[bytes]) -> None:
        """Record permanently that the documents with these hashes were withdrawn from the
        archive.
        """
        self.make_memory()
        write_table(
            pa.table([pa.array(sorted(gone), HASH)], schema=WITHDRAWN_SCHEMA),
            self.memory / WITHDRAWN,
        )
        sync(self.memory)
        (self.memory / WITHDRAWN).chmod(0o600)

    def make_memory(self, name: str = "") -> None:
        """Create the folder of the operator's private records, or a release's folder in it. Nobody
        else may read the folder, and git ignores it.
        """
        folder = self.memory / name
        for path in (*reversed(folder.parents), folder):
            if not path.exists():
                make_folder(path, 0o700)
        if not (self.memory / ".gitignore").exists():
            (self.memory / ".gitignore").write_text("*\n", encoding="utf-8")

    @contextmanager
    def known(self, gone: set[bytes]) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a database session with three tables: ``ids`` of all released versions of documents,
        their states as ``marks``, and ``gone``, the withdrawn documents.
        """
        with duckdb_session.session(self.machine) as con:
            files = [self.memory / release.name / IDS for release in self.releases()]
            con.register(
                "gone_ids", pa.table([pa.array(sorted(gone), HASH)], schema=WITHDRAWN_SCHEMA)
            )
            con.execute("create temp table gone as select * from gone_ids")
            if files:
                duckdb_session.view(con, "ids", *files)
            else:
                con.register("no_ids", IDS_SCHEMA.empty_table())
                con.execute("create temp view ids as select * from no_ids")
            duckdb_session.create(con, "marks", "release/index")
            yield con

    def settle(self) -> int:
        """Remove withdrawn documents from every release, and rewrite the index and the newest
        versions.

        Returns:
            Number of current documents, in current.parquet and in the file of documents without a
                guarantee.
        """
        gone = self.withdrawn()
        with self.known(gone) as con:
            withdrawn = con.execute(
                "select release, list(row) filter (state = 'withdrawn'), list(published) "
                "filter (state = 'withdrawn') "
                "from marks group by release order by release"
            ).fetchall()
            for name, rows, published in withdrawn:
                self._take_out(self.folder / name, rows or [], published or [])
            if not withdrawn:
                return 0
            with atomic_file(self.folder / INDEX) as partial:
                # Write neither hashes nor row numbers of the private input, because gaps in the
                # numbers would disclose the number of withheld documents.
                con.execute(
                    "copy (select release, published as id, state, place from marks order by "
                    "release, row) "
                    f"to '{partial}' (format parquet)"
                )
            files = duckdb_session.file_list(release / DOCUMENTS for release in self.releases())
            con.execute(
                f"create temp view archived as select * from read_parquet({files}, "
                "union_by_name = true, "
                "filename = true, file_row_number = true)"
            )
            names = {CURRENT: False}
            if any(STAMP in release.name for release in self.releases()):
                names[CURRENT_WITHOUT] = True
            n_current = sum(
                duckdb_session.materialize(
                    con,
                    "release/current",
                    self.folder / name,
                    group_rows=ROWS_AT_A_TIME,
                    stamp=STAMP,
                    is_stamped=is_stamped,
                )
                for name, is_stamped in names.items()
            )
            (wanted,) = con.execute(
                "select count(*) from marks where state = 'current'"
            ).fetchone() or (0,)
        if n_current != wanted:
            raise LexveilError(
                f"{shown(self.folder)}: the releases have {n_current:,} of {wanted:,} "
                "current documents, so one of them was changed by hand; restore the "
                "releases by `dvc checkout`"
            )
        return n_current

    def _take_out(self, release: Path, rows: list[int], published: list[str]) -> None:
        """Remove rows from the documents and tokens of a release. The release's record is written
        last, which marks the removal as complete.
        """
        record = read_record(release)
        memory = self.memory / release.name
        if record["withdrawn"] == len(rows):
            return
        if not (release / AS_RELEASED).exists():
            with atomic_file(release / AS_RELEASED) as partial:
                shutil.copyfile(release / RECORD, partial)
            sync(release)
        id_column = record["publication"]["id_column"]
        _take(release / DOCUMENTS, id_column, pa.array(published, pa.string()))
        _take(memory / TOKENS, "row", pa.array(rows, pa.int64()))
        (memory / TOKENS).chmod(0o600)
        output = record["output"] | {"sha256": sha256(release / DOCUMENTS)}
        changed = record | {"withdrawn": len(rows), "output": output}
        if (release / STATEMENT).exists():  # earlier versions did not write this file
            words = statement_for_recipients(PrivacyRecord.model_validate(changed), DOCUMENTS)
            with atomic_file(release / STATEMENT) as partial:
                partial.write_text(words, encoding="utf-8")
        write_json(changed, release / RECORD)

    def clear(self) -> None:
        """Remove the folders of releases that were never published. The ledger must have completed
        unfinished releases before.
        """
        for parent in (self.folder, self.memory):
            for folder in parent.iterdir() if parent.is_dir() else ():
                if folder.is_dir() and not any(
                    not path.name.startswith(".") for path in folder.iterdir()
                ):
                    shutil.rmtree(folder)


def read_record(release: Path) -> dict[str, Any]:
    """Read the privacy record of a release in this archive.

    Raises:
        RequestError: if the file is not such a record.
    """
    record = read_object(release / RECORD)
    publication = record.get("publication")
    if not (isinstance(publication, dict) and "id_column" in publication and "withdrawn" in record):
        raise RequestError(
            f"{shown(release / RECORD)}: the file is not a record of `lexveil release`; "
            "restore it by `dvc checkout`"
        )
    return record


def _take(file: Path, column: str, values: pa.Array) -> None:
    """Remove the rows of a Parquet file in which a column has one of ``values``, in bounded
    memory.
    """
    source = pq.ParquetFile(file, pre_buffer=False)
    with (
        atomic_file(file) as partial,
        pq.ParquetWriter(partial, source.schema_arrow, **PARQUET) as writer,
    ):
        for batch in source.iter_batches(batch_size=ROWS_AT_A_TIME):
            writer.write_batch(batch.filter(pc.invert(pc.is_in(batch.column(column), values))))
