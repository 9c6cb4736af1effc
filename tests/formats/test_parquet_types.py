"""Every column of a Parquet file but the text comes out with the type and the values it had, or is
refused by its name: over all types that Arrow, DuckDB and Polars write."""

from __future__ import annotations

import contextlib
import datetime
import re

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.base.errors import RequestError
from tests.formats.arrow_values import columns, same, shapes
from tests.formats.test_outputs import rewritten

OPTIONS = {
    "as now": {},
    "no schema of Arrow": {"store_schema": False},
    "old timestamps": {"use_deprecated_int96_timestamps": True},
    "decimals as integers": {"store_decimal_as_integer": True},
    "adjusted times": {"write_time_adjusted_to_utc": True},
    "old lists": {"use_compliant_nested_type": False},
}


def logical(file):
    """Return the logical types of a Parquet file's columns."""
    schema = pq.ParquetFile(file).schema
    return [schema.column(number).logical_type.to_json() for number in range(len(schema))]


def writable(shape, options):
    """Columns of every type that Parquet has, by names of their own; and the names of the types."""
    found = {}
    types = {}
    for kind, array in columns().items():
        name = f"c{len(found)}"
        table = pa.table({name: shapes(array)[shape]})
        # unions and the like, which Parquet does not have
        with contextlib.suppress(pa.ArrowException, OSError):
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, **options)
            pq.read_table(pa.BufferReader(sink.getvalue()))
            found[name] = table.column(name)
            types[name] = kind
    return found, types


@pytest.mark.parametrize("shape", ["whole", "all null"])
@pytest.mark.parametrize("options", OPTIONS)
def test_columns_that_arrow_writes(tmp_path, shape, options):
    """A refused column is left out, and the file of all others written anew."""
    file = tmp_path / "in.parquet"
    every, types = writable(shape, OPTIONS[options])
    out = None
    while out is None:
        table = pa.table({"text": ["x"] * len(every["c0"]), **every})
        pq.write_table(table, file, **OPTIONS[options])
        try:
            out = rewritten(file)
        except RequestError as error:
            del every[re.search("`(c[0-9]+)`", str(error))[1]]
    source = pq.read_table(file)
    written = pq.read_table(out)
    assert not [types[name] for name in every if not same(source[name], written[name])]
    assert logical(file) == logical(out)
    # Old timestamps have nanoseconds: those here have parts of a microsecond.
    refused = [types[name] for name in types.keys() - every]
    assert not [kind for kind in refused if "timestamp[ns" not in kind or options[:3] != "old"]
    assert len(types) > 450


