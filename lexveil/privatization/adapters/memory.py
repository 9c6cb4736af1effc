"""Rewrite texts that are in memory: a list, a column of pandas, Arrow or Polars, or a column of a table.

done = lexveil.privatize(
    frame["body"], mechanism="tem", strategy="S3", document_budget=200.0, subjects=frame["customer"]
)
frame["body"] = done.values
print(done.record.guarantee.formula)
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lexveil.accounting.measurements import Measurement
from lexveil.accounting.operator_report import OperatorReport
from lexveil.accounting.record import PrivacyRecord
from lexveil.artifacts.model import Model
from lexveil.detectors.given import given_spans
from lexveil.errors import RequestError
from lexveil.formats.chunks import TEXT_LIMIT, Chunk, ParsedRow, gather
from lexveil.formats.values import plain_value, text_value
from lexveil.privatization.adapters.frames import column_like, column_list, frame_of, without_source
from lexveil.privatization.engine.worker import token_log_schema
from lexveil.privatization.release.charge import ChargeOptions, ledger_of, open_charge
from lexveil.privatization.release.outputs import Outputs
from lexveil.privatization.release.run import TwoPassRun
from lexveil.privatization.settings import Settings, resolve_settings
from lexveil.request import OnExhausted, Request
from lexveil.runtime.tables import write_json

SPANS = "spans"  # what messages call those that are given
SHOWN = 5  # rewritten texts in a notebook
SMALL = 2**20  # characters below which worker processes cost more than they save


@dataclass(frozen=True, slots=True, repr=False)
class Privatized:
    """What came of a column.

    Attributes:
        values: of the kind that was given, in the same order; None where there was none, or where the ledger has
            nothing left for its subject.
        token_log: what happened to every token: row (from 1), position, class, epsilon, action; no source word. It is
            the operator's, as ``operator`` is: the classes of tokens are not protected.
        record: the privacy record, which can be published with the values.
        operator: what compares source and output or counts the source; as secret as the source.
        measurement: what ran, with what is proven of it: ``measurement.bound(distances)`` says how far two neighbours
            with tokens at these distances can be told apart at most; the record's guarantee is generated from it.
    """

    values: Any
    token_log: pa.Table
    record: PrivacyRecord
    operator: OperatorReport
    measurement: Measurement

    def __repr__(self) -> str:
        """What it is, and nothing that is secret."""
        done = self.record
        kind, guarantee = type(self.values).__name__, "a guarantee" if done.guarantee.holds else "no guarantee"
        return f"<Privatized {kind}: {done.mechanism} {done.strategy}, {done.mode}, {guarantee}>"

    def _repr_html_(self) -> str:
        """As notebooks show it: the record and the first rewritten texts, which may be published, and no more."""
        from lexveil.accounting.notebook import framed, table_html

        values = self.values.tolist() if hasattr(self.values, "tolist") else self.values
        texts = list(enumerate(values[:SHOWN], 1)) if isinstance(values, list | tuple) else []
        shown = table_html(("text", f"rewritten, the first {len(texts)}"), texts) if texts else ""
        kept = ["values, record: to be published together", "token_log, operator: as secret as the source"]
        return self.record._repr_html_() + shown + framed("What there is", [], kept)


def privatize(
    values: Any,
    request: Request,
    *,
    column: str | None = None,
    subjects: Any = None,
    spans: Any = None,
    project: Path | Model | None = None,
    model: str | None = None,
) -> Privatized:
    """Rewrite a column of texts with a packaged model, or with the artifacts that `lexveil run` made in a project.

    Args:
        values: list or tuple of strings, pyarrow Array or ChunkedArray, pandas or polars Series; or a table: a
            DataFrame of pandas or polars, a pyarrow Table, a DuckDB relation, a datasets.Dataset.
        request: how; ``spans_column`` is ``spans`` here.
        column: of a table: its text column.
        subjects: whom each text is about, of the same length: whose budget the ledger keeps; None: each text has its
            own. Of a table also the name of a column.
        spans: what a detector found in each text, of the same length: a list of objects with start, end and type, as
            JSON or not. Of a table also the name of a column, which comes out empty: it counts characters of the texts.
        project: the folder whose parameters and ledger are used, or a model of it; None as of ``Model.load``.
        model: the name of a packaged model, or own; None as of ``Model.load``.

    Raises:
        RequestError: if the request cannot be served, or a value is no text; nothing is spent then.
    """
    using = Model.load(project, model)
    settings = resolve_settings(request.model_copy(update={"spans_column": None if spans is None else SPANS}), using)
    frame = frame_of(values)
    if frame is not None:
        column = frame.named(column, "column")
        if isinstance(subjects, str):
            subjects = frame.read(frame.named(subjects, "subjects"))
    else:
        for name, value in {"column": column, "subjects": subjects, SPANS: spans}.items():
            if isinstance(value, str):
                raise RequestError(f"{name}: the name of a column is for tables; give the column itself")
    emptied = spans if isinstance(spans, str) else None
    if frame is not None and emptied is not None:
        spans = frame.read(frame.named(emptied, SPANS))
    texts = Texts(
        column_list(values, "values") if frame is None else frame.read(str(column)),
        None if subjects is None else column_list(subjects, "subjects"),
        None if spans is None else column_list(spans, SPANS),
    )
    done = privatize_texts(texts, settings, using, workers=request.workers, on_exhausted=request.on_exhausted)
    if frame is None:
        return replace(done, values=column_like(values, done.values))
    table = frame.replaced(str(column), done.values)
    if emptied is not None and (again := frame_of(table)) is not None:
        table = again.replaced(emptied, [None] * len(texts.texts))
    return replace(done, values=table)


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts in memory, with whom each is about and what was found in each, if that is said."""

    texts: Sequence[Any]
    subjects: Sequence[Any] | None = None
    spans: Sequence[Any] | None = None


