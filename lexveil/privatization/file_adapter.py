"""Rewrite files, folders or standard input in bounded memory; what `lexveil privatize` calls.

The input is read in two passes: one counts what the budget is divided by and what each subject spends, one rewrites.
Between them a release is charged to the ledger. All outputs then appear together, or none does.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.accounting.record import Counts, PrivacyRecord, RunFacts, record
from lexveil.config import ReleaseParams
from lexveil.formats.writers import Formulas, Writer, open_writer
from lexveil.privatization.budget_charge import paying, terms_of
from lexveil.privatization.model import Model
from lexveil.privatization.outputs import Job, Outputs, find_jobs, writing
from lexveil.privatization.selected_chunk import SelectedChunk, token_log_schema
from lexveil.privatization.settings import RewriteOptions, Settings, make_settings
from lexveil.privatization.two_passes import TwoPassRun
from lexveil.runtime.hashes import version
from lexveil.runtime.tables import PARQUET

SMALL = 2**21  # bytes of input below which worker processes cost more than they save; more never hurt

# Called with the hidden outputs and the record before anything appears; gives the record that is written. What it
# raises withdraws all.
Gate = Callable[[Outputs, PrivacyRecord], PrivacyRecord]


@dataclass(frozen=True, slots=True)
class Request:
    """What to rewrite and how; see ``privatize_file``."""

    jobs: Sequence[Job]
    columns: tuple[str, ...]
    subject_column: str | None
    workers: int
    formulas: Formulas

    @property
    def has_names(self) -> bool:
        """Whether there is a folder of files, so that a row needs the name of its file."""
        return bool(self.jobs[0].name)

    @property
    def finals(self) -> list[Path]:
        """The output files."""
        return [job.out for job in self.jobs if job.out is not None]

    def chunks(self, for_writing: bool) -> Iterator[SelectedChunk]:
        """All chunks of all files, every row to be released."""
        for job in self.jobs:
            for chunk in job.reader.chunks(for_writing):
                yield SelectedChunk.whole(chunk, job.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions(RewriteOptions):
    """What a caller asks for when texts are columns of files.

    Attributes:
        text_column: the columns to rewrite. A row is a document: its texts share one budget.
        subject_column: whom a row is about: whose budget the ledger keeps. None: each text has its own.
        form: of standard input, as the ending of a name; None is jsonl.
        formulas: what happens to a rewritten CSV or TSV field that a spreadsheet would compute.
        on_exhausted: what happens to rows whose subject's budget is exhausted; None as in params.yaml.
        workers: processes; None for one if there is little to do, else as in params.yaml. Changes no result.
    """

    text_column: str | Sequence[str] = "text"
    subject_column: str | None = None
    form: str | None = None
    formulas: Formulas = "keep"
    on_exhausted: Literal["withhold", "refuse"] | None = None
    workers: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The text columns."""
        return (self.text_column,) if isinstance(self.text_column, str) else tuple(self.text_column)

    def workers_for(self, n_bytes: int, model: Model) -> int:
        """How many processes work on an input of ``n_bytes``."""
        return self.workers or (1 if n_bytes < SMALL else model.params.machine.workers)


def privatize_file(
    source: Path | str,
    target: Path | str,
    *,
    project: Path | Model | None = None,
    gate: Gate | None = None,
    more: Sequence[Path] = (),
    about: Mapping[str, str] | None = None,
    **options: Any,
) -> PrivacyRecord:
    """Rewrite columns of a file or of all files in a folder; write a record and a token log beside the output.

    Args:
        source: JSON lines, CSV, TSV, text (each also packed by gz or zst) or Parquet; a folder of such; "-" is
            standard input.
        target: the output, of the same form; "-" is standard output, which gets no token log and no record beside it.
        project: the folder whose artifacts and ledger are used, or a model of it; None is the current folder.
        gate: looks at the outputs before they appear, and may add to the record.
        more: further files that the gate may write, by ``Outputs.begin``; they appear with the output.
        about: further facts for the ledger's chain; no text and no key.
        options: as ``FileOptions``.

    Returns:
        The privacy record.

    Raises:
        RequestError: if the request cannot be served; nothing is written then.
        LexveilError: if the output cannot be written, or the input changed meanwhile; nothing is written then.
    """
    chosen, model = FileOptions(**options), Model.load(project)
    settings = make_settings(chosen, model.params)
    spool = model.path(model.params.machine.temp_directory)
    with find_jobs(source, target, chosen.columns, chosen.subject_column, chosen.form, spool) as jobs:
        workers = chosen.workers_for(sum(job.reader.size for job in jobs), model)
        request = Request(jobs, chosen.columns, chosen.subject_column, workers, chosen.formulas)
        with writing(None if target == "-" else Path(target), more) as outputs:
            if settings.mechanism == "none":
                return _copy(request, settings, outputs)
            terms = terms_of(model, chosen.on_exhausted)
            # Missing artifacts are reported before the input is read.
            run = TwoPassRun(settings, model, request.chunks, request.columns, request.workers)
            return _rewrite(request, run, terms, outputs, gate, about or {})


def _copy(request: Request, settings: Settings, outputs: Outputs) -> PrivacyRecord:
    """Write the rows as they are: the baseline of a comparison."""
    n_texts = 0
    with ExitStack() as stack:
        sinks = _Sinks(request, outputs, stack)
        for selected in request.chunks(for_writing=True):
            sinks.writer(selected.file).write(selected.chunk, selected.chunk.texts, selected.keep)
            n_texts += sum(text is not None for row in selected.chunk.texts for text in row)
    privacy_record = record(
        RunFacts(
            claim=settings.claim(),
            base_epsilon=None,
            budgets={},
            counts=Counts(n_texts=n_texts),
            made_with={},
            version=version(),
            parameters={},
        )
    )
    if outputs.target is None:
        return privacy_record
    privacy_record = privacy_record.with_output(**_hashes(request, outputs))
    _write_record(privacy_record, outputs)
    outputs.publish()
    return privacy_record


