"""Rewriting of texts in memory: a list, a column of pandas, Arrow or Polars, or a column of a
table.

done = lexveil.privatize(
    frame["body"], mechanism="tem", strategy="S3", document_budget=200.0, subjects=frame["customer"]
) frame["body"] = done.values print(done.record.guarantee.formula)
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from lexveil.base.errors import RequestError
from lexveil.core.accounting.measurements import Measurement
from lexveil.core.accounting.operator_report import OperatorReport
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.core.detectors.given import given_spans
from lexveil.io.artifacts.model import Model
from lexveil.io.execution.stage import Watch
from lexveil.io.formats.bare_tables import bare_column, bare_field, require_plain_types
from lexveil.io.formats.chunks import TEXT_LIMIT, Chunk, ParsedRow, gather, is_text, rewritten_type
from lexveil.io.formats.messages import name, names, require_distinct
from lexveil.io.formats.values import exact_values, plain_value, text_value
from lexveil.io.request import OnExhausted, Request
from lexveil.release.charge import ChargeOptions, ledger_of, open_charge
from lexveil.release.engine.batch import token_log_schema
from lexveil.release.engine.counts import RewrittenChunk
from lexveil.release.engine.worker import Processes
from lexveil.release.outputs import Outputs
from lexveil.release.preconditions import Checked, check
from lexveil.release.run import RowSource, Run

KINDS = (
    "a list of strings, a column or table of pandas, Polars or Arrow, a DuckDB relation, "
    "or a datasets.Dataset"
)
Label = str | int | tuple[Any, ...]  # name of a column; all types except str are for pandas alone
TEXTS = "texts"  # name of the given texts in messages
SPANS = "spans"  # name of the spans in the given texts
SMALL_FLOATS = ("float16", "float32")  # types that Python's float does not represent exactly
SMALL_TABLE = 2**20  # characters below which worker processes cost more than they save


@dataclass(frozen=True, slots=True, repr=False)
class Privatized:
    """The result of rewriting a column of texts in memory.

    Attributes:
        values: the rewritten values, with the type and in the order of the given values; None for a
            missing text, and for a text whose subject has too little budget left in the ledger.
        token_log: the log of all tokens: row (from 1), position, class of token, epsilon, and
            action (such as perturbed or kept); no source word. The token log and ``operator`` are
            for the operator only, because the classes of tokens are not protected.
        record: the privacy record, which can be published with the values.
        operator: the report that compares source and output; as secret as the source.
        measurement: the mechanism that was run, with its proven privacy bound.
            ``measurement.bound(distances)`` bounds how well two neighbouring texts can be told
            apart if their tokens have these distances. The record's guarantee is generated from the
            measurement.
    """

    values: Any
    token_log: pa.Table
    record: PrivacyRecord
    operator: OperatorReport
    measurement: Measurement

    def __repr__(self) -> str:
        """Return a short description of the result that shows nothing secret."""
        done = self.record
        kind = type(self.values).__name__
        guarantee = "a guarantee" if done.guarantee.holds else "no guarantee"
        return f"<Privatized {kind}: {done.mechanism} {done.strategy}, {done.mode}, {guarantee}>"


def privatize(
    values: Any,
    request: Request,
    model: Model,
    *,
    column: Label | None = None,
    subjects: Any = None,
    spans: Any = None,
    watch: Watch | None = None,
) -> Privatized:
    """Rewrite a column of texts with a packaged model, or with the artifacts that `lexveil run`
    made in a project.

    Args:
        values: list or tuple of strings, pyarrow Array or ChunkedArray, pandas or polars Series; or
            a table: a DataFrame of pandas or polars, a pyarrow Table, a DuckDB relation, a
            datasets.Dataset.
        request: the options of the rewriting; the argument ``spans`` replaces ``spans_column``.
        model: the model, with the project whose parameters and ledger are used.
        column: the text column, if the values are a table.
        subjects: the subject of each text, whose budget the ledger charges; for a table, also the
            name of a column. None makes each text its own subject.
        spans: the spans that a detector found in each text: for each text a list of objects with
            start, end and type, as JSON or not. For a table, also the name of a column of spans,
            which is empty in the output because spans count characters of the source texts.
        watch: observer of the progress, as in ``Run``.

    Raises:
        RequestError: if the request cannot be served, or a value is not a text; nothing is spent
            then.
    """
    checked = check(
        request.model_copy(update={"spans_column": None if spans is None else SPANS}), model
    )
    frame = frame_of(values)
    named: dict[str, Any] = {"column": column, "subjects": subjects, SPANS: spans}
    replaced: Callable[[list[str | None]], Any] | None = None
    if frame is None:
        texts = column_list(values, TEXTS)
        for role, value in named.items():
            if isinstance(value, str):
                raise RequestError(
                    f"{role} names a column, but {TEXTS} is a {type(values).__name__}, "
                    "which has no columns; give a table of pandas, Polars or Arrow, or "
                    f"{_instead(role)}"
                )
    else:
        for role, value in named.items():
            if role == "column" or frame.is_label(value):
                named[role] = frame.read(frame.named(value, role))
        texts = named["column"]
        # Refuse columns that cannot be written before anything is charged.
        replaced = frame.replacing(column)
    who, found = (
        None if value is None else column_list(aligned(value, values, role), role)
        for role, value in list(named.items())[1:]
    )
    others = None
    if frame is not None:
        rewritten = [column, *([spans] if frame.is_label(spans) else [])]
        others = [str(label) for label in frame.columns if label not in rewritten]
    called = TEXTS if column is None else str(column)
    source = Texts(texts, subjects=who, spans=found, name=called, others=others)
    done = privatize_texts(
        source, checked, workers=request.workers, on_exhausted=request.on_exhausted, watch=watch
    )
    if frame is None or replaced is None:
        return replace(done, values=column_like(values, done.values))
    table = replaced(done.values)
    if frame.is_label(spans) and (again := frame_of(table)) is not None:
        table = again.replacing(spans)([None] * len(texts))
    return replace(done, values=table)


def _instead(role: str) -> str:
    """Return advice for an error message, for an argument that names a column although the texts
    are given as a list and not as a table.
    """
    return (
        "remove the argument column"
        if role == "column"
        else f"a list with one of the {role} for each text"
    )


@dataclass(frozen=True, slots=True)
class Texts:
    """A list of texts in memory, with the subject (the person whose budget is charged) and the
    detected spans of each text, if the caller gives these.
    """

    texts: Sequence[Any]
    subjects: Sequence[Any] | None = None
    spans: Sequence[Any] | None = None
    name: str = TEXTS  # name of the texts in messages
    others: Sequence[str] | None = None  # the other columns of the table of the texts


def privatize_texts(
    texts: Texts,
    checked: Checked,
    *,
    workers: int | None = None,
    on_exhausted: OnExhausted | None = None,
    charge_options: ChargeOptions | None = None,
    watch: Watch | None = None,
) -> Privatized:
    """Rewrite a list of texts after the request was checked. ``privatize`` explains the arguments,
    and ``open_charge`` explains the options of the charge.
    """
    settings = checked.engine.settings
    model = checked.engine.model
    chunks = list(whole_chunks(texts))
    if workers is None:
        size = sum(len(text) for chunk in chunks for (text,) in chunk.texts if text is not None)
        workers = 1 if size < SMALL_TABLE else model.configuration.machine.workers
    others = None if texts.others is None else tuple(texts.others)
    source = RowSource(lambda **_: iter(chunks), ("text",), others)
    ledger = ledger_of(model.project, on_exhausted)
    sink = _Column([], [token_log_schema(1, settings).empty_table()])
    outputs = Outputs(None)
    has_subjects = texts.subjects is not None
    with Processes(workers) as processes:
        run = Run(checked.engine, checked.budget, source, processes, watch)
        with open_charge(
            ledger, settings.mode, has_subjects, run.about(), outputs, (), charge_options
        ) as charge:
            run.count(charge)
            run.rewrite(charge, sink)
            record = run.record(checked, charge)
            operator = run.operator_report(checked, charge)
            charge.publish(outputs)
    # Use one piece, so that the bytes do not depend on the chunks.
    token_log = pa.concat_tables(sink.token_logs).combine_chunks()
    return Privatized(sink.texts, token_log, record, operator, run.measurement(charge))


@dataclass(frozen=True, slots=True)
class _Column:
    """Collector of rewritten texts in memory. A row that is withheld gets None instead of a
    text.
    """

    texts: list[str | None]
    token_logs: list[pa.Table]

    def write(self, chunk: Chunk, rewritten: RewrittenChunk) -> None:
        """Append the rewritten texts of a chunk of rows."""
        rows = zip(rewritten.texts, chunk.is_selected, strict=True)
        self.texts.extend(row[0] if keep else None for row, keep in rows)
        self.token_logs.append(rewritten.tokens)


def whole_chunks(source: Texts) -> Iterator[Chunk]:
    """Yield a list of texts in chunks of rows, after checking them.

    Raises:
        RequestError: if a value is not a text or is too long, or if the number of subjects or of
            lists of spans differs from the number of texts.
    """
    texts = source.texts
    subjects = source.subjects
    spans = source.spans
    for role, values in {"subjects": subjects, SPANS: spans}.items():
        if values is not None and len(values) != len(texts):
            raise RequestError(
                f"{role}: there are {len(values):,} values for {len(texts):,} texts; give "
                "one for each text"
            )

    def rows() -> Iterator[ParsedRow]:
        for number, value in enumerate(texts, 1):
            where = f"text {number}"
            text = text_value(value, source.name, where)
            if text is not None:
                # other processes do not know a class that the user defined
                text = str.__str__(text)
                if len(text) > TEXT_LIMIT:
                    raise RequestError(
                        f"{where}: the text has more than {TEXT_LIMIT // 2**20} Mi "
                        "characters; divide it"
                    )
            subject = (
                None if subjects is None else plain_value(subjects[number - 1], "subjects", where)
            )
            if subjects is not None and subject is None:
                raise RequestError(
                    f"{where}: the subject is empty; name the subject of every text, or "
                    "give no subjects"
                )
            found = (
                None
                if spans is None
                else given_spans(spans[number - 1], [text], ["text"], f"{where}, spans")
            )
            yield ParsedRow(number, [text], subject, None, found)

    yield from gather(rows(), subjects is not None)


@dataclass(frozen=True, slots=True)
class Frame:
    """Protocol of a table whose columns can be read, and in which one column can be replaced.

    Attributes:
        columns: the names of the columns; for pandas the labels, which may be numbers and tuples.
        read: function that returns a column by its name, as a list with None for null.
        replacing: function that returns a table of the same kind with other texts in one column.
            Every other column keeps its type and values. It raises a ``RequestError`` if a column
            cannot be written.
    """

    columns: Sequence[Any]
    read: Callable[[Any], list[Any]]
    replacing: Callable[[Any], Callable[[list[str | None]], Any]]

    def __post_init__(self) -> None:
        require_distinct(self.columns, "the table")

    def is_label(self, value: Any) -> bool:
        """Return whether a value is the name of a column, and not a column itself."""
        return isinstance(value, str | Integral) or (
            isinstance(value, tuple) and value in self.columns
        )

    def named(self, column: Any, role: str) -> Any:
        """Check that a column exists, and return its name.

        Raises:
            RequestError: if no name is given, or if there is no such column.
        """
        listed = names(map(str, self.columns))
        if column is None:
            raise RequestError(f"{role}: texts is a table; name one of its columns: {listed}")
        if column not in self.columns:
            raise RequestError(f"{role}: {name(str(column))} is not one of the columns {listed}")
        return column


def frame_of(values: Any) -> Frame | None:
    """Wrap a table as a ``Frame``. Return None if the values are not a table.

    Raises:
        RequestError: if the values must first be converted to a table; the message says how.
    """
    kind = f"{type(values).__module__.partition('.')[0]}.{type(values).__name__}"
    if isinstance(values, pa.Table | pa.RecordBatch):
        return _of_arrow(values)
    if hasattr(values, "fetch_arrow_table") and hasattr(values, "columns"):  # a relation of DuckDB
        return _of_relation(values)
    if kind == "datasets.Dataset":
        return _of_dataset(values)
    if kind == "datasets.DatasetDict":
        raise RequestError(f"texts is a DatasetDict; give one of its splits: {names(list(values))}")
    if kind in ("datasets.IterableDataset", "datasets.IterableDatasetDict"):
        raise RequestError(
            "texts is a streaming data set, which is never complete; give its batches: `for "
            "batch in dataset.iter(1000)`"
        )
    if kind == "polars.LazyFrame":
        raise RequestError("texts is a LazyFrame, which has no rows yet; give frame.collect()")
    if kind == "polars.DataFrame":
        return _of_polars(values)
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        return _of_pandas(values)
    return None


def column_list(values: Any, name: str) -> list[Any]:
    """Return a column as a list, with None for null.

    Raises:
        RequestError: if the value is not a column.
    """
    if isinstance(values, list | tuple):
        return list(values)
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return list(values)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return exact_values(values)
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    if str(getattr(values, "dtype", "")).lower() in SMALL_FLOATS:  # of pandas or polars
        small = np.float32 if "32" in str(values.dtype) else np.float16
        numbers = np.asarray(values.to_numpy(), dtype=np.float64)
        return [None if np.isnan(value) else small(value) for value in numbers.tolist()]
    # a Series of pandas
    if hasattr(values, "isna") and hasattr(values, "index") and hasattr(values, "dtype"):
        absent = values.isna().tolist()
        return [
            None if gone else value for value, gone in zip(values.tolist(), absent, strict=True)
        ]
    if hasattr(values, "to_list"):  # polars
        return list(values.to_list())
    kind = type(values).__name__
    raise RequestError(f"{name} is {('an' if kind[0] in 'aeiou' else 'a')} {kind}; give {KINDS}")


def aligned(column: Any, values: Any, role: str) -> Any:
    """Return a column reordered to match the texts that it describes. If both are pandas objects
    with an index, match them by the index; otherwise keep the order.

    Raises:
        RequestError: if the labels do not determine the text of each value.
    """
    if not (_has_labels(column) and _has_labels(values)) or column.index.equals(values.index):
        return column
    if not (column.index.is_unique and values.index.is_unique):
        raise RequestError(
            f"{role}: labels of the index are repeated, and have another order than the "
            "labels of the texts; give both the same index, or give a list in the order of "
            "the texts"
        )
    places = column.index.get_indexer(values.index)
    if len(column) != len(values) or (places < 0).any():
        raise RequestError(
            f"{role}: the labels of the index differ from the labels of the texts; give "
            "both the same index, or give a list in the order of the texts"
        )
    return column.iloc[places]


def _has_labels(values: Any) -> bool:
    """Return whether a value is a Series or a DataFrame of pandas."""
    return hasattr(values, "iloc") and hasattr(values, "index")


def column_like(values: Any, rewritten: list[str | None]) -> Any:
    """Return rewritten texts as a column of the same type as the given column."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        array = _array(rewritten, values.type)
        return pa.chunked_array([array]) if isinstance(values, pa.ChunkedArray) else array
    if hasattr(values, "isna"):
        # The column has other categories now.
        dtype = "category" if values.dtype == "category" else values.dtype
        return type(values)(rewritten, index=values.index, name=values.name, dtype=dtype)
    if hasattr(values, "to_list"):  # polars
        return type(values)(values.name, rewritten, dtype=_polars_type(values, rewritten))
    if isinstance(values, np.ndarray):
        return np.array(rewritten, dtype=object)
    return tuple(rewritten) if isinstance(values, tuple) else rewritten