def privatize_texts(
    texts: Texts,
    settings: Settings,
    model: Model,
    *,
    workers: int | None = None,
    on_exhausted: OnExhausted | None = None,
    charge_options: ChargeOptions | None = None,
) -> Privatized:
    """Rewrite a list of texts; see ``privatize``, and ``open_charge`` for the options of the charge."""
    if settings.mechanism == "none":
        raise RequestError("mechanism none leaves texts as they are; there is nothing to do")
    chunks, has_subjects = list(whole_chunks(texts)), texts.subjects is not None
    if workers is None:
        size = sum(len(text) for chunk in chunks for (text,) in chunk.texts if text is not None)
        workers = 1 if size < SMALL else model.params.machine.workers
    run = TwoPassRun(settings, model, lambda _: iter(chunks), ("text",), workers)
    ledger = ledger_of(model.project, on_exhausted)
    rewritten: list[str | None] = []
    schema = token_log_schema(1, settings)
    token_logs = [schema.empty_table()]
    outputs = Outputs(None)
    with (
        open_charge(ledger, settings.mode, has_subjects, run.about(), outputs, (), charge_options) as payment,
        run.working(),
    ):
        run.count(payment)
        for chunk, done in run.rewrite(payment):
            rewritten += [
                row[0] if keep else None for row, keep in zip(done.texts, chunk.is_selected.tolist(), strict=True)
            ]
            token_logs.append(done.tokens.select(schema.names))
        record, operator = run.record(payment), run.operator_report(payment)
        measurement = run.measurement(payment)
        payment.publish(outputs)
    # In one piece, so that its bytes do not depend on the chunks.
    return Privatized(rewritten, pa.concat_tables(token_logs).combine_chunks(), record, operator, measurement)