def _rewrite(
    request: Request,
    run: TwoPassRun,
    terms: ReleaseParams,
    outputs: Outputs,
    gate: Gate | None,
    about: Mapping[str, str],
) -> PrivacyRecord:
    has_subjects = request.subject_column is not None
    with paying(terms, run.settings.mode, has_subjects, {**about, **run.about()}, outputs, request.finals) as payment:
        run.count(payment)
        if outputs.target is None:
            payment.commit()  # what was written to a stream cannot be withdrawn
        with ExitStack() as stack:
            sinks = _Sinks(request, outputs, stack)
            token_log = _TokenLogWriter(request, outputs, stack)
            withheld = _WithheldRows(outputs, stack)
            for selected, rewritten in run.rewrite(payment):
                sinks.writer(selected.file).write(selected.chunk, rewritten.texts, selected.keep)
                token_log.write(selected, rewritten.tokens)
                withheld.write(selected)
            n_formulas, first_row = sinks.formulas()
        privacy_record = run.record(payment, n_formula_cells=n_formulas, first_formula_row=first_row)
        if outputs.target is not None:
            # Of what was made, never of the source: with its hash anybody could test a guess of the text.
            privacy_record = privacy_record.with_output(**_hashes(request, outputs))
            if gate is not None:
                privacy_record = gate(outputs, privacy_record)
            _write_record(privacy_record, outputs)
            payment.publish(outputs)
        return privacy_record


def _write_record(privacy_record: PrivacyRecord, outputs: Outputs) -> None:
    # Under the hidden name itself, which the ledger knows and removes if this process dies.
    text = json.dumps(privacy_record.to_dict(), indent=2, sort_keys=True, ensure_ascii=False)
    outputs.begin(outputs.companion("record.json")).write_text(f"{text}\n", encoding="utf-8")


def _hashes(request: Request, outputs: Outputs) -> dict[str, Any]:
    """The sha256 of all that was written so far, by the fields of ``OutputHashes``."""
    hashes: dict[str, Any] = {}
    if request.has_names:
        hashes["files"] = {job.name: outputs.sha256(job.out) for job in request.jobs if job.out is not None}
    else:
        hashes["sha256"] = outputs.sha256(request.finals[0])
    for field, ending in (("tokens_sha256", "tokens.parquet"), ("withheld_sha256", "withheld.csv")):
        if outputs.companion(ending) in outputs.begun:
            hashes[field] = outputs.sha256(outputs.companion(ending))
    return hashes


class _Sinks:
    """The writer of each output file, one open at a time: files are written one after the other."""

    def __init__(self, request: Request, outputs: Outputs, stack: ExitStack) -> None:
        self.jobs, self.outputs, self.request = {job.name: job for job in request.jobs}, outputs, request
        self.opened: dict[str, Writer] = {}
        self.stack = stack.enter_context(ExitStack())

    def writer(self, file: str) -> Writer:
        if file not in self.opened:
            self.stack.close()
            job = self.jobs[file]
            out = sys.stdout.buffer if job.out is None else self.outputs.begin(job.out)
            self.opened[file] = self.stack.enter_context(open_writer(job.reader, out, self.request.formulas))
        return self.opened[file]

    def formulas(self) -> tuple[int, int | None]:
        """How many fields a spreadsheet would compute, and the row of the first."""
        first = (writer.first_formula for writer in self.opened.values() if writer.first_formula is not None)
        return sum(writer.n_formulas for writer in self.opened.values()), next(first, None)


class _TokenLogWriter:
    """What happened to every token; with the text column and the file where there are several."""

    def __init__(self, request: Request, outputs: Outputs, stack: ExitStack) -> None:
        self.request = request
        self.schema = token_log_schema(len(request.columns))
        if request.has_names:
            self.schema = self.schema.insert(0, pa.field("file", pa.dictionary(pa.int32(), pa.string())))
        self.writer: pq.ParquetWriter | None = None
        if outputs.target is not None:
            partial = outputs.begin(outputs.companion("tokens.parquet"))
            self.writer = stack.enter_context(pq.ParquetWriter(partial, self.schema, **PARQUET))

    def write(self, selected: SelectedChunk, tokens: pa.Table) -> None:
        if self.writer is None or not tokens.num_rows:
            return
        if self.request.has_names:
            zeros = pa.array(np.zeros(tokens.num_rows, dtype=np.int32))
            tokens = tokens.append_column("file", pa.DictionaryArray.from_arrays(zeros, pa.array([selected.file])))
        self.writer.write_table(tokens.select(self.schema.names))


class _WithheldRows:
    """The rows that were not released because their subjects' budget is exhausted: a file only if there are any."""

    def __init__(self, outputs: Outputs, stack: ExitStack) -> None:
        self.outputs, self.stack = outputs, stack
        self.writer: Any = None

    def write(self, selected: SelectedChunk) -> None:
        rows = np.flatnonzero(~selected.keep).tolist()
        if not rows or self.outputs.target is None:
            return
        if self.writer is None:
            partial = self.outputs.begin(self.outputs.companion("withheld.csv"))
            self.writer = csv.writer(
                self.stack.enter_context(partial.open("w", encoding="utf-8", newline="")), lineterminator="\n"
            )
            self.writer.writerow(["file", "row", "subject"])
        subjects = selected.chunk.subjects
        for row in rows:
            self.writer.writerow([selected.file, selected.chunk.first + row, subjects[row] if subjects else ""])
