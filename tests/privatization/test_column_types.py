"""Every column but the text comes out with the type and the values it had, or is refused by its
name before anything is charged: over all types of each library of tables."""

from __future__ import annotations

import datetime
import decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lexveil
from lexveil.release.adapters.memory import frame_of
from tests.formats.arrow_values import columns, same, shapes

NO_COPY = ("dense union", "sparse union", "run-end encoded", "map of")
ARROW = columns()
SHAPES = list(shapes(pa.array([1, 2, 3])))


def replaced(table, n_rows):
    """The table with other texts."""
    frame = frame_of(table)
    assert frame is not None
    return frame.replacing("body")([f"text {row}" for row in range(n_rows)])


@pytest.mark.parametrize("shape", SHAPES)
def test_columns_of_arrow(shape):
    changed = []
    refused = []
    for name, array in ARROW.items():
        column = shapes(array)[shape]
        texts = pa.array(["x"] * len(column), pa.string())
        table = pa.table({"body": texts, "other": column, "id": pa.array(range(len(column)))})
        try:
            made = replaced(table, len(column))
        except lexveil.RequestError as error:
            assert "`other`" in str(error)
            refused.append(name)
            continue
        if not same(column, made.column("other")) or made.column("id") != table.column("id"):
            changed.append(name)
        assert made.column("body").type == pa.string()
    assert not changed and len(ARROW) > 750
    # What Arrow cannot copy row by row: unions, some encoded runs, and a null of some maps.
    assert not [name for name in refused if not name.startswith(NO_COPY)] and len(refused) <= 172


@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_of_arrow(shape):
    for name in ("int64", "uuid", "dictionary<values=string, indices=int8, ordered=1>"):
        column = shapes(ARROW[name])[shape]
        texts = pa.array(["x"] * len(column), pa.string())
        batch = pa.table({"body": texts, "other": column}).combine_chunks().to_batches()
        for made in [replaced(each, each.num_rows) for each in batch]:
            assert isinstance(made, pa.RecordBatch)
            assert same(column, pa.chunked_array([made.column("other")]))


def _strings_below():
    secret = pa.array(["ana", "Zanzibar tower", "ben"])
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        values = secret.cast(kind)
        yield f"{kind}", values
        if kind != pa.string_view():
            yield f"dictionary of {kind}", values.dictionary_encode()
            yield (
                f"list of dictionary of {kind}",
                pa.ListArray.from_arrays(
                    pa.array([0, 1, 2, 3], pa.int32()), values.dictionary_encode()
                ),
            )
        for start, size in (([0, 1, 2], [1, 1, 1]), ([2, 0, 0], [1, 2, 1])):
            starts = pa.array(start, pa.int32())
            sizes = pa.array(size, pa.int32())
            yield f"list view of {kind}", pa.ListViewArray.from_arrays(starts, sizes, values)
        mask = pa.array([False, True, False])
        hidden = pa.StructArray.from_arrays([values], ["x"], mask=mask)
        yield f"struct of {kind}", hidden
        yield f"struct of struct of {kind}", pa.StructArray.from_arrays([hidden], ["y"])
        yield (
            f"fixed list of {kind}",
            pa.FixedSizeListArray.from_arrays(values, type=pa.list_(kind, 1), mask=mask),
        )
        offsets = pa.array([0, 1, 2, 3], pa.int32())
        yield f"list of {kind}", pa.ListArray.from_arrays(offsets, values, mask=mask)
        yield f"map of {kind}", pa.MapArray.from_arrays(offsets, ["k"] * 3, values)


def _bytes(array):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("c", array.type)])) as stream:
        stream.write_batch(pa.record_batch([array], ["c"]))
    return sink.getvalue().to_pybytes() + b"".join(
        buffer.to_pybytes() for buffer in array.buffers() if buffer
    )


def test_nothing_is_in_a_copy_that_no_row_shows():
    """A copy lacks the bytes of rows that were cut away, and the bytes below a null."""
    n_cut = 0
    leaks = []
    for name, array in _strings_below():
        for row in range(len(array)):
            part = array.slice(row, 1)
            if "Zanzibar" in str(part.to_pylist()):
                continue
            n_cut += 1
            made = replaced(pa.table({"body": ["x"], "other": part}), 1).column("other")
            assert same(pa.chunked_array([part]), made)
            leaks += [name for chunk in made.chunks if b"Zanzibar" in _bytes(chunk)]
    assert n_cut > 50 and not leaks


def _duckdb_types(connection):
    """An expression for a column of each type, which has extreme values in rows of
    ``test_all_types()``."""
    listed = connection.sql("describe select * from test_all_types()").fetchall()
    own = {
        "json": """'{"a": [1, 2.50]}'::json""",
        "list of json": "['1'::json]",
        "small enum": "'b'::enum('a', 'b', 'c')",
        "list of enum": "['b'::enum('a', 'b')]",
        "union": "union_value(num := 1::utinyint)",
        "variant": "1::variant",
        "collated": "'é' collate noaccent",
        "list of uuid": "[uuid()]",
        "struct of huge": "{'a': 340282366920938463463374607431768211455::uhugeint}",
        "map of bits": "map(['101'::bit], [1::bignum])",
        "time with zone": "timetz '10:00:00+02'",
    }
    return {f"{name} {kind}"[:40]: f'"{name}"' for name, kind, *_ in listed} | own


