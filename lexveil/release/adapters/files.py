"""Rewrite files, folders, standard input or databases in bounded memory, for `lexveil privatize`.

The input is read in two passes. The first pass counts the tokens and computes the epsilon that each
subject (the person behind a text) spends, and the second pass rewrites. A release is charged to the
ledger between the passes. At the end, either all outputs appear together, or no output appears.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base.errors import LexveilError, RequestError, option
from lexveil.base.runtime.objects import ObjectPath, as_path
from lexveil.base.runtime.tables import PARQUET
from lexveil.core.accounting.operator_report import OperatorHashes, OperatorReport
from lexveil.core.accounting.record import Counts, OutputHashes, PrivacyRecord
from lexveil.core.accounting.results import Result
from lexveil.core.accounting.statement import statement_for_recipients
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.project import Project
from lexveil.io.databases.address import is_address, read_address
from lexveil.io.execution.pool import prepared_workers
from lexveil.io.formats.base import Writer
from lexveil.io.formats.chunks import Chunk, Texts
from lexveil.io.formats.readers import open_writer
from lexveil.io.request import FileRequest
from lexveil.release.adapters.inputs import (
    SMALL_FILE,
    STDIN,
    Job,
    find_jobs,
    make_spool,
    other_columns,
    tell_columns,
    workers_for,
)
from lexveil.release.charge import ledger_of, open_charge
from lexveil.release.engine.batch import token_log_schema
from lexveil.release.engine.counts import RewrittenChunk
from lexveil.release.engine.records import record_of
from lexveil.release.engine.worker import Processes
from lexveil.release.outputs import STATEMENT, Outputs, check_companions, writing
from lexveil.release.preconditions import (
    STAMP,
    Checked,
    check,
    is_without_guarantee,
    stamped,
    tell_unmatched,
)
from lexveil.release.run import Judge, RowSource, Run
from lexveil.release.settings import Settings, settings_of

if TYPE_CHECKING:
    from lexveil.io.databases.table import DatabaseTable

OPERATOR_FILES = {"tokens_sha256": "tokens.parquet", "withheld_sha256": "withheld.csv"}


@dataclass(kw_only=True)
class ReleaseHooks(Judge):
    """Checks and extra files that `lexveil release` adds to a request to rewrite files.

    Attributes:
        more: further files that the checks may write, by ``Outputs.begin``; the files appear with
            the output.
        operator_folder: the folder of the operator's files; None for the folder of the output.
        about: further facts for the log of the budget ledger; no text and no key.
        subjects: the subject of each row (the person whose budget is charged), if no published
            column names it.
        tells_columns: whether standard error names the columns that are published unchanged.
    """

    more: Sequence[Path] = ()
    operator_folder: Path | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    subjects: Sequence[str] | None = None
    tells_columns: bool = True


@dataclass(frozen=True, slots=True)
class PrivatizedFiles:
    """The result of a request that rewrote files.

    Attributes:
        record: the privacy record, which is published with the outputs.
        operator: the report that only the operator may see; None if the texts were copied
            unchanged.
        target: path of the output, whose name says so if there is no guarantee; None for standard
            output. For a database table, the common prefix of the paths of the record and of the
            operator's files.
        table: the name of the table, if the output is a table of a database.
    """

    record: PrivacyRecord
    operator: OperatorReport | None
    target: Path | None
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """The input files or tables to rewrite, with the request, the additional checks and the
    outputs. ``privatize_file`` explains them.
    """

    jobs: Sequence[Job]
    request: FileRequest
    hooks: ReleaseHooks
    outputs: Outputs
    table: DatabaseTable | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns whose texts are rewritten."""
        return tuple(self.jobs[0].reader.text_columns)

    @property
    def table_name(self) -> str | None:
        """The name of the database table that is written, or None if the output is not a table."""
        return None if self.table is None else self.table.name

    @property
    def has_names(self) -> bool:
        """Whether the source is a folder of files. If so, each row is identified by its file's name
        and its number.
        """
        return bool(self.jobs[0].name)

    def chunks(self, *, for_writing: bool) -> Iterator[Chunk]:
        """Yield the rows of all input files, in chunks."""
        subjects = self.hooks.subjects
        for job in self.jobs:
            for chunk in job.reader.chunks(for_writing):
                start = chunk.first - 1
                of_chunk = (
                    chunk.subjects
                    if subjects is None
                    else list(subjects[start : start + len(chunk)])
                )
                yield replace(chunk, subjects=of_chunk, file=job.name)