def _polars_type(values: Any, rewritten: list[str | None]) -> Any:
    """Return the Polars data type for a column of rewritten texts.

    It is the type of the source column if that type can hold arbitrary texts or if every text is
    withheld, and otherwise String.
    """
    import polars as pl

    can_stay = isinstance(values.dtype, pl.Categorical) or all(text is None for text in rewritten)
    return values.dtype if can_stay else pl.String


def _array(rewritten: list[str | None], kind: pa.DataType) -> pa.Array:
    if not is_text(kind) and all(text is None for text in rewritten):
        return pa.nulls(len(rewritten), kind)
    wanted = rewritten_type(kind) if is_text(kind) else pa.string()
    return pa.array(rewritten, pa.large_string()).cast(wanted)


def _of_arrow(table: Any, *, takes_extensions: bool = False) -> Frame:
    """Wrap an Arrow table as a ``Frame``.

    Args:
        takes_extensions: whether extension types are written as their storage types; otherwise they
            are refused.
    """

    def replacing(column: str) -> Callable[[list[str | None]], Any]:
        if not takes_extensions:
            require_plain_types(table.schema, [column], "the table")
        # Copy the columns first, so that a type that cannot be copied is refused before anything is
        # charged.
        copies = {
            field.name: _copied(table.column(number), field)
            for number, field in enumerate(table.schema)
            if field.name != column
        }

        def replaced(texts: list[str | None]) -> Any:
            fields = list[pa.Field]()
            columns = list[Any]()
            for field in table.schema:
                if field.name == column:
                    made = pa.chunked_array([_array(texts, field.type)])
                    fields.append(bare_field(field).with_type(made.type))
                else:
                    made = copies[field.name]
                    fields.append(bare_field(field))
                columns.append(made.combine_chunks() if isinstance(table, pa.RecordBatch) else made)
            return type(table).from_arrays(columns, schema=pa.schema(fields))

        return replaced

    return Frame(table.schema.names, lambda column: exact_values(table.column(column)), replacing)


