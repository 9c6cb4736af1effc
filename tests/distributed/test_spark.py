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
from collections.abc import Iterator
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
released = pytest.importorskip("lexveil.spark")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("java"), reason="Spark needs Java")]

HOW: dict[str, Any] = {"column": "body", "subjects": "who", "document_budget": 60.0, "model": "toy"}
MORE = pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.int32()), ("b", pa.binary())])))
SPECULATES = ["quantile 0.1", "multiplier 1.1", "minTaskRuntime 0ms", "interval 50ms"]


@pytest.fixture(scope="session")
def work(packaged: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the cluster, whose workers have the model toy for themselves."""
    shutil.copytree(packaged.folder, (root := tmp_path_factory.mktemp("spark")) / "home/models/toy")
    return root


@pytest.fixture(scope="session")
def spark(work: Path) -> Iterator[Any]:
    """A session of a cluster on loopback: a master, and two workers with an executor each."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"spark://127.0.0.1:{probe.getsockname()[1]}"
    own = {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "LEXVEIL_HOME": str(work / "home"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    java = ["java", "-Xmx256m", "-cp", f"{Path(pyspark.__file__).parent}/jars/*"]
    commands = [["master.Master", "--port", url.rpartition(":")[2]], *[["worker.Worker", "--cores", "1", url]] * 2]
    with (work / "daemons.log").open("wb") as log, pytest.MonkeyPatch.context() as patch:
        daemons = [
            subprocess.Popen(
                [*java, f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", "--webui-port", "0", *rest],
                env={**os.environ, **own, "SPARK_WORKER_DIR": str(work)}, cwd=work, stdout=log, stderr=log,
            )
            for kind, *rest in commands
        ]  # fmt: skip
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = pyspark.sql.SparkSession.builder.master(url).config("spark.driver.host", "127.0.0.1")
        settings = [*(f"speculation.{how}" for how in SPECULATES), "speculation true", "executor.memory 512m"]
        for setting in [*settings, "sql.shuffle.partitions 3", "task.maxFailures 9", "ui.port 0"]:
            builder = builder.config("spark." + setting.split()[0], setting.split()[1])
        session = builder.getOrCreate()
    yield session
    session.stop()
    for daemon in daemons:
        daemon.kill()
        daemon.wait()


def table(spark: Any, folder: Path, **changed: Any) -> Any:
    """Six files of ten rows, read slowly; of the first row columns are changed."""
    (folder / "in").mkdir()
    for start in range(0, 60, 10):
        numbers = range(start, start + 10)
        columns = {"id": numbers, "body": [f"The zorblax said in New South Wales {n}" for n in numbers]}
        columns |= {"who": ["Ben" if n % 5 else "ann" for n in numbers], "more": [{"k": [{"a": n}]} for n in numbers]}
        rows = pa.table(columns).cast(
            pa.schema([("id", pa.int64()), ("body", "string"), ("who", "string"), ("more", MORE)])
        )
        for name, value in changed.items() if not start else ():
            number = rows.schema.get_field_index(name)
            rows = rows.set_column(
                number, name, pa.array([value, *rows[name].to_pylist()[1:]], rows.schema.types[number])
            )
        pq.write_table(rows, folder / f"in/{start}.parquet")

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(0.5)
            yield batch

    frame = spark.read.option("mergeSchema", False).parquet(str(folder / "in"))
    return frame.mapInArrow(slowly, frame.schema)


def kill_one(work: Path) -> None:
    """An executor of this cluster, at once."""
    children = psutil.Process().children(recursive=True)
    executors = [child for child in children if any("CoarseGrainedExecutorBackend" in word for word in child.cmdline())]
    random.choice(executors).kill()


STEPS = {"count": (released._SparkJob, 4.0), "spend": (LedgerCharge, 0.0), "rewrite": (released._SparkJob, 4.0)}
NIGHTLY = [pytest.param(step, seed, marks=pytest.mark.nightly) for step in STEPS for seed in range(20)]


@pytest.mark.parametrize(("step", "seed"), [("rewrite", 0), *NIGHTLY])
def test_each_row_comes_out_once_and_is_charged_once_whoever_is_killed(
    spark: Any, work: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, step: str, seed: int
) -> None:
    """An executor, while rows are counted, while they are rewritten, or between; tasks are tried twice anyway."""
    frame, out = table(spark, outside), outside / "out"
    room, longest = STEPS[step]
    called = getattr(room, step)

    def killing(*arguments: Any) -> Any:
        threading.Timer(random.Random(seed).random() * longest, kill_one, [work]).start()
        return called(*arguments)

    monkeypatch.setattr(room, step, killing)
    private = released.privatize(frame, **HOW)
    done = private.write_parquet(str(out), partition_by=["who"])
    before = {row.id: row.asDict() for row in frame.collect()}
    after = done.frame.select(frame.columns).collect()
    assert Counter(row.id for row in after) == dict.fromkeys(before, 1)
    assert all(row.body != before[row.id]["body"] for row in after)
    assert all({**row.asDict(), "body": 0} == {**before[row.id], "body": 0} for row in after)
    spent, states = charged()
    assert states == ["committed"] and spent["Ben"] == pytest.approx(4 * spent["ann"]) == done.record.spent.mean * 48
    record = json.loads((out / f"_lexveil-{done.record.release.id}.record.json").read_text())
    assert record == done.record.to_dict() and [file.name for file in outside.iterdir()] == ["in", "out"]
    assert private.write_parquet(str(out), append=True, partition_by=["who"]).frame.count() == 120
    assert charged()[1] == ["committed"] * 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"who": None}, "a row has no subject"),
        ({"body": "zorblax \0"}, "a text of `body` holds a NUL"),
        ({"build": "Lexveil 9"}, "a worker on .* has Lexveil 0.*, and the driver Lexveil 9"),
        ({"model_folder": "/nowhere"}, "model toy cannot be read on"),
    ],
)
def test_who_is_refused_has_spent_nothing_and_no_log_or_page_of_spark_shows_a_text(
    spark: Any, work: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], said: str
) -> None:
    columns = {name: value for name, value in changed.items() if name in ("who", "body")}
    if "build" in changed:
        monkeypatch.setattr(rewriters, "build", lambda: changed["build"])
    private = released.privatize(table(spark, outside, **columns), **HOW, model_folder=changed.get("model_folder"))
    with pytest.raises(RequestError, match=said):
        private.write_parquet(str(outside / "out"))
    assert charged()[1] == ["aborted"] and [file.name for file in outside.iterdir()] == ["in"]
    pages = [
        f"/api/v1/applications/{spark.sparkContext.applicationId}/{page}" for page in ("sql?details=true", "stages")
    ]
    shown = [
        urllib.request.urlopen(spark.sparkContext.uiWebUrl + page).read() for page in [*pages, "/stages/", "/SQL/"]
    ]
    logs = [file.read_bytes() for file in work.rglob("*") if file.name in ("stderr", "stdout", "daemons.log")]
    assert b"MapInArrow" in b"".join(shown) and b"WorkerError" in b"".join(logs)
    assert not any(b"zorblax" in text or b"South Wales" in text for text in [*shown, *logs])
