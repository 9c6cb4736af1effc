"""Data sets of Ray on two nodes: what is published, what is charged, and workers that are killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ray_nodes import nodes  # noqa: F401

pytest.importorskip("ray.data")

import ray

import lexveil.ray
from lexveil import paths
from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.ledger.ledger import Ledger
from lexveil.ledger.statement import subject, summary
from lexveil.runtime.ray_cluster import connect

pytestmark = pytest.mark.slow

SECRET = "zorblax"
TEXT = f"The prime minister said in New South Wales that the {SECRET} fire was under control."
HOW: dict[str, Any] = {"column": "body", "subjects": "who", "document_budget": 60.0, "model": "toy"}


@pytest.fixture
def table(nodes: Any, outside: Path, packaged: PackagedModel) -> Iterator[Any]:  # noqa: F811
    """60 rows in six blocks, of five subjects, with a nested column."""
    connect(nodes[0])
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = [{"id": i, "body": TEXT, "who": f"c{i % 5}", "more": [{"a": i}]} for i in range(60)]
    return lambda **how: lexveil.ray.privatize(
        ray.data.from_items(rows, override_num_blocks=6), **{**HOW, "model_folder": str(packaged.folder), **how}
    )


def states_of() -> tuple[list[str], float]:
    """Of all transactions; and what one subject has spent."""
    with Ledger.open(paths.user_data() / "ledger", anchor=paths.user_data() / "ledger-anchor.json") as ledger:
        return [entry.state for entry in summary(ledger, None).releases], subject(ledger, "c1", None).epsilon


def test_a_data_set_goes_in_and_a_table_with_its_record_comes_out(table: Any, outside: Path) -> None:
    released = table().write_parquet("out")
    rows = sorted(released.dataset.take_all(), key=lambda row: row["id"])
    assert [(row["id"], row["who"], list(row["more"])) for row in rows] == [(i, f"c{i % 5}", [{"a": i}]) for i in range(60)]
    assert TEXT not in {row["body"] for row in rows}
    assert released.record.release is not None and released.record.counts.n_rows == 60
    written = json.loads((outside / "out" / f"_lexveil-{released.record.release.id}.record.json").read_text())
    assert written == released.record.to_dict() and states_of()[0] == ["committed"]
    assert [file.name for file in outside.iterdir()] == ["out"]
