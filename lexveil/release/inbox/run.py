"""One call of `lexveil release`: read the source, remove withdrawn documents, and release new and
changed documents.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.project import Project
from lexveil.io.config import Configuration
from lexveil.io.formats.base import Source
from lexveil.io.formats.readers import Reader
from lexveil.io.formats.registry import format_named
from lexveil.io.request import FileRequest
from lexveil.release.adapters.files import privatize_file
from lexveil.release.charge import Charge
from lexveil.release.checks.data_docs import DataDocs
from lexveil.release.engine.worker import Processes
from lexveil.release.inbox.archive import DOCUMENTS, Archive
from lexveil.release.inbox.gate import NothingToRelease, ReleaseGate
from lexveil.release.inbox.report import ReleaseReport
from lexveil.release.inbox.selection import ReleaseSelection, select_documents
from lexveil.release.inbox.source import Columns
from lexveil.release.ledger.database import text
from lexveil.release.ledger.ledger import Ledger
from lexveil.release.ledger.output_files import make_folder
from lexveil.release.ledger.stores import store_of
from lexveil.release.ledger.subjects import SALT_BYTES, Hasher, fingerprint
from lexveil.release.preconditions import STAMP, check, is_without_guarantee
from lexveil.release.run import RowSource, Run


def release_inbox(dry_run: bool = False, docs: DataDocs | None = None) -> ReleaseReport:
    """Release the new and changed documents of the source that lexveil.toml names. The caller must
    prevent concurrent calls.

    Args:
        dry_run: whether to report only which documents would be released and what they would cost.
        docs: folder for the pages of the checks.

    Raises:
        RequestError: if there is no source, or the source cannot be released; nothing is spent
            then.
        CheckFailedError: if a check refuses the release; nothing is archived then, and nothing is
            spent unless noise has been drawn.
    """
    model = Model.load(Path(), OWN)
    terms = model.configuration.inbox
    configuration = model.configuration
    if not terms.is_on:
        raise RequestError(
            "lexveil.toml: inbox.source and inbox.sql are both omitted, so there is nothing "
            "to release; name an inbox folder, files or a SELECT (docs/how-to/release.md)"
        )
    model.require_checks(terms.strategy)
    archive = _open_archive(configuration, make=not dry_run)
    columns = Columns.of(terms)
    if not dry_run:
        archive.clear()
        archive.settle()  # opening the ledger completes a killed run
    with _private_folder(configuration) as folder:
        selection = select_documents(configuration, columns, archive, folder)
        report = selection.report
        report.dry_run = dry_run
        if dry_run:
            if selection.source is not None:
                report.budget, report.epsilon = cost(model, columns, selection.source)
            return report
        if selection.gone != archive.withdrawn():
            archive.folder.mkdir(parents=True, exist_ok=True)
            archive.withdraw(selection.gone)
            archive.settle()
        if selection.source is not None:
            _release(model.project, columns, archive, selection, docs or DataDocs(paths.DATA_DOCS))
        report.current = archive.settle()
    return report


def _open_archive(configuration: Configuration, make: bool) -> Archive:
    """Open the archive of releases, and check it against the budget ledger. Opening the ledger
    completes or aborts a killed release.
    """
    terms = configuration.inbox
    account = configuration.ledger
    folder = Path(terms.archive)
    memory = Path(terms.operator, folder)
    if not make and not store_of(account.folder, account.database).exists():
        salt = secrets.token_bytes(SALT_BYTES)  # without a ledger, nothing has been released
        archive = Archive(folder, memory, configuration.machine, Hasher(salt), fingerprint(salt))
        archive.check([])
        return archive
    with Ledger.open(
        account.folder, account.keys, anchor=account.anchor, address=account.database
    ) as ledger:
        ((salt_print,),) = ledger.database.rows("select value from meta where name = 'salt'")
        charged = [
            json.loads(payload)["about"]
            for _, payload in ledger.database.rows(text("ledger/charged"))
        ]
        archive = Archive(folder, memory, configuration.machine, ledger.hasher, str(salt_print))
    archive.check(
        about["publication"] for about in charged if about.get("archive") == terms.archive
    )
    return archive


@contextmanager
def _private_folder(configuration: Configuration) -> Iterator[Path]:
    """Yield a temporary folder for source texts that nobody else may read, after removing the
    remains of a killed call.
    """
    folder = Path(configuration.machine.temp_directory) / "release"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    mask = os.umask(0o077)
    try:
        yield folder
    finally:
        os.umask(mask)
        shutil.rmtree(folder, ignore_errors=True)


def release_name(now: datetime) -> str:
    """Return a new name for a release. The names sort in the order of releases, even within a
    second.
    """
    return f"{now:%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(4)}"


def _release(
    project: Project,
    columns: Columns,
    archive: Archive,
    selection: ReleaseSelection,
    docs: DataDocs,
) -> None:
    """Release the selected documents, and update the report."""
    report = selection.report
    terms = project.configuration.inbox
    name = release_name(datetime.now(UTC))
    model = Model.of_run(project)
    if is_without_guarantee(terms.request, model):
        name = f"{name}-{STAMP}"
    assert selection.source is not None
    gate = ReleaseGate(name, archive, columns, selection, project.configuration, docs)
    archive.make_memory(name)
    mask = os.umask(0o022)  # archived files are readable, unlike those in the private folder
    try:
        make_folder(gate.release)
        request = FileRequest(
            **terms.request.model_dump(exclude_unset=True), text_column=columns.texts
        )
        release = privatize_file(selection.source, gate.release / DOCUMENTS, request, hooks=gate)
    except NothingToRelease:
        report.withheld = gate.n_withheld
        return
    finally:
        os.umask(mask)
        for folder in (gate.release, gate.memory):
            with suppress(OSError):
                folder.rmdir()  # if nothing was published
    report.release = name
    report.withheld = gate.n_withheld
    report.released = selection.ids.num_rows - gate.n_withheld
    (report.budget,) = release.record.document_budget.values()
    report.epsilon = (
        release.operator.ledger.epsilon_charged
        if release.operator and release.operator.ledger
        else 0.0
    )


def cost(model: Model, columns: Columns, source: Path) -> tuple[float, float]:
    """Return the budget of each document, and the total cost of all documents before any budget
    cap.
    """
    file = Source(source, format_named("parquet"), "", source.stem)
    reader = Reader(file, columns.texts, columns.subject, spans_column=columns.spans)
    checked = check(model.configuration.inbox.request, model)
    with Processes(model.configuration.machine.workers) as processes:
        rows = RowSource(reader.chunks, tuple(columns.texts))
        run = Run(checked.engine, checked.budget, rows, processes)
        run.count(Charge())
    return run.budget.total, float(run.cost)