def whole_chunks(source: Texts) -> Iterator[Chunk]:
    """A list of texts as the chunks that the engine takes.

    Raises:
        RequestError: if a value is no text or too long, or there is not one subject or list of spans for each.
    """
    texts, subjects, spans = source.texts, source.subjects, source.spans
    for name, values in {"subjects": subjects, SPANS: spans}.items():
        if values is not None and len(values) != len(texts):
            raise RequestError(f"{name}: {len(values):,} for {len(texts):,} texts; give one for each")

    def rows() -> Iterator[ParsedRow]:
        for number, value in enumerate(texts, 1):
            text = text_value(value, "values", f"text {number}")
            if text is not None:
                text = str.__str__(text)  # a class of the user's is not known in other processes
            if text is not None and len(text) > TEXT_LIMIT:
                raise RequestError(f"text {number}: more than {TEXT_LIMIT // 2**20} Mi characters; divide it")
            subject = None if subjects is None else _subject(subjects[number - 1], number)
            found = None if spans is None else given_spans(spans[number - 1], [text], ["text"], f"text {number}, spans")
            yield ParsedRow(number, [text], subject, None, found)

    yield from gather(rows(), subjects is not None)


def _subject(value: Any, number: int) -> str:
    subject = plain_value(value, "subjects", f"text {number}")
    if subject is None:
        raise RequestError(f"text {number}: its subject is empty; say whom it is about, or give no subjects at all")
    return subject


class PrivatizeBatches:
    """Rewrite a column of batch after batch; each batch is a release of its own, paid before it is given back.

    Noise is always the operating system's: to repeat an experiment, rewrite the whole data set in one call by
    ``lexveil.privatize`` with a seed.

    A stream that is read twice is rewritten and paid twice, with other words. Copies of this object in other processes
    (``num_proc``) share the ledger, and need ``records``, because what they remember is lost with them.

    Attributes:
        records: the privacy record of each batch that this object has rewritten, in order.
    """

    def __init__(
        self,
        column: str,
        *,
        subjects: str | None = None,
        records: Path | str | None = None,
        project: Path | str | None = None,
        model: str | None = None,
        **how: Any,
    ) -> None:
        """Say how; nothing is read yet.

        Args:
            column: the text column.
            subjects: the column that says whom each text is about; None: each text is a subject of its own.
            records: a folder, made if it is not there, in which the record of each batch is written before its texts
                are given back.
            project, model, how: as of ``lexveil.privatize``.

        Raises:
            RequestError: if the request contradicts itself, or asks for an experiment.
        """
        if how.get("seed") is not None or how.get("mode") == "experiment":
            raise RequestError(
                "PrivatizeBatches: a seed would draw the same noise for every batch; rewrite the whole data set in one "
                "call by lexveil.privatize(..., seed=...)"
            )
        self.records: list[PrivacyRecord] = []
        self._column, self._subjects, self._request = column, subjects, Request.of(how)
        self._folder = None if records is None else Path(records).absolute()
        self._project = None if project is None else Path(project).absolute()
        self._model_name = model
        self._model: Model | None = None
        self._process = os.getpid()
        self._once = uuid.uuid4().hex  # a cache of results by the function's hash never takes one call for another

    @staticmethod
    def without_source(data: Any) -> Any:
        """What ``map`` gave back, without what Hugging Face carries on from the source, which is not to be published.

        That is sizes in bytes, checksums, the description, and a fingerprint that follows from the texts.
        """
        return without_source(data)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, object]:
        """The rewritten column of a batch, a table by columns; None where a text is withheld.

        Raises:
            RequestError: as ``lexveil.privatize``; if the batch has no such column; or, in a copy of another process,
                without a folder for the records.
        """
        if self._folder is None and os.getpid() != self._process:
            raise RequestError(
                "PrivatizeBatches: in processes of their own (num_proc) the records would be lost; give records=FOLDER"
            )
        missing = [name for name in (self._column, self._subjects) if name is not None and name not in batch]
        if missing:
            raise RequestError(f"column {missing[0]!r}: the batch has none; map with batched=True, and name a column")
        if self._model is None:
            self._model = Model.load(self._project, self._model_name)
        subjects = None if self._subjects is None else list(batch[self._subjects])
        done = privatize(list(batch[self._column]), self._request, subjects=subjects, project=self._model)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            entry = done.record.release
            write_json(done.record.to_dict(), self._folder / f"{entry.id if entry else uuid.uuid4().hex}.record.json")
        self.records.append(done.record)
        return {self._column: done.values}

    def __getstate__(self) -> dict[str, object]:
        """Without the model, which each process loads, and the records, which are of this one."""
        return self.__dict__ | {"_model": None, "records": []}
