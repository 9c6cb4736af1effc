r"""Parts of a stage by processes of this machine, by Dask and by Ray: each has two workers, on two
nodes of loopback.

    uv run python -m benchmarks.scale --corpus FOLDER [--work tokenize rewrite] \
        [--engines processes dask ray]

A node has one processor. Each engine maps the same items as the stages do: shards of the sample to
tokenize, or batches of texts to rewrite by the model that ships. The start ends when both workers
have answered; the first map also imports the modules that it needs. Memory is summed over all
processes, including this one, with shared pages counted once (PSS). In one map, a worker kills
itself at one item; in another map, a node is killed with all its processes after the first result.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from benchmarks.corpus import corpus_texts
from benchmarks.table import markdown
from lexveil.base.errors import LexveilError
from lexveil.io.artifacts.model import Model
from lexveil.io.config import MachineParams
from lexveil.io.execution.pool import process_map
from lexveil.io.formats.arrow_tables import ArrowRows
from lexveil.io.request import Request
from lexveil.lab.collocations.sampling import DocumentShard, tokenize_shard
from lexveil.release.engine.batch import Batch
from lexveil.release.preconditions import check

ROOT = Path(__file__).resolve().parents[1]
# No other user may use the ports of these nodes; Ray reads the token at import, also in this
# process.
OWN = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}
OWN |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # a driver on loopback
# `ray start` with a node on loopback: by default Ray replaces 127.0.0.1 by the machine's address
# and listens on all interfaces.
START = """
from ray._private import services
services.get_node_ip_address = lambda address=None: "127.0.0.1"
from ray.scripts.scripts import main
main()
"""
os.environ.update(OWN)
COLUMNS = {
    "work": "work",
    "engine": "engine",
    "start": "start s",
    "start_cpu": "start CPU s",
    "idle": "idle MB",
    "first": "first map s",
    "wall": "map s",
    "cpu": "CPU s",
    "peak": "peak MB",
    "worker": "worker killed",
    "node": "node killed",
}
Map = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]


def everything() -> list[psutil.Process]:
    """Return all processes: this one and those that it started."""
    return [psutil.Process(), *psutil.Process().children(recursive=True)]


def total(read: Callable[[psutil.Process], float]) -> float:
    """Return a sum over ``everything``, without processes that end during the call."""
    amount = 0.0
    for process in everything():
        try:
            amount += read(process)
        except psutil.Error:
            continue
    return amount


def megabytes() -> float:
    """Return the memory of all processes, in megabytes."""
    return total(lambda process: process.memory_full_info().pss / 1e6)


def cpu_seconds() -> float:
    """Return the CPU seconds of all running processes, and of those children for whose end they
    have waited.
    """
    return total(lambda process: sum(process.cpu_times()[:4]))


@dataclass
class DieOnce:
    """Function that kills its own process at the third item, the first time only."""

    function: Callable[[Any], Any]
    mark: Path

    def __call__(self, item: tuple[int, Any]) -> Any:
        """Process one item, or kill the process."""
        if item[0] == 2 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.function(item[1])


def begin(*command: str) -> subprocess.Popen[bytes]:
    """Start a server of an engine."""
    environment = os.environ | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, *command],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all processes that it started."""
    for part in psutil.Process(process.pid).children(recursive=True):
        part.kill()
    process.kill()
    process.wait()


@contextmanager
def processes(nodes: list[subprocess.Popen[bytes]]) -> Iterator[Map]:
    """Yield the map over two processes; this engine has no nodes."""
    del nodes
    yield partial(process_map, workers=2)


@contextmanager
def dask(nodes: list[subprocess.Popen[bytes]]) -> Iterator[Map]:
    """Yield the map of Dask: a scheduler and two workers of one thread, without dashboards."""
    from lexveil.io.execution.dask_cluster import cluster_map

    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    nodes.append(
        begin(
            "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"
        )
    )
    wait_for(f"127.0.0.1:{port}")
    for _ in range(2):
        nodes.append(
            begin(
                "-m",
                "dask",
                "worker",
                address,
                "--nthreads",
                "1",
                "--host",
                "127.0.0.1",
                "--no-dashboard",
            )
        )
    yield partial(cluster_map, machine=MachineParams(dask_scheduler=address))


@contextmanager
def ray(nodes: list[subprocess.Popen[bytes]]) -> Iterator[Map]:
    """Yield the map of Ray: a head and another node."""
    from benchmarks.ray_map import cluster_map

    with ray_nodes(nodes) as address:
        yield partial(cluster_map, address=address)


@contextmanager
def ray_nodes(nodes: list[subprocess.Popen[bytes]], n: int = 2) -> Iterator[str]:
    """Start nodes of Ray without dashboards; yield the address of the first."""
    from ray import shutdown

    port = free_port()
    address = f"127.0.0.1:{port}"
    common = [
        "--node-ip-address",
        "127.0.0.1",
        "--num-cpus",
        "1",
        "--object-store-memory",
        "500000000",
        "--block",
    ]
    head = ["--head", "--port", str(port), "--include-dashboard", "false"]
    # Not Ray's own folder: these nodes are killed, and any later ray.init() would wait for them in
    # that folder.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        common += ["--temp-dir", folder]
        nodes.append(begin("-c", START, "start", *head, *common, *ports()))
        wait_for(address)
        for _ in range(n - 1):
            nodes.append(begin("-c", START, "start", "--address", address, *common, *ports()))
        yield address
        shutdown()


