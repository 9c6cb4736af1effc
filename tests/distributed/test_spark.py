"""Tables of Spark on a local cluster: a real master, two workers, and executors that are killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_rewriter import charged

from lexveil.distributed import rewriter as rewriters
from lexveil.errors import RequestError
from lexveil.privatization.release.charge import LedgerCharge

pyspark = pytest.importorskip("pyspark")
releasing = pytest.importorskip("lexveil.spark")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("java"), reason="Spark needs Java")]

HOW: dict[str, Any] = {"column": "body", "subjects": "who", "document_budget": 60.0, "model": "en"}
SCHEMA = pa.schema(
    [("id", pa.int64()), ("body", "string"), ("who", "string"), ("more", pa.map_("string", pa.list_(pa.int64())))]
)
SPECULATION = {"": "true", ".quantile": "0.1", ".multiplier": "1.1", ".minTaskRuntime": "0ms", ".interval": "50ms"}
SETTINGS = {f"spark.speculation{name}": value for name, value in SPECULATION.items()} | {
    "spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "3",
    "spark.task.maxFailures": "9", "spark.ui.port": "0",
}  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in no project, with an own ledger elsewhere."""
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A session of a master and two workers on loopback; and the folder with what they write."""
    root = tmp_path_factory.mktemp("spark")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    own = {"PYTHONPATH": str(Path(__file__).parents[2]), "SPARK_WORKER_DIR": str(root)}
    own["SPARK_HOME"] = home = str(Path(pyspark.__file__).parent)
    java, log = ["java", "-Xmx256m", "-cp", f"{home}/jars/*"], (root / "daemons.log").open("wb")

    def start(kind: str, *rest: str) -> subprocess.Popen[bytes]:
        command = [*java, f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", "--webui-port", "0", *rest]
        return subprocess.Popen(command, env=os.environ | own, cwd=root, stdout=log, stderr=log)

    daemons = [start("master.Master", "--port", port)]
    try:
        while "elected leader" not in (root / "daemons.log").read_text() and daemons[0].poll() is None:
            time.sleep(0.1)
        daemons += [start("worker.Worker", "--cores", "1", f"spark://127.0.0.1:{port}") for _ in range(2)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYSPARK_PYTHON", sys.executable)
            patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
            builder = pyspark.sql.SparkSession.builder.master(f"spark://127.0.0.1:{port}")
            session = builder.config(map=SETTINGS).getOrCreate()
        yield session, root
        session.stop()
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.wait()


def table(spark: Any, folder: Path, first: dict[str, Any]) -> Any:
    """Six files of ten rows, read slowly; ``first`` changes the first row."""
    (folder / "in").mkdir()
    rows: list[dict[str, Any]] = [
        {
            "id": n,
            "body": f"The zorblax said in New South Wales {n}",
            "who": "Ben" if n % 5 else "ann",
            "more": [("k", [n])],
        }
        for n in range(60)
    ]
    rows[0] |= first
    for start in range(0, 60, 10):
        pq.write_table(pa.Table.from_pylist(rows[start : start + 10], SCHEMA), folder / f"in/{start}.parquet")

    def slowly(batches: Any) -> Any:
        for batch in batches:
            time.sleep(0.5)
            yield batch

    frame = spark.read.parquet(str(folder / "in"))
    return frame.mapInArrow(slowly, frame.schema)


def kill_an_executor() -> None:
    processes = psutil.Process().children(recursive=True)
    random.choice([each for each in processes if "CoarseGrainedExecutorBackend" in " ".join(each.cmdline())]).kill()


STEPS = {"count": (releasing._SparkJob, 4.0), "spend": (LedgerCharge, 0.0), "rewrite": (releasing._SparkJob, 4.0)}
NIGHTLY = [pytest.param(step, seed, marks=pytest.mark.nightly) for step in STEPS for seed in range(20)]


@pytest.mark.parametrize(("step", "seed"), [("rewrite", 0), *NIGHTLY])
def test_each_row_comes_out_once_and_is_charged_once_whoever_is_killed(
    cluster: Any, here: Path, monkeypatch: pytest.MonkeyPatch, step: str, seed: int
) -> None:
    """While rows are counted, while they are rewritten, or between; tasks are tried twice anyway. Then more rows."""
    frame, out = table(cluster[0], here, {}), here / "out"
    (room, longest), before = STEPS[step], {row.id: row.asDict() for row in frame.collect()}
    called = getattr(room, step)

    def killing(*arguments: Any) -> Any:
        threading.Timer(random.Random(seed).random() * longest, kill_an_executor).start()
        return called(*arguments)

    private = releasing.privatize(frame, **HOW)
    with monkeypatch.context() as patch:
        patch.setattr(room, step, killing)
        done = private.write_parquet(str(out), partition_by=["who"])
    after = done.frame.select(frame.columns).collect()
    assert Counter(row.id for row in after) == dict.fromkeys(before, 1)
    assert all({**row.asDict(), "body": before[row.id]["body"]} == before[row.id] != row.asDict() for row in after)
    spent, states = charged()
    assert states == ["committed"] and spent["Ben"] + spent["ann"] == pytest.approx(done.record.spent.mean * 60)
    record = json.loads((out / f"_lexveil-{done.record.release.id}.record.json").read_text())
    assert record == done.record.to_dict() and {file.name for file in here.iterdir()} == {"in", "out"}
    assert private.write_parquet(str(out), append=True, partition_by=["who"]).frame.count() == 120
    assert charged()[1] == ["committed"] * 2


@pytest.mark.parametrize(
    ("first", "build", "said"),
    [
        ({"who": None}, None, "a row has no subject"),
        ({"body": "zorblax \0"}, None, "a text of `body` holds a NUL"),
        ({}, "Lexveil 9", "a worker on .* has Lexveil 0.*, and the driver Lexveil 9"),
    ],
)
def test_who_is_refused_spends_nothing_and_spark_shows_no_text(
    cluster: Any, here: Path, monkeypatch: pytest.MonkeyPatch, first: dict[str, Any], build: str | None, said: str
) -> None:
    """Neither in the logs of its processes nor on its pages."""
    (spark, root), of_here = cluster, rewriters.build()
    monkeypatch.setattr(rewriters, "build", lambda: build or of_here)
    with pytest.raises(RequestError, match=said):
        releasing.privatize(table(spark, here, first), **HOW).write_parquet(str(here / "out"))
    assert charged()[1] == ["aborted"] and [file.name for file in here.iterdir()] == ["in"]
    urls = [spark.sparkContext.uiWebUrl + page for page in ("/SQL/", "/stages/", "/api/v1/applications/")]
    urls += [f"{urls[2]}{spark.sparkContext.applicationId}/{page}" for page in ("sql?details=true", "stages", "jobs")]
    shown = b"".join(urllib.request.urlopen(url).read() for url in urls)
    logs = b"".join(file.read_bytes() for file in root.rglob("*") if file.name in ("stderr", "stdout", "daemons.log"))
    assert b"MapInArrow" in shown and b"WorkerError" in logs
    assert not any(word in shown + logs for word in (b"zorblax", b"South Wales"))
