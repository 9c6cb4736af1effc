"""Tables of Spark on a local cluster: a real master, two workers, and executors that are killed."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_rewriter import KILLS, charged, killing

from flows.prefect_server import free_port
from lexveil import Model
from lexveil.base.errors import RequestError
from lexveil.release.distributed import parts
from lexveil.release.distributed import rewriter as rewriters
from tests.same_noise import (
    WITHOUT_KEPT_TOKENS,
    SameAnswers,
    published,
    reach_workers,
    sources,
)

pyspark = pytest.importorskip("pyspark")
releasing = pytest.importorskip("lexveil.spark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("java"), reason="Spark needs Java"),
]

HOW = {"column": "body", "subjects": "who", "document_budget": 60.0, "model": "en"}
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
def cluster(tmp_path_factory):
    """A session of a master and two workers on loopback; and the folder with what they write."""
    root = tmp_path_factory.mktemp("spark")
    home = str(Path(pyspark.__file__).parent)
    own = {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "SPARK_WORKER_DIR": str(root),
        "SPARK_HOME": home,
    }
    own["SPARK_SCALA_VERSION"] = "2.13"  # as Spark's own scripts say
    port = str(free_port())
    url = f"spark://127.0.0.1:{port}"
    log = (root / "daemons.log").open("wb")

    def start(kind, *rest):
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


def table(spark, **first):
    """Six parts of some rows, read slowly; ``first`` changes the first row."""

    def slowly(batches):
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
def test_each_row_comes_out_once_and_is_charged_once_whoever_is_killed(cluster, outside, kill):
    """While rows are counted, while they are rewritten, or between. Then others are added to
    them."""
    private = releasing.privatize(table(cluster[0]), **HOW)
    out = str(outside / "out")
    before = {row[0]: row for row in ROWS}
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
        ({"body": "zorblax \0"}, None, "a text of `body` has a NUL"),
        ({}, "Lexveil 9", r"a worker on .* has Lexveil 0.*, but the driver has Lexveil 9"),
    ],
)
def test_who_is_refused_spends_nothing_and_spark_shows_no_text(
    cluster,
    outside,
    monkeypatch,
    first,
    build,
    said,
):
    """Neither the logs of Spark's processes nor its pages show a text."""
    spark, root = cluster
    of_here = rewriters.build()
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


PUBLIC = "id bigint, body string, half string"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # of a job, in names of its files
LAYOUTS = {
    "one part": {},
    "parts by rows": {"rows": 30},
    "parts by bytes": {"bytes": 500},
    "folders": {"rows": 30, "partition_by": ["half"]},
}


def cuts(source):
    """The first id and the number of rows of each part in which Spark reads a source."""

    def counted(batches):
        ids = [number for batch in batches for number in batch.column(0).to_pylist()]
        yield pa.record_batch({"first": ids[:1], "n": [len(ids)][: len(ids)]})

    found = source.select("id").mapInArrow(counted, "first bigint, n bigint").collect()
    return [tuple(row) for row in found]


def read_by_bytes(spark, texts, folder, long_first):
    """Rows of two files, which Spark cuts by bytes, reading the larger file first."""
    folder.mkdir()
    for number in (0, 1):
        # Only one of the two is longer in one of the two sources, by spaces that no token holds.
        space = " " * 40 if long_first == (number == 0) else " "
        rows = [
            {"id": n, "body": texts[n % len(texts)].replace(" ", space), "half": f"h{n % 2}"}
            for n in range(80 * number, 80 * (number + 1))
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{number}.json").write_text(lines, encoding="utf-8")
    return spark.read.schema(PUBLIC).json(str(folder))


def shown_of(content):
    """All that a published file shows. Of Parquet all but the order in which a footer lists
    encodings, which is that of addresses in a Java process; so of a checksum its size."""
    if content[:3] == b"crc":
        return len(content)
    if content[:4] != b"PAR1":
        return content
    file = pq.ParquetFile(io.BytesIO(content))
    groups = [file.metadata.row_group(n).to_dict() for n in range(file.num_row_groups)]
    for group in groups:
        for column in group["columns"]:
            column["encodings"] = sorted(column["encodings"])
    return len(content), file.metadata.metadata, groups, file.read().to_pylist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_do_not_show_how_long_source_words_are(
    cluster,
    outside,
    tmp_path,
    monkeypatch,
    layout,
):
    """Two sources of the same disclosed structure, which Spark cuts and orders differently, and
    workers that draw the same for both: the published files show the same."""
    spark = cluster[0]
    how = LAYOUTS[layout]
    made = list[dict[str, Any]]()
    read = list[Any]()
    both = sources(Model.load(name="en"))
    same = SameAnswers(monkeypatch)
    reach_workers(monkeypatch)
    monkeypatch.setattr(parts, "PART_ROWS", how.get("rows", 10**9))
    monkeypatch.setattr(parts, "PART_BYTES", how.get("bytes", 10**9))
    for key, value in (("maxPartitionBytes", "3000"), ("openCostInBytes", "0")):
        spark.conf.set(f"spark.sql.files.{key}", value)
    for side, texts in enumerate(both):
        monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / f"home {side}"))
        same.restart()
        source = read_by_bytes(spark, texts, tmp_path / f"source {side}", side == 0)
        read.append(cuts(source))
        private = releasing.privatize(
            source,
            column="body",
            **WITHOUT_KEPT_TOKENS,
        )
        private.write_parquet(str(outside / f"out{side}"), partition_by=how.get("partition_by", ()))
        files = published(outside / f"out{side}")
        files["names"] = UUID.sub("", files["names"].decode()).encode()
        made.append({UUID.sub("", name): shown_of(content) for name, content in files.items()})
    assert read[0] != read[1], "Spark cut both sources alike, so that nothing is tested"
    assert made[0].keys() == made[1].keys()
    assert not [name for name in made[0] if made[0][name] != made[1][name]]
    n_parts = sum(Path(name).name.startswith("part-") for name in made[0])
    assert n_parts == 1 if layout == "one part" else n_parts > 2