@pytest.mark.parametrize("rows", ["", "limit 0", "null"])
def test_columns_of_duckdb(rows):
    with duckdb.connect() as connection:
        changed = []
        kinds = _duckdb_types(connection)
        for name, value in kinds.items():
            column = f"case when random() > 2 then {value} end" if rows == "null" else value
            query = (
                f"select 'x' as body, {column} as other, row_number() over () as id "
                f"from test_all_types() {'' if rows == 'null' else rows}"
            )
            source = connection.sql(query).materialize()
            made = replaced(source, len(source.fetchall()))
            same_query = "select typeof(other), cast(other as varchar), id from r order by id"
            before, after = (
                relation.query("r", same_query).fetchall() for relation in (source, made)
            )
            if before != after or source.types != made.types or source.columns != made.columns:
                changed.append(name)
        assert not changed and len(kinds) >= 70


def test_a_relation_that_gives_other_rows_each_time_is_read_once(
    monkeypatch,
):
    with duckdb.connect() as connection:
        source = connection.sql(
            "select 'text ' || i as body, i, random() as other from range(5000) t(i) order by 3"
        )
        frame = frame_of(source)
        assert frame is not None
        texts = frame.read("body")
        ids = frame.read("i")
        made = frame.replacing("body")([text.upper() for text in texts])
        assert made.project("body, i").fetchall() == [(f"TEXT {number}", number) for number in ids]
        assert texts == [f"text {number}" for number in ids]


@pytest.mark.parametrize(
    ("value", "subject"),
    [
        (
            "340282366920938463463374607431768211455::uhugeint",
            "340282366920938463463374607431768211455",
        ),
        ("'eeeeeeee-eeee-eeee-eeee-eeeeeeeeeeee'::uuid", "eeeeeeee-eeee-eeee-eeee-eeeeeeeeeeee"),
        ("'101'::bit", "101"),
        ("'a'::enum('a')", "a"),
        (
            "12345678901234567890123456789012345678901234567890::bignum",
            "12345678901234567890123456789012345678901234567890",
        ),
    ],
)
def test_a_subject_of_any_type_of_duckdb_keeps_its_digits(value, subject):
    with duckdb.connect() as connection:
        frame = frame_of(connection.sql(f"select 'x' as body, {value} as who"))
        assert frame is not None and frame.read("who") == [subject]


def test_a_connection_that_finds_no_table_of_python_is_refused():
    with (
        duckdb.connect(config={"python_enable_replacements": False}) as connection,
        pytest.raises(lexveil.RequestError, match="python_enable_replacements"),
    ):
        replaced(connection.sql("select 'x' as body"), 1)


UNITS = ("ms", "us", "ns")
NOW = datetime.datetime(2026, 3, 1, 12, 30, 1, 5)


def _polars():
    one = decimal.Decimal("0.01")
    values = {
        **{
            f"Int{size}": (getattr(pl, f"Int{size}"), [-(2 ** (size - 1)), None])
            for size in (8, 16, 32, 64, 128)
        },
        **{
            f"UInt{size}": (getattr(pl, f"UInt{size}"), [2**size - 1, None])
            for size in (8, 16, 32, 64, 128)
        },
        "Float32": (pl.Float32, [0.1, None]),
        "Float64": (pl.Float64, [5e-324, None]),
        "Boolean": (pl.Boolean, [True, None]),
        "Decimal": (pl.Decimal(38, 2), [one, None]),
        "String": (pl.String, ["é", None]),
        "Binary": (pl.Binary, [b"\xff", None]),
        "Date": (pl.Date, [NOW.date(), None]),
        "Time": (pl.Time, [NOW.time(), None]),
        "Categorical": (pl.Categorical, ["a", None]),
        "Enum": (pl.Enum(["c", "b", "a"]), ["a", None]),
        "Null": (pl.Null, [None, None]),
        **{
            f"Datetime {unit} {zone}": (pl.Datetime(unit, zone), [NOW, None])
            for unit in UNITS
            for zone in (None, "UTC", "Europe/Berlin")
        },
        **{
            f"Duration {unit}": (pl.Duration(unit), [datetime.timedelta(days=9), None])
            for unit in UNITS
        },
    }
    series = {}
    for name, (kind, given) in values.items():
        moments = name.startswith("Datetime") and name.split()[-1] != "None"
        base = pl.Series("other", given, dtype=pl.Datetime(kind.time_unit) if moments else kind)
        series[name] = base.dt.replace_time_zone(kind.time_zone) if moments else base
    for name, base in list(series.items()):
        as_list = pl.DataFrame({"other": base}).select(pl.concat_list("other"))
        series[f"List of {name}"] = as_list["other"]
        series[f"Array of {name}"] = base.reshape((2, 1))
        series[f"Struct of {name}"] = pl.DataFrame({"x": base}).to_struct("other")
    return series | {"Object": pl.Series("other", [object(), None], dtype=pl.Object)}


