"""Tables of Spark on a local cluster: a real master, two workers, and executors that are killed."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_rewriter import KILLS, charged, killing

from flows.prefect_server import free_port
from lexveil.distributed import rewriter as rewriters
from lexveil.errors import RequestError

pyspark = pytest.importorskip("pyspark")
releasing = pytest.importorskip("lexveil.spark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("java"), reason="Spark needs Java"),
]

HOW: dict[str, Any] = {"column": "body", "subjects": "who", "document_budget": 60.0, "model": "en"}
SCHEMA = "id bigint, body string, who string, more map<string,array<struct<a:bigint,b:binary>>>"
ROWS = [
    (n, f"The zorblax said in New South Wales {n}", "Ben" if n % 5 else "ann", {"k": [(n, b"\0")]})
    for n in range(60)
]
SETTINGS = {
    "driver.host": "127.0.0.1",
    "executor.memory": "512m",
    "sql.shuffle.partitions": "3",
    "ui.port": "0",
}
# tasks are tried twice
SETTINGS |= {"task.maxFailures": "9", "speculation": "true", "speculation.quantile": "0.1"}
SETTINGS |= {
    "speculation.multiplier": "1.1",
    "speculation.minTaskRuntime": "0ms",
    "speculation.interval": "50ms",
}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A session of a master and two workers on loopback; and the folder with what they write."""
    root, home = tmp_path_factory.mktemp("spark"), str(Path(pyspark.__file__).parent)
    own = {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "SPARK_WORKER_DIR": str(root),
        "SPARK_HOME": home,
    }
    own["SPARK_SCALA_VERSION"] = "2.13"  # as Spark's own scripts say
    port = str(free_port())
    url, log = f"spark://127.0.0.1:{port}", (root / "daemons.log").open("wb")

    def start(kind: str, *rest: str) -> subprocess.Popen[bytes]:
        command = [
            "java",
            "-Xmx256m",
            "-cp",
            f"{home}/jars/*",
            f"org.apache.spark.deploy.{kind}",
            *rest,
        ]
        command += ["--host", "127.0.0.1", "--webui-port", "0"]
        return subprocess.Popen(command, env=os.environ | own, cwd=root, stdout=log, stderr=log)

    daemons = [start("master.Master", "--port", port)]
    try:
        while (
            "elected leader" not in (root / "daemons.log").read_text() and daemons[0].poll() is None
        ):
            time.sleep(0.1)
        daemons += [start("worker.Worker", url, "--cores", "1") for _ in range(2)]
        builder = pyspark.sql.SparkSession.builder.master(url)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYSPARK_PYTHON", sys.executable)
            patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
            session = builder.config(
                map={f"spark.{key}": value for key, value in SETTINGS.items()}
            ).getOrCreate()
        yield session, root
        session.stop()
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.wait()


def table(spark: Any, **first: Any) -> Any:
    """Six parts of some rows, read slowly; ``first`` changes the first row."""

    def slowly(batches: Any) -> Any:
        for batch in batches:
            time.sleep(0.5)
            yield batch

    changed = tuple(
        first.get(name, value)
        for name, value in zip(("id", "body", "who", "more"), ROWS[0], strict=True)
    )
    return (
        spark.createDataFrame([changed, *ROWS[1:]], SCHEMA)
        .repartition(6)
        .mapInArrow(slowly, SCHEMA)
    )


@pytest.mark.parametrize("kill", [("rewrite", 1), *KILLS])
def test_each_row_comes_out_once_and_is_charged_once_whoever_is_killed(
    cluster: Any, outside: Path, kill: tuple[str, int]
) -> None:
    """While rows are counted, while they are rewritten, or between. Then others are added to
    them."""
    private, out, before = (
        releasing.privatize(table(cluster[0]), **HOW),
        str(outside / "out"),
        {row[0]: row for row in ROWS},
    )
    with killing(releasing._SparkJob, kill, "CoarseGrainedExecutorBackend"):
        done = private.write_parquet(out, partition_by=["who"])
    after = done.frame.select("id", "body", "who", "more").collect()
    assert Counter(row.id for row in after) == dict.fromkeys(before, 1)
    assert all(
        (row.id, before[row.id][1], *row[2:]) == before[row.id] != tuple(row) for row in after
    )
    spent, states = charged()
    assert states == ["committed"] and spent["Ben"] + spent["ann"] == pytest.approx(
        done.record.spent.mean * 60
    )
    assert (outside / f"out/_lexveil-{done.record.release.id}.record.json").exists() and len(
        [*outside.iterdir()]
    ) == 1
    if kill != ("rewrite", 1):  # once is enough for what follows
        return
    for of_whom in (done.record.release.id, "others"):  # as a driver leaves one that is killed
        (outside / f".lexveil-{of_whom}").mkdir()
    assert private.write_parquet(out, append=True, partition_by=["who"]).frame.count() == 120
    assert sorted(path.name for path in outside.iterdir()) == [".lexveil-others", "out"]
    assert charged()[1] == ["committed"] * 2


@pytest.mark.parametrize(
    ("first", "build", "said"),
    [
        ({"who": None}, None, "a row has no subject"),
        ({"body": "zorblax \0"}, None, "a text of `body` holds a NUL"),
        ({}, "Lexveil 9", r"a worker on .* has Lexveil 0.*, and the driver Lexveil 9"),
    ],
)
def test_who_is_refused_spends_nothing_and_spark_shows_no_text(
    cluster: Any,
    outside: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: Any,
    build: str | None,
    said: str,
) -> None:
    """Neither the logs of Spark's processes nor its pages show a text."""
    (spark, root), of_here = cluster, rewriters.build()
    monkeypatch.setattr(rewriters, "build", lambda: build or of_here)
    with pytest.raises(RequestError, match=said):
        releasing.privatize(table(spark, **first), **HOW).write_parquet(str(outside / "out"))
    assert charged()[1] == ["aborted"] and not [*outside.iterdir()]
    of_application = f"/api/v1/applications/{spark.sparkContext.applicationId}"
    pages = ["/SQL/", "/stages/", f"{of_application}/sql?details=true", f"{of_application}/stages"]
    shown = b"".join(
        urllib.request.urlopen(spark.sparkContext.uiWebUrl + page).read() for page in pages
    )
    logs = b"".join(
        file.read_bytes()
        for file in root.rglob("*")
        if file.name in ("stderr", "stdout", "daemons.log")
    )
    assert b"MapInArrow" in shown and b"WorkerError" in logs
    assert not any(word in shown + logs for word in (b"zorblax", b"South Wales"))
