"""Data sets of Ray on two nodes: what is published, what is charged, and workers that are
killed."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from test_rewriter import KILLS, killing

from benchmarks.scale import end, ray_nodes  # sets what Ray reads when it is imported

pytest.importorskip("ray.data")

import ray

import lexveil.ray
from benchmarks.ray_map import connect
from lexveil import Ledger, LexveilError, RequestError
from lexveil.base import paths
from lexveil.release.ledger.statement import subject, summary

pytestmark = pytest.mark.slow

SECRET = "zorblax"
TEXT = f"The prime minister said in New South Wales that the {SECRET} fire was under control."
HOW = {"column": "body", "subjects": "who", "document_budget": 60.0, "model": "toy"}


@pytest.fixture(scope="module")
def nodes():
    """The address of two nodes with a processor each, on loopback."""
    started = []
    try:
        with ray_nodes(started) as address:
            yield address
    finally:
        for node in started[::-1]:
            end(node)


@pytest.fixture
def table(nodes, outside, packaged):
    """60 rows in six blocks, of five subjects, with a nested column.

    Its worker is killed when it reads the first block for the ``dies``th time: it is read once to
    count, once to rewrite, and again after each death.
    """
    connect(nodes)
    ray.data.DataContext.get_current().enable_progress_bars = False
    reads = outside.parent / "reads"

    def made(
        dies=0,
        seconds=0.0,
        raises=False,
        who="c0",
        **how,
    ):
        def dying(batch):
            time.sleep(seconds)
            if raises:
                raise ValueError("a mistake in the user's own plan")
            if 0 in batch["id"].to_pylist():
                with reads.open("ab") as file:
                    file.write(b"x")
                if reads.stat().st_size == dies:
                    os.kill(os.getpid(), signal.SIGKILL)
            return batch

        rows = [
            {"id": i, "body": TEXT, "who": f"c{i % 5}" if i else who, "more": [{"a": i}]}
            for i in range(60)
        ]
        read = ray.data.from_items(rows, override_num_blocks=6).map_batches(
            dying, batch_format="pyarrow"
        )
        return lexveil.ray.privatize(read, **{**HOW, "model_folder": str(packaged.folder), **how})

    return made


def charged():
    """States of all transactions; what five subjects have spent."""
    with Ledger.open(
        paths.user_data() / "ledger", anchor=paths.user_data() / "ledger-anchor.json"
    ) as ledger:
        states = [entry.state for entry in summary(ledger, None).releases]
        return states, sum(subject(ledger, f"c{i}", None).epsilon for i in range(5))


@pytest.mark.parametrize("kill", [0, 1, 2, *KILLS])
def test_each_row_comes_out_once_and_is_charged_once_whoever_is_killed(table, outside, kill):
    """A worker dies while it reads a block to count (1), while it rewrites one (2), or at any
    time."""
    private = table(*([kill] if isinstance(kill, int) else [0, 0.3]))
    with killing(lexveil.ray._RayJob, None if isinstance(kill, int) else kill, "ray::"):
        released = private.write_parquet("out")
    rows = sorted(released.dataset.take_all(), key=lambda row: row["id"])
    assert [(row["id"], row["who"], [*row["more"]]) for row in rows] == [
        (i, f"c{i % 5}", [{"a": i}]) for i in range(60)
    ]
    assert TEXT not in {row["body"] for row in rows}
    assert released.record.release is not None and released.record.counts.n_rows == 60
    written = json.loads(
        (outside / "out" / f"_lexveil-{released.record.release.id}.record.json").read_text()
    )
    states, spent = charged()
    assert states == ["committed"] and spent == pytest.approx(released.record.spent.mean * 60)
    assert written == released.record.to_dict() and [file.name for file in outside.iterdir()] == [
        "out"
    ]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"who": None}, "a row has no subject"),
        ({"column": "nowhere"}, "nowhere"),
        ({"model_folder": "/nowhere"}, r"\(/nowhere\) differs from the driver's model"),
        ({"driver": "Lexveil 9"}, r"^a worker on .* has Lexveil 0.*, but the driver has Lexveil 9"),
        (
            {"raises": True},
            r"^the cluster's job failed \(\S+ in .*; the engine's log states the reason",
        ),
    ],
)
def test_who_is_refused_spends_nothing_and_rays_logs_hold_no_text(
    table, outside, monkeypatch, how, said
):
    if driver := how.pop("driver", None):
        monkeypatch.setattr("lexveil.release.distributed.rewriter.build", lambda: driver)
    with pytest.raises(LexveilError, match=said) as raised:
        table(**how).write_parquet("out")
    assert not [*outside.iterdir()] and charged()[1] == 0
    folder = Path(ray._private.worker._global_node.get_session_dir_path())
    logs = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert b"MapBatches" in logs
    assert not any(
        word in logs + str(raised.value).encode() for word in (SECRET.encode(), b"South Wales")
    )


def test_a_folder_that_is_there_or_in_object_storage_is_refused(table, outside):
    (outside / "out").mkdir()
    for path, said in (
        ("out", "exists already"),
        ("s3://bucket/out", "storage that all nodes mount"),
    ):
        with pytest.raises(RequestError, match=said):
            table().write_parquet(path)