def privatize_file(
    source: Path | str,
    target: Path | str,
    request: FileRequest,
    *,
    project: Path | Model | None = None,
    model: str | None = None,
    hooks: ReleaseHooks | None = None,
) -> PrivatizedFiles:
    """Rewrite the text columns of a file or of all files in a folder, and write a privacy record
    and the operator's private files next to the output.

    Args:
        source: a file in JSON lines, CSV, TSV, text (each also compressed by gz, zst, bz2 or xz) or
            Parquet; a folder of such files; "-" for standard input; or the address of a database,
            whose rows ``sql`` selects. Files and folders may be in object storage, by their
            address.
        target: the output, in the format of the source, or Parquet for a database; it may be in
            object storage. "-" is standard output, without a record or any other file. The address
            of a database writes ``table``, with the record in the current folder. An output without
            a guarantee becomes NAME.no-guarantee.EXT.
        project: the folder whose parameters and ledger are used, or a model of this project; None
            for the default of ``Model.load``.
        model: the name of a packaged model, or own; None for the default of ``Model.load``.
        hooks: the checks that `lexveil release` adds.

    Raises:
        RequestError: if the request cannot be served; nothing is written then.
        LexveilError: if the output cannot be written, or the input changed meanwhile; nothing is
            written then.
    """
    copied: Settings | None = None
    if request.mechanism == "none":  # use the parameters of the project, without a model
        using = Model.of_run(
            project.project if isinstance(project, Model) else Project.find(project)
        )
        copied = settings_of(request, using.project)
    else:
        using = Model.load(project, model)
    hooks = hooks or ReleaseHooks()
    spool = using.path(using.configuration.machine.temp_directory)
    is_stamped = target != STDIN and is_without_guarantee(request, using)
    out, base, table = _destination(target, request, is_stamped)
    with ExitStack() as stack:
        jobs = stack.enter_context(find_jobs(source, out, request, spool))
        size = sum(job.reader.size for job in jobs)
        workers = workers_for(request, size, using)
        if isinstance(base, ObjectPath):
            make_spool(spool)
        outputs = stack.enter_context(
            writing(base, hooks.more, hooks.operator_folder, spool.absolute() / "objects")
        )
        work = Work(jobs, request, hooks, outputs, table)
        if copied is not None:
            return _copy(work, copied)
        if size >= SMALL_FILE and workers > 1:
            stack.enter_context(prepared_workers("lexveil.release.engine.preload"))
        processes = stack.enter_context(Processes(workers))
        for job in jobs:
            # check the columns first, so that a wrong column neither reaches the ledger nor starts
            # a computation
            job.reader.check()
            if table is not None:
                table.check(job.reader.table.columns)
        outputs.try_names([job.out for job in jobs if job.out is not None])
        # Report missing or refused files before the input is read.
        checked = check(request, using)
        others = tuple(other_columns([job.reader for job in jobs]))
        source_rows = RowSource(work.chunks, work.columns, others)
        run = Run(checked.engine, checked.budget, source_rows, processes)
        return _rewrite(work, run, checked)


def _copy(work: Work, settings: Settings) -> PrivatizedFiles:
    """Write the rows unchanged, as the baseline to which rewritten rows are compared."""
    n_texts = 0
    outputs = work.outputs
    with ExitStack() as stack:
        writers = _Writers(work, stack, None)
        for chunk in work.chunks(for_writing=True):
            writers.write_rows(chunk, chunk.texts)
            n_texts += sum(text is not None for row in chunk.texts for text in row)
    stamp = {"without_guarantee": True} if settings.without_guarantee else {}
    record = record_of(settings, None, Counts(n_texts=n_texts), **stamp)
    if outputs.target is not None:
        record = record.model_copy(update={"output": _hashes(work)})
        _write_record(record, outputs)
        _deliver(work, record, outputs.publish)
    return PrivatizedFiles(record, None, outputs.target, work.table_name)


