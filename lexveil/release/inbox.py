"""One run of `lexveil release`: read the source, take out what is withdrawn, release what is new or changed."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil import paths
from lexveil.accounting.record import Publication
from lexveil.artifacts.data_docs import DataDocs
from lexveil.config import Params, load_params
from lexveil.errors import RequestError
from lexveil.formats.base import Source
from lexveil.formats.chunks import Chunk
from lexveil.formats.readers import Reader
from lexveil.formats.registry import format_named
from lexveil.ledger.database import text
from lexveil.ledger.ledger import DATABASE, Ledger
from lexveil.ledger.output_files import sync
from lexveil.ledger.subjects import SALT_BYTES, Hasher, fingerprint
from lexveil.privatization.budget_charge import NoCharge
from lexveil.privatization.file_adapter import privatize_file
from lexveil.privatization.model import Model
from lexveil.privatization.selected_chunk import SelectedChunk
from lexveil.privatization.settings import RewriteOptions, make_settings
from lexveil.privatization.tally import ExactSum
from lexveil.privatization.two_passes import TwoPassRun
from lexveil.release.archive import (
    CHECKS,
    DOCUMENTS,
    HASH,
    IDS,
    IDS_SCHEMA,
    PAGE,
    Archive,
    content_hash,
    document_hash,
)
from lexveil.release.gate import Gate, NothingToRelease
from lexveil.release.source import BATCH, Columns, gather, quoted, read_place
from lexveil.runtime import duckdb_session

INCOMING = pa.schema([("position", pa.int64()), ("document", HASH), ("content", HASH), ("is_withdrawn", pa.bool_())])


@dataclass(slots=True)
class ReleaseReport:
    """What a run found and did; counts only.

    Attributes:
        rows: of the source.
        new, changed: documents to release, because their id or their content is.
        duplicate: rows that repeat what was released, or another row.
        withdrawn: documents of the source that are not released because they are withdrawn, now or earlier.
        taken_out: versions of documents that this run took out of what was published.
        released, withheld: of the new and changed ones; withheld for their subject's budget is exhausted.
        epsilon: spent on all of them, in a dry run what they would cost.
        budget: of each document; None if there is none to release.
        release: the name of the new release; None if there is none.
        current: documents that are published now.
        dry_run: whether nothing was done.
    """

    rows: int = 0
    new: int = 0
    changed: int = 0
    duplicate: int = 0
    withdrawn: int = 0
    taken_out: int = 0
    released: int = 0
    withheld: int = 0
    epsilon: float = 0.0
    budget: float | None = None
    release: str | None = None
    current: int = 0
    dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def as_text(self) -> Iterator[str]:
        """Yield it as lines for people."""
        yield (
            f"{self.rows:,} rows: {self.new:,} new, {self.changed:,} changed, {self.duplicate:,} known or repeated, "
            f"{self.withdrawn:,} withdrawn"
        )
        if self.dry_run:
            if self.new + self.changed:
                yield (
                    f"would be released: {self.new + self.changed:,} documents, for {self.epsilon:.6g} epsilon in all, "
                    f"at most {self.budget:.6g} each, as far as the cap of their subjects allows"
                )
            if self.taken_out:
                yield f"would be taken out of what is published: {self.taken_out:,}"
            yield "dry run: nothing was done"
            return
        if self.taken_out:
            yield f"taken out of what is published: {self.taken_out:,}"
        if self.withheld:
            yield f"withheld, because the budget of their subjects is exhausted: {self.withheld:,}"
        if self.release:
            yield f"released: {self.released:,} documents for {self.epsilon:.6g} epsilon, as {self.release}"
        else:
            yield "nothing to release"
        yield f"published now: {self.current:,} documents"


@dataclass(frozen=True, slots=True)
class ReleaseSelection:
    """What a source holds, judged by what was released before.

    Attributes:
        source: the private file of the rows to release; None if there are none.
        ids: what is to be remembered of them, in their order, but for the name of the release.
        gone: hashes of all that is withdrawn, now and earlier.
    """

    source: Path | None
    ids: pa.Table
    gone: set[bytes]
    report: ReleaseReport


def publish(dry_run: bool = False, docs: DataDocs | None = None) -> ReleaseReport:
    """Make one release of what is new in the source that params.yaml names; the caller keeps others out.

    Args:
        dry_run: only look what would be done and what it would cost.
        docs: where the pages of the checks are put.

    Raises:
        RequestError: if there is no source, or it cannot be released as it is; nothing is spent then.
        CheckFailed: if the gate does not open; nothing is published or spent then.
    """
    params = load_params()
    terms = params.release
    if terms.source is None and terms.sql is None:
        raise RequestError(
            "params.yaml: release.source and release.sql are null, so there is nothing to release; name an inbox "
            "folder, files or a SELECT (docs/how-to/release.md)"
        )
    Model.load().require_checks(terms.strategy)
    published = _open(params, make=not dry_run)
    columns = Columns.of(terms)
    if not dry_run:
        published.clear()
        published.settle()  # what a run that was killed left to do
    with _private_folder(params) as work:
        chosen = choose(params, columns, published, work)
        report = chosen.report
        report.dry_run = dry_run
        if dry_run:
            if chosen.source is not None:
                report.budget, report.epsilon = cost(params, columns, chosen.source)
            return report
        if chosen.gone != published.withdrawn():
            published.folder.mkdir(parents=True, exist_ok=True)
            published.withdraw(chosen.gone)
            published.settle()
        if chosen.source is not None:
            _release(params, columns, published, chosen, docs or DataDocs(paths.DATA_DOCS))
        report.current = published.settle()
    return report


def _open(params: Params, make: bool) -> Archive:
    """What was published, seen through the ledger: first it ends what a killed run had begun."""
    terms = params.release
    folder = Path(terms.archive)
    if not make and not Path(terms.ledger, DATABASE).exists():
        salt = secrets.token_bytes(SALT_BYTES)  # without a ledger nothing was released yet
        published = Archive(folder, params.machine, Hasher(salt), fingerprint(salt))
        published.check([])
        return published
    with Ledger.open(terms.ledger, keys=terms.keys) as ledger:
        (salt_of_it,) = ledger.database.rows("select value from meta where name = 'salt'")[0]
        told = [json.loads(payload)["about"] for _, payload in ledger.database.rows(text("ledger/published"))]
        published = Archive(folder, params.machine, ledger.hasher, str(salt_of_it))
    published.check(one["publication"] for one in told if one.get("archive", one.get("publish")) == terms.archive)
    return published


@contextmanager
def _private_folder(params: Params) -> Iterator[Path]:
    """A folder for source texts that nobody else may read; what a killed run left is removed first."""
    folder = Path(params.machine.temp_directory) / "release"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    mask = os.umask(0o077)
    try:
        yield folder
    finally:
        os.umask(mask)
        shutil.rmtree(folder, ignore_errors=True)


def choose(params: Params, columns: Columns, published: Archive, work: Path) -> ReleaseSelection:
    """Read the source and tell what of it is new, changed, known and withdrawn.

    Args:
        work: where the source and what is chosen of it are kept.

    Raises:
        RequestError: if the source cannot be read, or holds two contents under one id.
    """
    everything, some = work / "source.parquet", work / DOCUMENTS
    with duckdb_session.session(params.machine) as con:
        listed = gather(params.release, columns, con, everything)
    gone = published.withdrawn() | {document_hash(published.hasher, one) for one in listed}
    with published.known(gone) as con:
        rows = _hash(con, everything, columns, published.hasher)
        con.execute("create temp view known as select document, content, version from ids")
        if clash := duckdb_session.run(con, "release/collision").fetchone():
            first, second = (read_place(con, everything, position) for position in clash)
            raise RequestError(
                f"{first} and {second} have the same id and different contents; nothing was released. Correct the ids, "
                "or leave the older one out"
            )
        duckdb_session.create(con, "fates", "release/fates")
        count = dict(con.execute("select fate, count(*) from fates group by fate").fetchall())
        (repeats,) = con.execute("select coalesce(sum(n_rows - 1), 0) from fates").fetchone() or (0,)
        gone |= {bytes(one) for (one,) in con.execute("select document from fates where fate = 'withdrawn'").fetchall()}
        ids = con.sql(
            "select '' as release, row_number() over (order by position) as row, document, content, "
            "version::integer as version from fates where fate in ('new', 'changed') order by position"
        ).to_arrow_table().cast(IDS_SCHEMA)  # fmt: skip
        if ids.num_rows:
            wanted = ", ".join(f"{columns.inner(column)} as {quoted(column)}" for column in columns.names)
            con.execute(
                f"copy (select {wanted} from read_parquet({duckdb_session.file_list([everything])}, "
                "file_row_number = true) as rows join fates on fates.position = rows.file_row_number "
                "where fate in ('new', 'changed') "
                f"order by position) to '{some}' (format parquet, compression zstd, row_group_size {BATCH})"
            )
    report = ReleaseReport(
        rows=rows,
        new=count.get("new", 0),
        changed=count.get("changed", 0),
        duplicate=count.get("duplicate", 0) + int(repeats),
        withdrawn=count.get("withdrawn", 0),
    )
    report.taken_out = _taken_out(published, gone)
    return ReleaseSelection(some if ids.num_rows else None, ids, gone, report)


def _taken_out(published: Archive, gone: set[bytes]) -> int:
    """How many versions are published now that ``gone`` takes out."""
    before = published.withdrawn()
    with published.known(gone - before) as con:
        (n_now,) = con.execute("select count(*) from marks where state = 'withdrawn'").fetchone() or (0,)
    return int(n_now)


def _hash(con: duckdb.DuckDBPyConnection, file: Path, columns: Columns, hasher: Hasher) -> int:
    """Keep the hashes of all rows as ``incoming``; return how many there are."""
    con.register("no_rows", INCOMING.empty_table())
    con.execute("create temp table incoming as select * from no_rows")
    wanted = list(dict.fromkeys([columns.id, columns.subject, *columns.texts]))
    position = 0
    for batch in pq.ParquetFile(file).iter_batches(
        BATCH, columns=["place", "is_withdrawn", *map(columns.inner, wanted)]
    ):
        places = batch.column("place").to_pylist()
        values = {column: batch.column(columns.inner(column)).to_pylist() for column in wanted}
        is_withdrawn = batch.column("is_withdrawn").to_pylist()
        for at, (one, subject) in enumerate(zip(values[columns.id], values[columns.subject], strict=True)):
            if not one or (not subject and not is_withdrawn[at]):
                which = "id" if not one else "subject"
                raise RequestError(f"{places[at]} has no {which}; without it nobody knows whose budget it spends")
        texts = zip(*(values[column] for column in columns.texts), strict=True)
        hashed = pa.table(
            [
                pa.array(np.arange(position, position + batch.num_rows)),
                pa.array([document_hash(hasher, one) for one in values[columns.id]], HASH),
                pa.array(
                    [
                        content_hash(hasher, one, subject or "", row)
                        for one, subject, row in zip(values[columns.id], values[columns.subject], texts, strict=True)
                    ],
                    HASH,
                ),
                pa.array(is_withdrawn, pa.bool_()),
            ],
            schema=INCOMING,
        )
        con.register("hashed", hashed)
        con.execute("insert into incoming select * from hashed")
        position += batch.num_rows
    return position


def _how(params: Params) -> dict[str, Any]:
    terms = params.release
    return {
        "mechanism": terms.mechanism,
        "strategy": terms.strategy,
        "epsilon": terms.epsilon,
        "document_budget": terms.document_budget,
    }


def _release(params: Params, columns: Columns, published: Archive, chosen: ReleaseSelection, docs: DataDocs) -> None:
    """Release what was chosen, and fill in the report."""
    report, terms = chosen.report, params.release
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    release = published.folder / name
    assert chosen.source is not None
    gate = Gate(
        release=release,
        source=chosen.source,
        columns=columns,
        ids=chosen.ids.set_column(0, "release", pa.array([name] * chosen.ids.num_rows, pa.string())),
        limits=terms.gate,
        machine=params.machine,
        docs=docs,
        publication=Publication(
            name=name,
            salt=published.salt,
            id_column=columns.id,
            new=report.new,
            changed=report.changed,
        ),
    )
    mask = os.umask(0o022)  # the private folder's mask is not for what is published
    try:
        release.mkdir(parents=True)
        sync(published.folder)
        record = privatize_file(
            chosen.source,
            release / DOCUMENTS,
            text_column=columns.texts,
            subject_column=columns.subject,
            gate=gate,
            more=[release / file for file in (CHECKS, PAGE, IDS)],
            about={"archive": terms.archive, "publication": name},
            **_how(params),
        )
    except NothingToRelease:
        report.withheld = gate.n_withheld
        return
    finally:
        os.umask(mask)
        with suppress(OSError):
            release.rmdir()  # if nothing appeared
    report.release, report.withheld = name, gate.n_withheld
    report.released = chosen.ids.num_rows - gate.n_withheld
    (report.budget,) = record.document_budget.values()
    report.epsilon = record.release.epsilon if record.release else 0.0


class _CostEstimate(NoCharge):
    """Adds up what all rows would cost, in document budgets."""

    def __init__(self) -> None:
        self.shares = ExactSum()

    def request(self, chunk: Chunk, shares: npt.NDArray[np.float64]) -> None:  # noqa: ARG002
        """Add the rows of a chunk."""
        self.shares.add(shares)


def cost(params: Params, columns: Columns, source: Path) -> tuple[float, float]:
    """The budget of each document, and what all would cost, before any cap."""
    reader = Reader(Source(source, format_named("parquet"), "", source.stem), columns.texts, columns.subject)

    def chunks(for_writing: bool) -> Iterator[SelectedChunk]:
        for chunk in reader.chunks(for_writing):
            yield SelectedChunk.whole(chunk)

    settings = make_settings(RewriteOptions(**_how(params)), params)
    run = TwoPassRun(settings, Model.load(), chunks, columns.texts, params.machine.workers)
    bill = _CostEstimate()
    run.count(bill)
    return run.budget, float(bill.shares) * run.budget
