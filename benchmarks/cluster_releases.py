r"""One release of the same Parquet files by processes of this machine, by Spark and by Ray, in
turn.

    uv run python -m benchmarks.cluster_releases --corpus FOLDER \
        [--megabytes 60 240] [--mechanism tem]

The texts of the corpus are repeated up to the given megabytes; a subject has five rows. Every run
is a process of its own with its engine: *processes* is `lexveil privatize`, which also writes a
token log; Spark has executors of one core, Ray nodes of one core. CPU seconds are summed over all
processes of the release, from the started engine to the published table; *start* is the time
before. Memory is the peak of each process; a page that n processes share counts 1/n in each. A
small release runs first; it compiles kernels and caches the levels of protection.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, product
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corpus import corpus_texts
from benchmarks.end_to_end import adopt_orphans, wait_for_orphans
from benchmarks.scale import ROOT, cpu_seconds, end, everything, ray_nodes
from benchmarks.table import markdown

# characters in a Parquet file; rows in a row group
FILE = 8e6
GROUP = 2_000
ROWS_OF_A_SUBJECT = 5
HOW: dict[str, Any] = {
    "mechanism": "diffractor_geometric",
    "strategy": "S1",
    "document_budget": 60.0,
    "model": "en",
}
COLUMNS = {
    "megabytes": "MB",
    "rows": "rows",
    "subjects": "subjects",
    "engine": "engine",
    "workers": "workers",
    "cpu": "CPU s",
    "ratio": "ratio",
    "per_cpu": "MB/CPU s",
    "wall": "wall s",
    "load": "load",
    "driver": "driver CPU s",
    "start": "start CPU s",
    "worker_mb": "worker MB",
    "driver_mb": "driver MB",
    "java_mb": "JVMs MB",
}
# Function of source folder and output folder that returns the number of published rows.
Release = Callable[[Path, Path], int]


def write_tables(folder: Path, corpus: Path, megabytes: float) -> tuple[int, int]:
    """Write files of rows with texts, subjects and numbers; return the number of rows and of
    subjects.
    """
    folder.mkdir()
    texts = list(corpus_texts(corpus))
    size = sum(map(len, texts))
    n = len(texts)
    n_rows = round(n * megabytes * 1e6 / size)
    n_subjects = max(1, n_rows // ROWS_OF_A_SUBJECT)
    start = 0
    for number in count():
        stop = start
        characters = 0
        while stop < n_rows and characters < FILE:
            characters = characters + len(texts[stop % n])
            stop = stop + 1
        if start == stop:
            return n_rows, n_subjects
        rows = range(start, stop)
        columns = {
            "id": pa.array(rows),
            "who": [f"user-{row * 7919 % n_subjects:09d}" for row in rows],
            "body": [texts[row % n] for row in rows],
        }
        pq.write_table(
            pa.table(columns), folder / f"part-{number:05d}.parquet", row_group_size=GROUP
        )
        start = stop
    raise AssertionError


@contextmanager
def processes(workers: int) -> Iterator[Release]:
    """Yield a release by `lexveil privatize`."""
    adopt_orphans()
    options = [
        part for key, value in HOW.items() for part in (f"--{key.replace('_', '-')}", str(value))
    ]
    columns = ["--text-column", "body", "--subject-column", "who", "--workers", str(workers)]

    def release(source: Path, out: Path) -> int:
        script = "import sys; from lexveil.faces.cli.main import main; sys.exit(main())"
        command = [
            sys.executable,
            "-c",
            script,
            "privatize",
            str(source),
            "-o",
            str(out),
            *columns,
            *options,
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        wait_for_orphans()
        return sum(
            pq.ParquetFile(file).metadata.num_rows for file in out.glob("part-?????.parquet")
        )

    yield release


@contextmanager
def spark(workers: int) -> Iterator[Release]:
    """Yield a release by Spark, with executors of one core and 512 MB each."""
    import pyspark

    import lexveil.spark

    os.environ |= {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
    }
    os.environ |= {"SPARK_HOME": str(Path(pyspark.__file__).parent)}
    settings = {"driver.host": "127.0.0.1", "executor.memory": "512m", "ui.enabled": "false"}
    builder = pyspark.sql.SparkSession.builder.master(f"local-cluster[{workers},1,512]")
    session = builder.config(
        map={f"spark.{key}": value for key, value in settings.items()}
    ).getOrCreate()
    session.range(workers * 8).mapInArrow(lambda batches: batches, "id bigint").count()

    def release(source: Path, out: Path) -> int:
        frame = session.read.parquet(str(source))
        private = lexveil.spark.privatize(frame, column="body", subjects="who", **HOW)
        return private.write_parquet(str(out)).record.counts.n_rows

    yield release
    session.stop()


@contextmanager
def ray(workers: int) -> Iterator[Release]:
    """Yield a release by Ray, with nodes of one processor each."""
    from ray import data

    import lexveil.ray
    from benchmarks.ray_map import cluster_map, connect

    nodes: list[subprocess.Popen[bytes]] = []
    try:
        with ray_nodes(nodes, workers) as address:
            connect(address)
            list(cluster_map(abs, range(workers * 2), address))
            data.DataContext.get_current().enable_progress_bars = False

            def release(source: Path, out: Path) -> int:
                private = lexveil.ray.privatize(
                    data.read_parquet(str(source)), column="body", subjects="who", **HOW
                )
                return private.write_parquet(out).record.counts.n_rows

            yield release
    finally:
        for node in nodes[::-1]:
            end(node)


ENGINES = {"processes": processes, "spark": spark, "ray": ray}


def role(process: psutil.Process) -> str | None:
    """Return the role of a process in a release: ``worker_mb``, ``driver_mb`` or ``java_mb``; None
    for any other process.
    """
    command = " ".join(process.cmdline())
    if process.pid == os.getpid():
        return "driver_mb"
    if "java" in process.name():
        return "java_mb"
    return (
        "worker_mb"
        if any(word in command for word in ("ray::", "pyspark.daemon", "privatize"))
        else None
    )


def watch(largest: dict[str, dict[int, float]], stop: threading.Event) -> None:
    """Record the peak memory of all processes until ``stop`` is set, and the CPU seconds that the
    recording takes.
    """
    while not stop.wait(1.0):
        largest["watch"] = {0: time.thread_time()}
        for process in everything():
            with suppress(psutil.Error):
                if (name := role(process)) is not None:
                    used = process.memory_full_info().pss / 1e6
                    of_role = largest.setdefault(name, {})
                    of_role[process.pid] = max(used, of_role.get(process.pid, 0.0))


def measure(engine: str, workers: int, source: Path, out: Path) -> dict[str, Any]:
    """Measure one release in this process."""
    largest = dict[str, dict[int, float]]()
    stop = threading.Event()
    threading.Thread(target=watch, args=(largest, stop), daemon=True).start()

    def without_watch(seconds: float) -> float:
        return seconds - sum(largest.get("watch", {}).values())

    with ENGINES[engine](workers) as release:
        began = time.perf_counter()
        cpu = without_watch(cpu_seconds())
        driver = without_watch(time.process_time())
        n_rows = release(source, out)
        row: dict[str, Any] = {
            "published": n_rows,
            "wall": time.perf_counter() - began,
            "start": cpu,
        }
        row |= {
            "cpu": without_watch(cpu_seconds()) - cpu,
            "driver": without_watch(time.process_time()) - driver,
        }
        row["load"] = os.getloadavg()[0]
        stop.set()
    if engine == "processes":
        del row["start"], row["driver"]
        largest.pop("driver_mb", None)
    row |= {
        name: max(of_role.values())
        for name, of_role in largest.items()
        if name not in ("java_mb", "watch")
    }
    if "java_mb" in largest:
        row["java_mb"] = sum(largest["java_mb"].values())
    return row


def run(engine: str, workers: int, source: Path, folder: Path) -> dict[str, Any]:
    """Measure one release in a process of its own, with a new ledger."""
    home = folder / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    shutil.rmtree(home / "ledger", ignore_errors=True)
    (home / "ledger-anchor.json").unlink(missing_ok=True)
    for path in folder.glob("out*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    given = [
        "--one",
        engine,
        "--workers",
        str(workers),
        "--source",
        str(source),
        "--out",
        str(folder / "out"),
    ]
    given += ["--mechanism", HOW["mechanism"], "--document-budget", str(HOW["document_budget"])]
    environment = os.environ | {"LEXVEIL_HOME": str(home), "PYTHONPATH": str(ROOT)}
    log = folder / f"{engine}.log"
    with log.open("wb") as errors:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.cluster_releases", *given],
            check=False,
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    if done.returncode:
        raise SystemExit(
            f"benchmarks.cluster_releases: {engine}: {log.read_text(errors='replace')[-3000:]}"
        )
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def main() -> int:
    """Measure the releases and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, help="a folder of *.json.gz")
    parser.add_argument(
        "--megabytes", type=float, nargs="+", default=[60.0, 240.0], help="default: 60 and 240"
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=[*ENGINES])
    parser.add_argument("--mechanism", default=HOW["mechanism"], help="default: %(default)s")
    parser.add_argument(
        "--document-budget", type=float, default=HOW["document_budget"], help="default: %(default)s"
    )
    for hidden in ("--one", "--source", "--out"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    HOW.update(mechanism=options.mechanism, document_budget=options.document_budget)
    if options.one:
        print(
            json.dumps(
                measure(options.one, options.workers[0], Path(options.source), Path(options.out))
            )
        )
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_tables(folder / "small", options.corpus, 1)
        for engine in options.engines:
            run(engine, 1, folder / "small", folder)
        for megabytes in options.megabytes:
            n_rows, n_subjects = write_tables(folder / "source", options.corpus, megabytes)
            base = dict[int, float]()
            for workers, engine in product(options.workers, options.engines):
                row = {
                    "megabytes": megabytes,
                    "rows": n_rows,
                    "subjects": n_subjects,
                    "engine": engine,
                }
                row |= {"workers": workers, **run(engine, workers, folder / "source", folder)}
                assert row["published"] == n_rows
                base.setdefault(workers, row["cpu"])
                row |= {"ratio": row["cpu"] / base[workers], "per_cpu": megabytes / row["cpu"]}
                rows.append(row)
                print(row, file=sys.stderr, flush=True)
            shutil.rmtree(folder / "source")
    print(markdown(COLUMNS, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
