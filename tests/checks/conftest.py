from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.artifacts.data_docs import DataDocs
from lexveil.config import MachineParams
from lexveil.errors import CheckFailed

SECRET = "zanzibar"  # stands in every text of these tests and must not come out anywhere


@pytest.fixture
def machine(tmp_path: Path) -> MachineParams:
    return MachineParams(memory_limit="500MB", threads=1, workers=1, temp_directory=str(tmp_path / "work"))


@pytest.fixture
def docs(tmp_path: Path) -> DataDocs:
    return DataDocs(tmp_path / "data_docs")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "checks" / "record"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, pd.DataFrame, pa.Schema], Path]:
    """Write a frame to a Parquet file with exactly these column types."""

    def _write(name: str, frame: pd.DataFrame, schema: pa.Schema) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # object: whole numbers beside a null stay whole numbers, and a nan stays a nan
        columns = [pa.array(frame[field.name].astype(object).tolist(), field.type) for field in schema]
        pq.write_table(pa.table(columns, schema=schema), path)
        return path

    return _write


@pytest.fixture
def stops(docs: DataDocs, out: Path) -> Callable[[Callable[[], Any], str], str]:
    """Run a check that has to stop: says so in one line, publishes pages, keeps no record, tells no text."""

    def _stops(check: Callable[[], Any], saying: str) -> str:
        with pytest.raises(CheckFailed) as caught:
            check()
        message = str(caught.value)
        assert re.search(saying, message), message
        assert "\n" not in message
        assert message.endswith("/index.html")
        assert not out.exists()
        assert SECRET not in message
        pages = [file for file in docs.root.rglob("*") if file.is_file()]
        assert {"index.html", "suite.html", "results.json"} <= {file.name for file in pages}
        assert Path(message.rsplit(" ", 1)[1]) in pages
        for file in pages:
            assert SECRET not in file.read_text(encoding="utf-8"), file
        return message

    return _stops