def _copied(column: pa.ChunkedArray | pa.Array, field: pa.Field) -> pa.ChunkedArray:
    try:
        return bare_column(column, bare_field(field).type)
    except pa.ArrowNotImplementedError:
        kind = re.split(r"[<\[]", str(field.type))[0]
        raise RequestError(
            f"the table: {name(field.name)} has a type that Arrow cannot copy ({kind}); "
            "cast it to a plain type, or omit it"
        ) from None


# Types as which a column is read if equal values could have several forms in Python. Each value
# then has one form.
READ_AS_TEXT = (
    "BIGNUM",
    "BIT",
    "ENUM",
    "HUGEINT",
    "JSON",
    "TIME WITH TIME ZONE",
    "UHUGEINT",
    "UUID",
)


def _of_relation(relation: Any) -> Frame:
    # Read the rows once, with numbers, because a query need not return the same rows again, nor in
    # the same order.
    row = f"row_{secrets.token_hex(8)}"
    numbered = f"select row_number() over () as {row}, * from rows"
    held = relation.query("rows", numbered).materialize()
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))

    def read(column: str) -> list[Any]:
        value = _quoted(column)
        if types[column].startswith(READ_AS_TEXT):
            value = f"cast({value} as varchar)"
        ordered = f"select {value} as value from rows order by {row}"
        return exact_values(held.query("rows", ordered).fetch_arrow_table().column("value"))

    def replacing(column: str) -> Callable[[list[str | None]], Any]:
        def replaced(texts: list[str | None]) -> Any:
            # DuckDB finds this table by the name of this variable.
            rewritten = pa.table(
                {row: range(1, len(texts) + 1), "value": pa.array(texts, pa.large_string())}
            )
            value = f"rewritten.value as {_quoted(column)}"
            if not any(text is not None for text in texts):
                value = f"cast(rewritten.value as {types[column]}) as {_quoted(column)}"
            query = (
                f"select rows.* exclude ({row}) replace ({value}) from rows "
                f"join rewritten using ({row}) order by rows.{row}"
            )
            made = held.query("rows", query).materialize()
            del rewritten
            return made

        _require_replacements(held)
        return replaced

    return Frame(relation.columns, read, replacing)