def _rewrite(work: Work, run: Run, checked: Checked) -> PrivatizedFiles:
    """Rewrite the input, and publish the outputs with their privacy record."""
    hooks = work.hooks
    outputs = work.outputs
    request = work.request
    table = {"table": work.table_name} if work.table_name else {}
    about = {**hooks.about, **run.about(), **table}
    if hooks.tells_columns:
        tell_columns([job.reader for job in work.jobs], request)
    ledger = ledger_of(run.engine.model.project, request.on_exhausted)
    has_subjects = request.subject_column is not None or hooks.subjects is not None
    finals = [job.out for job in work.jobs if job.out is not None]
    with open_charge(ledger, run.settings.mode, has_subjects, about, outputs, finals) as charge:
        run.count(charge, hooks)
        tell_unmatched(request, run.survey.found)
        with ExitStack() as stack:
            writers = _Writers(work, stack, run.settings)
            run.rewrite(charge, writers)
            n_formulas, first_row = writers.formulas()
        record = run.record(
            checked, charge, n_formula_cells=n_formulas, first_formula_row=first_row
        )
        operator = run.operator_report(checked, charge)
        if outputs.target is not None:
            record, operator = _write_companions(work, record, operator)
        _deliver(work, record, lambda: charge.publish(outputs))
        return PrivatizedFiles(record, operator, outputs.target, work.table_name)


def _write_companions(
    work: Work, record: PrivacyRecord, operator: OperatorReport
) -> tuple[PrivacyRecord, OperatorReport]:
    """Run the release's checks on the unpublished outputs, and write the privacy record and
    the operator's report.
    """
    outputs = work.outputs
    files = {name: outputs.companion(ending) for name, ending in OPERATOR_FILES.items()}
    hashes = {name: outputs.sha256(file) for name, file in files.items() if file in outputs.begun}
    record = record.model_copy(update={"output": _hashes(work)})
    operator = operator.model_copy(update={"output": OperatorHashes(**hashes)})
    record, operator = work.hooks.written(outputs, record, operator)
    _write_record(record, outputs)
    _write(operator, outputs, "operator.json")
    return record, operator


def _deliver(work: Work, record: PrivacyRecord, publish: Callable[[], None]) -> None:
    """Publish the outputs. If the output is a database table, first insert its rows and a copy of
    the privacy record in one transaction.

    A table therefore never exists without its record, even if this process is killed. If a table
    cannot be written, nothing is left except the spent epsilon.
    """
    if work.table is None:
        publish()
        return
    work.outputs.settle()
    (job,) = work.jobs
    assert job.stream is not None
    spool = job.reader.spool
    of_source = spool.kinds if spool and work.table.address.engine == spool.engine else {}
    release = "" if record.release is None else record.release.id
    work.table.write(job.stream, of_source, release, json.dumps(record.to_dict(), sort_keys=True))
    try:
        publish()
    except LexveilError as error:
        raise LexveilError(
            f"{error.message}; the table {work.table.name} was written, with its record in "
            "the database"
        ) from None


def _destination(
    target: Path | str, request: FileRequest, is_stamped: bool
) -> tuple[Path | str | None, Path | None, DatabaseTable | None]:
    """Return where to write the output: its path, the common prefix of its companion files' paths,
    and the database table if it is one.

    Args:
        is_stamped: whether the name of the output says that there is no guarantee.
    """
    if not is_address(target):
        if request.table is not None or request.if_exists != "fail":
            raise RequestError(
                f"{option('table')} and {option('if_exists')} are only for a database; give "
                "its address as OUT"
            )
        out = (
            target
            if target == STDIN
            else stamped(as_path(target))
            if is_stamped
            else as_path(target)
        )
        return out, out if isinstance(out, Path) else None, None
    from lexveil.io.databases.table import DatabaseTable

    if request.table is None:
        raise RequestError(
            f"the output is a database; add {option('table')} NAME, which is the table to "
            "create in it"
        )
    table = DatabaseTable.named(read_address(str(target)), request.table, request.if_exists)
    table = table.stamped(STAMP) if is_stamped else table
    table.check()
    base = Path.cwd() / table.name
    check_companions(base, is_table=True)
    return None, base, table


def _write_record(record: PrivacyRecord, outputs: Outputs) -> None:
    """Write the privacy record, and next to it a statement in words for the recipients of the
    output.
    """
    assert outputs.target is not None
    _write(record, outputs, "record.json")
    words = statement_for_recipients(record, outputs.target.name)
    outputs.begin(outputs.companion(STATEMENT)).write_text(words, encoding="utf-8")


def _write(result: Result, outputs: Outputs, ending: str) -> None:
    # Use the hidden name itself, which the ledger knows and removes if this process dies.
    text = json.dumps(result.to_dict(), indent=2, sort_keys=True, ensure_ascii=False)
    outputs.begin(outputs.companion(ending)).write_text(f"{text}\n", encoding="utf-8")


