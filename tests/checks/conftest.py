from contextlib import suppress
from math import inf

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.base.errors import CheckFailedError
from lexveil.io.config import MachineParams
from lexveil.release.checks import validation
from lexveil.release.checks.data_docs import DataDocs
from lexveil.release.checks.suites import judged, with_missing
from lexveil.release.checks.validation import Verdict

SECRET = "zanzibar"  # stands in every text of these tests and must not come out anywhere

# what is judged, in how many rows it is wrong, the value furthest from the limit


@pytest.fixture
def machine(tmp_path):
    return MachineParams(
        memory_limit="500MB", threads=1, workers=1, temp_directory=str(tmp_path / "work")
    )


@pytest.fixture
def docs(tmp_path):
    return DataDocs(tmp_path / "data_docs")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "checks" / "record"


@pytest.fixture
def write(tmp_path):
    """Write a frame to a Parquet file with exactly these column types."""

    def _write(name, frame, schema):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # object: whole numbers beside a null stay whole numbers, and a nan stays a nan
        columns = [
            pa.array(frame[field.name].astype(object).tolist(), field.type) for field in schema
        ]
        pq.write_table(pa.table(columns, schema=schema), path)
        return path

    return _write


def first_fault(suite, frame):
    """The first rule that does not hold, judged without Great Expectations, which
    test_validation.py tests."""
    frame = with_missing(frame, suite.expectations)
    for rule in suite.expectations:
        columns = judged(rule)
        low = getattr(rule, "min_value", None)
        high = getattr(rule, "max_value", None)
        if "row_count" in rule.expectation_type or "sum" in rule.expectation_type:
            total = frame[columns[0]].sum() if columns else len(frame)
            if not (-inf if low is None else low) <= total <= (inf if high is None else high):
                return ",".join(columns) or "rows", 1, total
        elif "unique" in rule.expectation_type:
            if n_repeated := int(frame.duplicated(columns, keep=False).sum()):
                return ",".join(columns), n_repeated, n_repeated
        else:
            values = frame[columns[0]].astype(float)
            below = values < (-inf if low is None else low)
            wrong = values[below | (values > (inf if high is None else high))]
            if len(wrong):
                return columns[0], len(wrong), wrong.min() if below.any() else wrong.max()
    return None


@pytest.fixture
def fault(monkeypatch, out):
    """The first fault that a stage stops at, leaving no record; None if it holds."""

    found = []

    def judge(name, suite, frame, docs):
        found.append(first_fault(suite, frame))
        if found[-1]:
            raise CheckFailedError(str(found[-1]))
        return Verdict(name, [])

    def _fault(check):
        monkeypatch.setattr(validation, "validate", judge)
        with suppress(CheckFailedError):
            check()
        assert found[-1] is None or not out.exists()
        return found[-1]

    return _fault


def rules_of(suite):
    """Return the columns that the rules of a suite check."""
    return {",".join(judged(rule)) or "rows" for rule in suite.expectations} - {"n_missing"}


def put(frame, column, value, row=0):
    """Return a copy of a frame with one value replaced."""
    frame = frame.copy()
    frame.at[row, column] = value
    return frame


def add(frame, *values):
    """Return a frame with one more row."""
    return pd.concat(
        [frame, pd.DataFrame([values], columns=frame.columns, dtype=object)], ignore_index=True
    )