def test_dates_that_nanoseconds_cannot_hold_are_kept(tmp_path):
    """The file has the old timestamps that Spark writes. Arrow alone lets them wrap around."""
    days = [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999), None]
    table = pa.table({"text": ["x"] * 3, "other": pa.array(days, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "in.parquet", use_deprecated_int96_timestamps=True)
    out = pq.ParquetFile(rewritten(tmp_path / "in.parquet"), coerce_int96_timestamp_unit="us")
    assert out.schema.column(1).physical_type == "INT96"
    assert out.read().column("other").to_pylist() == days


def test_columns_that_duckdb_writes(tmp_path):
    file = tmp_path / "in.parquet"
    changed = []
    refused = []
    n = 0
    with duckdb.connect() as connection:
        connection.sql("create view every as select *, '{}'::json as json from test_all_types()")
        for name, kind, *_ in connection.sql("describe every").fetchall():
            try:
                connection.execute(
                    f"copy (select 'x' as text, \"{name}\" as other from every) to '{file}'"
                )
            except duckdb.Error:
                continue  # of structs without fields
            n += 1
            try:
                out = rewritten(file)
            except RequestError as error:
                refused.append((name, str(error)))
                continue
            query = "select typeof(other), cast(other as varchar) from '{}'"
            before, after = (connection.sql(query.format(path)).fetchall() for path in (file, out))
            if before != after:
                changed.append(f"{name} {kind}"[:40])
    assert not changed and n > 55
    assert all("`other`" in said for _, said in refused)
    # Lists of fixed length with nulls are written so that Arrow cannot read them.
    fixed = [name for name, said in refused if "lists of a fixed length" in said]
    assert fixed and all("fixed" in name for name in fixed)
    assert {name for name, _ in refused} - {*fixed} == {"geometry", "interval"}


@pytest.mark.parametrize("rows", [2, 0])
def test_columns_that_polars_writes(tmp_path, rows):
    values = {
        "text": (pl.String, ["x", "y"]),
        "enum": (pl.Enum(["c", "b", "a"]), ["a", None]),
        "category": (pl.Categorical, ["a", "b"]),
        "enums": (pl.List(pl.Enum(["b", "a"])), [["a"], None]),
        "struct": (
            pl.Struct({"x": pl.Enum(["b", "a"]), "y": pl.UInt64}),
            [{"x": "a", "y": 1}, None],
        ),
        "time": (pl.Time, [datetime.time(1), None]),
        "moment": (pl.Datetime("ns", "Europe/Berlin"), [datetime.datetime(2026, 3, 1), None]),
        "duration": (pl.Duration("ms"), [datetime.timedelta(1), None]),
        "decimal": (pl.Decimal(38, 2), [1, None]),
        "null": (pl.Null, [None, None]),
    }
    schema = {name: kind for name, (kind, _) in values.items()}
    source = pl.DataFrame({name: given for name, (_, given) in values.items()}, schema=schema)
    source.write_parquet(tmp_path / "in.parquet")
    if not rows:
        source = source.with_columns(
            pl.lit(None, kind).alias(name) for name, kind in schema.items() if name != "text"
        )
        source.write_parquet(tmp_path / "in.parquet")
    written = pl.read_parquet(rewritten(tmp_path / "in.parquet"))
    assert written.schema == source.schema
    assert written.drop("text").equals(source.drop("text"))


def test_what_cannot_come_out_as_it_was_is_refused_by_name(tmp_path):
    file = tmp_path / "in.parquet"
    opaque = pa.opaque(pa.string(), "a secret", "a vendor")
    storage = pa.array(["y"])
    unknown = pa.field("other", pa.string(), metadata={"ARROW:extension:name": "a secret"})
    inner = pa.struct([unknown])
    refused = {
        "opaque": pa.table(
            {"text": ["x"], "other": pa.ExtensionArray.from_storage(opaque, storage)}
        ),
        "unknown": pa.table({"text": ["x"], "other": storage}).cast(
            pa.schema([pa.field("text", pa.string()), unknown])
        ),
        "inner": pa.table(
            {"text": pa.array(["x"]), "other": pa.array([{"other": "y"}], inner)},
        ),
    }
    for table in refused.values():
        pq.write_table(table, file)
        with pytest.raises(RequestError, match="`other` has an extension type") as raised:
            rewritten(file)
        assert "secret" not in str(raised.value)


@pytest.mark.parametrize("order", [("time", "zoned"), ("zoned", "time")])
def test_times_of_both_kinds_in_one_file_are_refused(tmp_path, order):
    value = {"time": "time '10:00:00'", "zoned": "timetz '10:00:00+00'"}
    selected = ", ".join(f"{value[name]} as {name}" for name in order)
    duckdb.execute(f"copy (select 'x' as text, {selected}) to '{tmp_path / 'in.parquet'}'")
    with pytest.raises(RequestError, match="`time` has a Parquet type that cannot be written"):
        rewritten(tmp_path / "in.parquet")


def test_integers_that_arrow_does_not_know_are_said_to_be_so(tmp_path):
    frame = pl.DataFrame({"text": ["x"], "n": [1]}, schema={"text": pl.String, "n": pl.Int128})
    frame.write_parquet(tmp_path / "in.parquet")
    with pytest.raises(RequestError, match="a column has a type that Arrow does not know"):
        rewritten(tmp_path / "in.parquet")