def _hashes(work: Work) -> OutputHashes | None:
    """Return the SHA-256 of the published files, and never of the source, because anybody could
    test a guess of the text by the hash of the source.
    """
    if work.table is not None:
        return None  # a table has no file to hash
    files = {job.name: work.outputs.sha256(job.out) for job in work.jobs if job.out is not None}
    return OutputHashes(files=files) if work.has_names else OutputHashes(sha256=files[""])


class _Writers:
    """Writer of rewritten rows to the output files, one file at a time.

    The writer also writes the token log (a row per token, with the text column and the file if
    there are several), and a list of the rows that were withheld, if any.

    Args:
        settings: the settings of the rewriting; None if no token log is written.
    """

    def __init__(self, work: Work, stack: ExitStack, settings: Settings | None) -> None:
        self.stack = stack
        self.outputs = work.outputs
        self.work = work
        self.jobs = {job.name: job for job in work.jobs}
        self.opened: dict[str, Writer] = {}
        self.open_file = stack.enter_context(ExitStack())
        self.token_log: pq.ParquetWriter | None = None
        self.withheld: Any = None
        if settings is None or self.outputs.target is None:
            return
        self.schema = token_log_schema(len(work.columns), settings)
        if work.has_names:
            self.schema = self.schema.insert(
                0, pa.field("file", pa.dictionary(pa.int32(), pa.string()))
            )
        # Rows and positions usually grow by one, so delta encoding takes less time and room than a
        # dictionary.
        growing = dict.fromkeys(("row", "position"), "DELTA_BINARY_PACKED")
        encodings = {
            "use_dictionary": [name for name in self.schema.names if name not in growing],
            "column_encoding": growing,
        }
        partial = self.outputs.begin(self.outputs.companion("tokens.parquet"))
        self.token_log = stack.enter_context(
            pq.ParquetWriter(partial, self.schema, **PARQUET, **encodings)
        )

    def write(self, chunk: Chunk, rewritten: RewrittenChunk) -> None:
        """Write the rows of a chunk that are not withheld, the log of their tokens, and the list of
        withheld rows.
        """
        self.write_rows(chunk, rewritten.texts)
        tokens = rewritten.tokens
        if self.token_log is not None and tokens.num_rows:
            if self.work.has_names:
                zeros = pa.array(np.zeros(tokens.num_rows, dtype=np.int32))
                tokens = tokens.append_column(
                    "file", pa.DictionaryArray.from_arrays(zeros, pa.array([chunk.file]))
                )
            self.token_log.write_table(tokens.select(self.schema.names))
        if self.outputs.target is not None:
            self._write_withheld(chunk)

    def write_rows(self, chunk: Chunk, texts: Texts) -> None:
        """Write the selected rows of a chunk with their rewritten texts. The column of detected
        spans is left empty, because spans are character offsets in the source.
        """
        if chunk.spans is not None:
            texts = [[*row, None] for row in texts]
        self._writer(chunk.file).write(chunk, texts, chunk.is_selected)

    def _writer(self, file: str) -> Writer:
        if file not in self.opened:
            self.open_file.close()
            job = self.jobs[file]
            out = (
                job.stream or sys.stdout.buffer if job.out is None else self.outputs.begin(job.out)
            )
            self.opened[file] = self.open_file.enter_context(
                open_writer(job.reader, out, self.work.request.formulas)
            )
        return self.opened[file]

    def _write_withheld(self, chunk: Chunk) -> None:
        file = [chunk.file] if self.work.has_names else []
        for row in np.flatnonzero(~chunk.is_selected).tolist():
            if self.withheld is None:
                partial = self.outputs.begin(self.outputs.companion("withheld.csv"))
                opened = self.stack.enter_context(partial.open("w", encoding="utf-8", newline=""))
                self.withheld = csv.writer(opened, lineterminator="\n")
                self.withheld.writerow([*(["file"] if file else []), "row", "subject"])
            self.withheld.writerow(
                [*file, chunk.first + row, chunk.subjects[row] if chunk.subjects else ""]
            )

    def formulas(self) -> tuple[int, int | None]:
        """Return the number of written fields that a spreadsheet would evaluate as formulas, and
        the row of the first of these fields.
        """
        first = (
            writer.first_formula
            for writer in self.opened.values()
            if writer.first_formula is not None
        )
        return sum(writer.n_formulas for writer in self.opened.values()), next(first, None)