@pytest.mark.parametrize("rows", ["all", "none", "null"])
def test_columns_of_polars(rows):
    changed = []
    every = _polars()
    for name, series in every.items():
        other = {"all": series, "none": series.clear()}.get(rows)
        if other is None:
            other = pl.Series("other", [None, None], dtype=series.dtype)
        texts = pl.Series("body", ["x"] * len(other), dtype=pl.String)
        source = pl.DataFrame([texts, other])
        made = replaced(source, len(other))
        if made.schema != source.schema or made["other"].to_list() != other.to_list():
            changed.append(name)
    assert not changed and len(every) > 100


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical])
@pytest.mark.parametrize("texts", [[], [None, None], ["a", None]])
def test_a_text_column_of_polars_keeps_its_type_without_texts(kind, texts):
    frame = frame_of(pl.DataFrame({"body": pl.Series(texts, dtype=kind), "id": range(len(texts))}))
    assert frame is not None
    assert frame.replacing("body")(texts).schema["body"] == kind


def _pandas():
    moments = pd.to_datetime(pd.Series(["2026-03-01 12:30:01.000005", None]))
    numbers = {
        kind: pd.Series(np.array([1, np.iinfo(kind).max], dtype=kind))
        for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    }
    return numbers | {
        **{kind: pd.Series([2, None], dtype=kind) for kind in ("Int8", "Int64", "UInt64")},
        "float16": pd.Series([0.1, None], dtype="float16"),
        "float32": pd.Series([0.1, None], dtype="float32"),
        "float64": pd.Series([5e-324, None]),
        "Float32": pd.Series([0.1, None], dtype="Float32"),
        "complex": pd.Series([1 + 2j, 0]),
        "bool": pd.Series([True, False]),
        "boolean": pd.Series([True, None], dtype="boolean"),
        "object": pd.Series([{"a": 1}, decimal.Decimal("0.01")], dtype=object),
        "str": pd.Series(["é", None], dtype="str"),
        "string": pd.Series(["é", None], dtype="string"),
        **{f"moment {unit}": moments.astype(f"datetime64[{unit}]") for unit in ("s", *UNITS)},
        "zone": moments.dt.tz_localize("Europe/Berlin"),
        **{
            f"duration {unit}": pd.Series([9, None]).astype(f"timedelta64[{unit}]")
            for unit in ("s", *UNITS)
        },
        "period": pd.Series(pd.period_range("2020", periods=2, freq="M")),
        "interval": pd.Series(pd.interval_range(0, 2, closed="both")),
        "sparse": pd.Series([0, 5], dtype=pd.SparseDtype("int64", 0)),
        "ordered": pd.Series(pd.Categorical(["b", "a"], ["c", "b", "a"], ordered=True)),
        "category": pd.Series(pd.Categorical(["b", "a"], ["b", "a"])),
        **{
            f"arrow {kind}": pd.Series([None, None], dtype=pd.ArrowDtype(kind))
            for kind in (pa.uint64(), pa.decimal128(38, 2), pa.list_(pa.int8()), pa.date32())
        },
    }


@pytest.mark.parametrize("rows", ["all", "none", "null"])
@pytest.mark.parametrize("label", ["other", 5, ("a", 2), datetime.date(2026, 1, 1)])
def test_columns_of_pandas(rows, label):
    changed = []
    every = _pandas()
    indexes = [pd.Index(["b", "a"]), pd.MultiIndex.from_tuples([("b", 1), ("a", 2)])]
    for number, (name, series) in enumerate(every.items()):
        other = {"all": series, "none": series.iloc[:0], "null": series.iloc[[1]]}[rows]
        index = indexes[number % 2][: len(other)]
        source = pd.DataFrame({"body": pd.Series(["x"] * len(other), dtype="str")})
        source[label] = other.reset_index(drop=True)
        source.index = index
        if name == "category" and rows != "all":
            continue  # categories that no row has are left out
        made = replaced(source, len(other))
        try:
            pd.testing.assert_series_equal(made[label], source[label], check_exact=True)
        except AssertionError:
            changed.append(name)
        assert made.index.equals(index) and list(made.columns) == list(source.columns)
    assert not changed and len(every) > 30


TWICE = {
    "pandas": lambda: pd.DataFrame([["x", "y", 1]], columns=["body", "a", "a"]),
    "arrow": lambda: pa.table([["x"], ["y"], [1]], names=["body", "a", "a"]),
    "duckdb": lambda: duckdb.sql("select 'x' as body, 'y' as a, 1 as a"),
}


@pytest.mark.parametrize("kind", TWICE)
def test_two_columns_of_one_name_are_refused(kind):
    with pytest.raises(lexveil.RequestError, match="columns 2 and 3 have the same name"):
        frame_of(TWICE[kind]())
