"""The same bytes from one process, two processes and a Dask cluster of three workers, of every stage that has parts."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from lexveil import paths
from lexveil.accounting.budgets import Policy
from lexveil.artifacts.collocation_tables import load_collocations
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.mechanisms import prepare
from lexveil.collocations import counting, sampling
from lexveil.collocations.counting import count
from lexveil.collocations.sampling import tokenize
from lexveil.collocations.segmenting import segment_file
from lexveil.config import MachineParams, load_params
from lexveil.errors import RequestError
from lexveil.privatization.adapters import stage as stage_adapter
from lexveil.privatization.engine.batch import Batch
from lexveil.privatization.engine.worker import BatchWorker, Components
from lexveil.privatization.settings import Settings
from lexveil.runtime import checkpoints
from lexveil.runtime.pool import ordered_map
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
cluster = pytest.importorskip("lexveil.runtime.dask_cluster")
CLUSTER_MAP = cluster.cluster_map


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set({"distributed.comm.timeouts.connect": "2s", "distributed.deploy.lost-worker-timeout": "1h"}),
    ):
        patch.setenv("PYTHONPATH", str(ROOT))
        with distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0") as made:
            yield made


class Used:
    """The map of a cluster, which counts what it gives back and can kill a worker when it has given the first."""

    def __init__(self, workers: Any) -> None:
        self.workers = workers
        self.counts: list[int] = []
        self.kill = False

    def __call__(self, function: Any, items: Any, machine: MachineParams) -> Iterator[Any]:
        self.counts.append(0)
        results = CLUSTER_MAP(function, items, machine)
        for result in results:
            if self.kill and not self.counts[-1]:
                worker = next(iter(self.workers.scheduler.workers.values()))
                os.kill(self.workers.workers[worker.name].pid, signal.SIGKILL)
            self.counts[-1] += 1
            yield result


@pytest.fixture
def used(workers: Any, monkeypatch: pytest.MonkeyPatch) -> Used:
    """The map; the worker that the test before has killed need not be back."""
    while len(workers.scheduler.workers) < 2:
        time.sleep(0.05)
    used = Used(workers)
    monkeypatch.setattr(cluster, "cluster_map", used)
    return used


def machines(folder: Path, workers: Any) -> dict[str, MachineParams]:
    one = MachineParams(memory_limit="900MB", threads=1, workers=1, temp_directory=str(folder / "work"))
    there = one.model_copy(update={"dask_scheduler": workers.scheduler_address})
    return {"one": one, "two": one.model_copy(update={"workers": 2}), "dask": there}


def everywhere(folder: Path, workers: Any, make: Callable[[Path, MachineParams], object]) -> dict[str, str]:
    """Make something by each machine, in a folder of its own; return the hashes of its files, which are the same."""
    results = []
    for who, machine in machines(folder, workers).items():
        told = make(folder / who, machine)
        results.append((told, of_bytes(folder / who)))
    assert results[0] == results[1] == results[2]
    return results[0][1]


def of_bytes(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and "work" not in file.parts)
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_tokens(built: Path, tmp_path: Path, used: Used, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "SMALL", 1)
    monkeypatch.setattr(sampling, "BATCH", 100)

    def make(out: Path, machine: MachineParams) -> object:
        return tokenize(paths.SAMPLE.resolve(), out / "t.parquet", out / "w.parquet", machine)

    assert len(everywhere(tmp_path, used.workers, make)) == 2
    assert used.counts == [4]


def test_counts(built: Path, tmp_path: Path, used: Used, monkeypatch: pytest.MonkeyPatch) -> None:
    """In shards so small that there are several, which needs row groups that small. A worker is killed."""
    used.kill = True
    monkeypatch.setattr(counting, "SHARD_TOKENS", 10_000)
    tokens = tmp_path / "tokens.parquet"
    pq.write_table(pq.read_table(paths.TOKENS), tokens, row_group_size=500)
    n_shards = len(counting.shards_of(tokens, tmp_path, 10_000))
    made = everywhere(tmp_path, used.workers, lambda out, machine: count(tokens, paths.WORDS, out, 2, machine))
    assert len(made) == 3 and n_shards > 5 and used.counts == [n_shards]


def test_counts_that_are_nowhere_to_be_seen(
    built: Path, tmp_path: Path, used: Used, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where machine.temp_directory is each machine's own."""
    monkeypatch.setattr(checkpoints, "SHOWN", 0.2)
    monkeypatch.setattr(counting, "SHARD_TOKENS", 10_000)
    pq.write_table(pq.read_table(paths.TOKENS), tmp_path / "tokens.parquet", row_group_size=500)
    monkeypatch.setattr(counting, "ordered_map", lambda function, items, machine: ({} for _ in items))
    with pytest.raises(RequestError, match=r"cannot be seen by this process .*machine\.temp_directory"):
        count(tmp_path / "tokens.parquet", paths.WORDS, tmp_path / "out", 2, machines(tmp_path, used.workers)["dask"])
    assert not (tmp_path / "out").exists()


def test_segments(built: Path, tmp_path: Path, used: Used) -> None:
    """A worker is killed."""
    used.kill = True
    tokens, known = tmp_path / "tokens.parquet", load_collocations()
    pq.write_table(pq.read_table(paths.TOKENS), tokens, row_group_size=500)

    def make(out: Path, machine: MachineParams) -> object:
        return segment_file(tokens, paths.WORDS, out / "mst.txt", "mst", known, machine)

    made = everywhere(tmp_path, used.workers, make)
    assert made == {"mst.txt": hashlib.sha256(paths.segmented("mst").read_bytes()).hexdigest()}
    assert used.counts == [6]


def configured(root: Path, machine: MachineParams) -> None:
    params = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
    names = ("memory_limit", "threads", "workers", "temp_directory", "dask_scheduler")
    params["machine"] = {name: getattr(machine, name) for name in names}
    (root / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def test_private_documents(project: Path, tmp_path: Path, used: Used, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise too: it belongs to a text, wherever it is rewritten, and again after a worker was killed."""
    used.kill = True
    monkeypatch.setattr(stage_adapter, "GROUP", 100)
    monkeypatch.setattr(stage_adapter, "SMALL", 1)

    def make(out: Path, machine: MachineParams) -> object:
        configured(project, machine)
        return stage_adapter.privatize_documents("madlib", "S3", 20.0, out)

    assert len(everywhere(tmp_path, used.workers, make)) == 4
    assert used.counts == [9]


def test_a_release_has_noise_of_its_own_in_every_batch(project: Path, tmp_path: Path, used: Used) -> None:
    """Two texts are the same by chance once in 10^35: twelve draws of some 2,000 words."""
    policy = Policy("perturb", "keep", "sample")
    made = prepare("madlib", "gst", load_embedding("gst"), policy, load_params().mechanisms)
    components = Components(load_lexicon("gst", Path(), "en"), made.vocabulary, made.mechanism)
    worker = BatchWorker(Settings("madlib", "S3", 1.0, None, None, policy, False), components)
    text = "the government said that fire services in new south wales were there " + "zorblax " * 12
    batches = [Batch([[text]], [("same",)], part_epsilon=np.ones(1))] * 32
    parts = ordered_map(worker.rewrite, batches, machines(tmp_path, used.workers)["dask"])
    assert len({part.texts[0][0] for part in parts}) == 32
    assert used.counts == [32]
