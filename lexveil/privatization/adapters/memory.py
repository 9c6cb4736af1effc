"""Rewrite texts that are in memory: a list, a column of pandas, Arrow or Polars, or a column of a table.

from lexveil.privatization.adapters.memory import privatize

done = privatize(frame["body"], mechanism="tem", strategy="S3", document_budget=200.0, subjects=frame["customer"])
frame["body"] = done.values
print(done.record.guarantee.formula)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from lexveil.accounting.measurements import Measurement
from lexveil.accounting.operator_report import OperatorReport
from lexveil.accounting.record import PrivacyRecord
from lexveil.artifacts.model import Model
from lexveil.detectors.given import given_spans
from lexveil.errors import RequestError
from lexveil.formats.chunks import TEXT_LIMIT, Chunk, ParsedRow, gather
from lexveil.formats.values import plain_value, text_value
from lexveil.keywords import speaks_in_keywords
from lexveil.privatization.adapters.frames import column_like, column_list, frame_of
from lexveil.privatization.engine.worker import token_log_schema
from lexveil.privatization.recovery_terms import settled
from lexveil.privatization.release.charge import ChargeOptions, open_charge, terms_of
from lexveil.privatization.release.outputs import Outputs
from lexveil.privatization.release.run import TwoPassRun
from lexveil.privatization.settings import RewriteOptions, Settings

SPANS = "spans"  # what messages call those that are given
SHOWN = 5  # rewritten texts in a notebook
SMALL = 2**20  # characters below which worker processes cost more than they save


@dataclass(frozen=True, slots=True)
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

    def _repr_html_(self) -> str:
        """As notebooks show it: the record and the first rewritten texts, which may be published, and no more."""
        from lexveil.accounting.notebook import framed, table_html

        values = self.values.tolist() if hasattr(self.values, "tolist") else self.values
        texts = list(enumerate(values[:SHOWN], 1)) if isinstance(values, list | tuple) else []
        shown = table_html(("text", f"rewritten, the first {len(texts)}"), texts) if texts else ""
        kept = ["values, record: to be published together", "token_log, operator: as secret as the source"]
        return self.record._repr_html_() + shown + framed("What there is", [], kept)


@speaks_in_keywords(text_column="column", subject_column="subjects")
def privatize(
    values: Any,
    *,
    column: str | None = None,
    subjects: Any = None,
    spans: Any = None,
    on_exhausted: Literal["withhold", "refuse"] | None = None,
    workers: int | None = None,
    project: Path | Model | None = None,
    model: str | None = None,
    **how: Any,
) -> Privatized:
    """Rewrite a column of texts with a packaged model, or with the artifacts that `lexveil run` made in a project.

    Args:
        values: list or tuple of strings, pyarrow Array or ChunkedArray, pandas or polars Series; or a table: a
            DataFrame of pandas or polars, a pyarrow Table, a DuckDB relation, a datasets.Dataset.
        column: of a table: its text column.
        subjects: whom each text is about, of the same length: whose budget the ledger keeps; None: each text has its
            own. Of a table also the name of a column.
        spans: what a detector found in each text, of the same length: a list of objects with start, end and type, as
            JSON or not. Of a table also the name of a column, which comes out empty: it counts characters of the texts.
        on_exhausted: what becomes of texts whose subject's budget is exhausted; None as in params.yaml.
        workers: processes; they change no result.
        project: the folder whose parameters and ledger are used, or a model of it; None as of ``Model.load``.
        model: the name of a packaged model, or own; None as of ``Model.load``.
        how: as ``RewriteOptions``, as for `lexveil privatize`.

    Raises:
        RequestError: if the request cannot be served, or a value is no text; nothing is spent then.
    """
    options = RewriteOptions(**how, spans_column=None if spans is None else SPANS)
    options.check()
    using = Model.load(project, model)
    settings = settled(options, using)
    run = partial(privatize_texts, settings=settings, model=using, workers=workers, on_exhausted=on_exhausted)
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
    texts = column_list(values, "values") if frame is None else frame.read(str(column))
    done = run(
        texts,
        subjects=None if subjects is None else column_list(subjects, "subjects"),
        spans=None if spans is None else column_list(spans, SPANS),
    )
    if frame is None:
        return replace(done, values=column_like(values, done.values))
    made = frame.replaced(str(column), done.values)
    if emptied is not None and (again := frame_of(made)) is not None:
        made = again.replaced(emptied, [None] * len(texts))
    return replace(done, values=made)


def privatize_texts(
    texts: Sequence[Any],
    *,
    settings: Settings,
    model: Model,
    workers: int | None = None,
    subjects: Sequence[Any] | None = None,
    spans: Sequence[Any] | None = None,
    on_exhausted: Literal["withhold", "refuse"] | None = None,
    charge_options: ChargeOptions | None = None,
) -> Privatized:
    """Rewrite a list of texts; see ``privatize``, and ``open_charge`` for the options of the charge."""
    if settings.mechanism == "none":
        raise RequestError("mechanism none leaves texts as they are; there is nothing to do")
    chunks = list(whole_chunks(texts, subjects, spans))
    if workers is None:
        size = sum(len(text) for chunk in chunks for (text,) in chunk.texts if text is not None)
        workers = 1 if size < SMALL else model.params.machine.workers
    run = TwoPassRun(settings, model, lambda _: iter(chunks), ("text",), workers)
    terms = terms_of(model, on_exhausted)
    rewritten: list[str | None] = []
    schema = token_log_schema(1, settings)
    token_logs = [schema.empty_table()]
    outputs = Outputs(None)
    with (
        open_charge(terms, settings.mode, subjects is not None, run.about(), outputs, (), charge_options) as payment,
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


def whole_chunks(
    texts: Sequence[Any], subjects: Sequence[Any] | None, spans: Sequence[Any] | None = None
) -> Iterator[Chunk]:
    """A list of texts as the chunks that the engine takes.

    Raises:
        RequestError: if a value is no text or too long, or there is not one subject or list of spans for each.
    """
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
