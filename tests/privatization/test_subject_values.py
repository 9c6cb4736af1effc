"""A subject is one person whatever the type of the column that names it."""

import datetime
import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lexveil
from lexveil import Ledger
from lexveil.base import paths
from lexveil.core.accounting.subject_keys import subject_key
from lexveil.io.formats.values import plain_value
from lexveil.release.adapters.memory import column_list, frame_of
from lexveil.release.distributed.rewriter import _subjects

DAY = datetime.date(2020, 1, 2)
NUMBERS = [0.1, 1.1, 16777216.0, 3.4e-5, None]
KEYS = ["0.1", "1.1", "16777216", "0.000034", ""]


def keys(values):
    return [subject_key(plain_value(value, "who", "row 1") or "") for value in values]


def relation(values, kind):
    table = pa.table({"who": pa.array(values, pa.float64())})
    return duckdb.from_arrow(table).project(f"cast(who as {kind}) as who")


COLUMNS = {
    "list": lambda values: values,
    "list of float32": lambda values: [None if v is None else np.float32(v) for v in values],
    "NumPy, 32": lambda values: np.array(values, np.float32),
    "Arrow, 64": lambda values: pa.array(values, pa.float64()),
    "Arrow, 32": lambda values: pa.array(values, pa.float32()),
    "Arrow, chunks": lambda values: pa.chunked_array([pa.array(values, pa.float32())]),
    "pandas, 64": lambda values: pd.Series(values, dtype="float64"),
    "pandas, 32": lambda values: pd.Series(values, dtype="float32"),
    "pandas, Float32": lambda values: pd.Series(values, dtype="Float32"),
    "Polars, 64": lambda values: pl.Series(values, dtype=pl.Float64),
    "Polars, 32": lambda values: pl.Series(values, dtype=pl.Float32),
}
TABLES = {
    "Arrow": lambda values: pa.table({"who": pa.array(values, pa.float32())}),
    "pandas": lambda values: pd.DataFrame({"who": pd.Series(values, dtype="float32")}),
    "Polars": lambda values: pl.DataFrame({"who": values}, schema={"who": pl.Float32}),
    "DuckDB": lambda values: relation(values, "float"),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_small_float_is_its_number_in_columns(kind):
    assert keys(column_list(COLUMNS[kind](NUMBERS), "who")) == KEYS


@pytest.mark.parametrize("kind", TABLES)
def test_a_small_float_is_its_number_in_tables(kind):
    frame = frame_of(TABLES[kind](NUMBERS))
    assert frame is not None and keys(frame.read("who")) == KEYS


def test_a_half_float_is_its_number_too():
    assert keys(column_list(pa.array([0.1, 1.5], pa.float16()), "who")) == ["0.1", "1.5"]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.string()])
def test_workers_of_a_cluster_have_the_same_keys(kind):
    assert _subjects(pa.array([0.1, 1.1], pa.float64()).cast(kind), "who") == KEYS[:2]


def test_files_of_all_forms_charge_one_person(outside, cli):
    """A number of 32 and of 64 bits, and as text; a day, and its midnight."""
    midnight = datetime.datetime.combine(DAY, datetime.time())
    whos = [
        (pa.float32(), 0.1),
        (pa.float64(), 0.1),
        (pa.string(), "0.10"),
        (pa.date32(), DAY),
        (pa.timestamp("us"), midnight),
        (pa.timestamp("ns"), midnight),
        (pa.string(), "2020-01-02 00:00:00"),
    ]
    options = ["--model", "toy", "--mechanism", "tem", "--strategy", "S1", "--epsilon", "2"]
    for number, (kind, who) in enumerate(whos):
        table = pa.table({"text": ["The fire was under control."], "who": pa.array([who], kind)})
        pq.write_table(table, f"{number}.parquet")
        given = [f"{number}.parquet", "-o", f"out{number}.parquet", "--subject-column", "who"]
        cli("privatize", *given, *options)
    (outside / "in.jsonl").write_text(json.dumps({"text": "The fire.", "who": 0.1}) + "\n")
    cli("privatize", "in.jsonl", "-o", "out.jsonl", "--subject-column", "who", *options)
    lexveil.privatize(
        ["The fire."],
        subjects=np.array([0.1], np.float32),
        model="toy",
        mechanism="tem",
        strategy="S1",
        epsilon=2.0,
    )
    with Ledger.open(paths.user_data() / "ledger") as ledger:
        assert ledger.database.rows("select count(*) from balances") == [(2,)]