def ports() -> list[str]:
    """Return port options for the agents of a node. If the agents choose ports themselves, a node
    waits 15 seconds for them, which is too short on a busy machine.
    """
    agents = (
        "dashboard-agent-grpc",
        "dashboard-agent-listen",
        "runtime-env-agent",
        "metrics-export",
    )
    return [f"--{agent}-port={free_port()}" for agent in agents]


def free_port() -> int:
    """Return a free port of loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_for(address: str) -> None:
    """Wait until a server listens at an address."""
    host, port = address.split(":")
    while True:
        try:
            socket.create_connection((host, int(port))).close()
            return
        except OSError:
            time.sleep(0.05)


def tokenizing(texts: list[str], folder: Path) -> tuple[Callable[[Any], Any], list[Any]]:
    """Return the function and the items of the stage sample_corpus: shards of documents."""
    rows = pa.record_batch(
        [pa.array(map(str, range(len(texts)))), pa.array(texts)], names=["doc_id", "text"]
    )
    size = max(1, len(texts) // ITEMS)
    items = enumerate(range(0, len(texts), size))
    return tokenize_shard, [
        DocumentShard(number, folder, rows.slice(start, size), "en") for number, start in items
    ]


def rewriting(texts: list[str], folder: Path) -> tuple[Callable[[Any], Any], list[Any]]:
    """Return the function and the items of an experiment: batches of documents, and the model,
    which each worker gets once.
    """
    del folder
    checked = check(
        Request(mechanism="madlib", strategy="S3", document_budget=1000.0, seed=1),
        Model.load(None, "en"),
    )
    column = pa.array(texts, pa.large_string())
    size = max(1, len(texts) // ITEMS)
    keys = [(str(number),) for number in range(len(texts))]
    cuts = (slice(start, start + size) for start in range(0, len(texts), size))
    batches = [Batch(ArrowRows([column[cut]]), keys[cut], cut.start) for cut in cuts]
    return partial(checked.engine.worker().rewrite, budget=checked.budget), batches


def sampled(peak: list[float], stop: threading.Event) -> None:
    """Record the peak memory until ``stop`` is set."""
    while not stop.wait(0.2):
        peak.append(megabytes())


def measure(engine: str, work: str, texts: list[str]) -> dict[str, Any]:
    """Measure one engine; return its row of the table."""
    nodes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        function, items = WORK[work](texts, folder)
        row: dict[str, Any] = {"work": work, "engine": engine}
        own = megabytes()
        cpu = cpu_seconds()
        started = time.perf_counter()
        try:
            with ENGINES[engine](nodes) as mapped:
                list(mapped(abs, range(4)))
                row |= {"start": time.perf_counter() - started, "start_cpu": cpu_seconds() - cpu}
                row["idle"] = megabytes() - own
                for name in ("first", "wall"):
                    stop = threading.Event()
                    peak = [0.0]
                    cpu = cpu_seconds()
                    started = time.perf_counter()
                    watcher = threading.Thread(target=sampled, args=(peak, stop))
                    watcher.start()
                    list(mapped(function, items))
                    row |= {name: time.perf_counter() - started, "cpu": cpu_seconds() - cpu}
                    stop.set()
                    watcher.join()
                    row["peak"] = max(peak) - own
                row["worker"] = outcome(
                    lambda: mapped(DieOnce(function, folder / "mark"), list(enumerate(items)))
                )
                if nodes:
                    row["node"] = outcome(lambda: mapped(function, items), lambda: end(nodes.pop()))
        finally:
            for node in nodes[::-1]:
                end(node)
    return row


def outcome(
    begun: Callable[[], Iterator[Any]], after_first: Callable[[], None] = lambda: None
) -> str:
    """Return the number of results and the time of a map, or its error."""
    started = time.perf_counter()
    n = 0
    try:
        for n, _ in enumerate(begun(), 1):
            if n == 1:
                after_first()
    except LexveilError as error:
        return f"{type(error).__name__} after {n}, {time.perf_counter() - started:.1f} s"
    return f"{n} results, {time.perf_counter() - started:.1f} s"


def main() -> int:
    """Measure the engines and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True, help="a folder of *.json.gz")
    parser.add_argument("--documents", type=int, default=4000, metavar="N", help="default: 4,000")
    parser.add_argument("--work", nargs="+", choices=WORK, default=[*WORK])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=[*ENGINES])
    options = parser.parse_args()
    texts = list(islice(corpus_texts(options.corpus), options.documents))
    rows = []
    for work, engine in product(options.work, options.engines):
        rows.append(measure(engine, work, texts))
        print(rows[-1], file=sys.stderr)
    print(f"{len(texts):,} documents, {sum(map(len, texts)) / 1e6:.1f} MB, {ITEMS} items")
    print(markdown(COLUMNS, rows))
    return 0


ITEMS = 16
WORK = {"tokenize": tokenizing, "rewrite": rewriting}
ENGINES = {"processes": processes, "dask": dask, "ray": ray}

if __name__ == "__main__":
    sys.exit(main())