def _require_replacements(relation: Any) -> None:
    """Check that the DuckDB connection of a relation can find Python objects by their variable
    names in SQL.

    Raises:
        RequestError: if the connection does not allow it.
    """
    import duckdb

    rewritten = pa.table({"value": [1]})
    try:
        relation.query("rows", "select value from rewritten").fetchall()
    except duckdb.Error:
        raise RequestError(
            "the connection of the relation does not find tables of Python "
            "(python_enable_replacements is off); give relation.fetch_arrow_table(), or "
            "turn this setting on"
        ) from None
    finally:
        del rewritten


def _quoted(column: str) -> str:
    """Return a column's name as a quoted SQL identifier."""
    escaped = column.replace('"', '""')
    return f'"{escaped}"'


def _of_pandas(frame: Any) -> Frame:
    def replacing(column: Any) -> Callable[[list[str | None]], Any]:
        return lambda texts: _with_texts(frame, column, texts)

    return Frame(
        list(frame.columns), lambda column: column_list(frame[column], str(column)), replacing
    )


def _with_texts(frame: Any, column: Any, texts: list[str | None]) -> Any:
    """Return a copy of a pandas DataFrame with other texts in one column, without the frame's
    ``attrs`` and without unused categories. All ordered categories stay, because they are part of
    the column's type.
    """
    made = frame.copy(deep=False)
    made[column] = column_like(frame[column], texts)
    made.attrs = {}  # to_parquet writes the attributes, which may quote the source
    for label, kind in frame.dtypes.items():
        if kind == "category" and label != column and not kind.ordered:
            made[label] = made[label].cat.remove_unused_categories()
    return made


def _of_polars(frame: Any) -> Frame:
    def replaced(column: str, texts: list[str | None]) -> Any:
        return frame.with_columns(column_like(frame[column], texts))

    return Frame(
        frame.columns,
        lambda column: column_list(frame[column], column),
        lambda column: lambda texts: replaced(column, texts),
    )


def _of_dataset(data: Any) -> Frame:
    table = data.with_format("arrow")[:]  # the index follows a selection or an order of rows
    # the features of the data set describe its types
    arrow = _of_arrow(table, takes_extensions=True)

    def replacing(column: str) -> Callable[[list[str | None]], Any]:
        from datasets import DatasetInfo  # type: ignore[import-untyped]

        of_table = arrow.replacing(column)

        def replaced(texts: list[str | None]) -> Any:
            # Remove facts about the source: sizes, checksums, description, a fingerprint of the
            # texts.
            made = type(data)(
                of_table(texts),
                info=DatasetInfo(features=data.features.copy()),
                split=data.split,
                fingerprint=secrets.token_hex(8),
            )
            return made.with_format(**data.format) if data.format["type"] else made

        return replaced

    return Frame(arrow.columns, arrow.read, replacing)
