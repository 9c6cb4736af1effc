"""The same bytes from one process, two processes and a Dask cluster of three workers, of every stage that has parts."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from lexveil import paths
from lexveil.accounting.budgets import Policy
from lexveil.artifacts.collocation_tables import load_collocations
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.evaluation_models import load_models
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.mechanisms import prepare
from lexveil.collocations import counting, sampling
from lexveil.collocations.counting import count
from lexveil.collocations.sampling import tokenize
from lexveil.config import MachineParams, load_params
from lexveil.errors import RequestError
from lexveil.privatization.adapters import stage as stage_adapter
from lexveil.privatization.engine.batch import Batch
from lexveil.privatization.engine.worker import BatchWorker, Components
from lexveil.privatization.settings import Settings
from lexveil.runtime import checkpoints
from lexveil.runtime.pool import ordered_map
from tasks import evaluate
from tasks.segment_corpus import segment_file
from tests.conftest import ROOT, run_stage

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
    there = one.model_copy(update={"executor": "dask", "dask_scheduler": workers.scheduler_address})
    return {"one": one, "two": one.model_copy(update={"workers": 2}), "dask": there}


def of_bytes(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and "work" not in file.parts)
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_tokens(built: Path, tmp_path: Path, used: Used, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "SMALL", 1)
    monkeypatch.setattr(sampling, "BATCH", 100)
    found = []
    for who, machine in machines(tmp_path, used.workers).items():
        if who == "two":  # as tests/collocations/test_sample_corpus.py does
            continue
        tokenize(paths.SAMPLE.resolve(), tmp_path / who / "t.parquet", tmp_path / who / "w.parquet", machine)
        found.append(of_bytes(tmp_path / who))
    assert len(found[0]) == 2 and found[0] == found[1]
    assert used.counts == [4]


def test_counts(built: Path, tmp_path: Path, used: Used, monkeypatch: pytest.MonkeyPatch) -> None:
    """In shards so small that there are several, which needs row groups that small. A worker is killed."""
    used.kill = True
    monkeypatch.setattr(counting, "SHARD_TOKENS", 10_000)
    pq.write_table(pq.read_table(paths.TOKENS), tmp_path / "tokens.parquet", row_group_size=500)
    assert len(counting.shards_of(tmp_path / "tokens.parquet", tmp_path, 10_000)) > 5
    found, totals = [], []
    for who, machine in machines(tmp_path, used.workers).items():
        totals.append(count(tmp_path / "tokens.parquet", paths.WORDS, tmp_path / who, 2, machine))
        found.append(of_bytes(tmp_path / who))
    assert totals[0] == totals[1] == totals[2]
    assert len(found[0]) == 3 and found[0] == found[1] == found[2]
    assert used.counts == [len(counting.shards_of(tmp_path / "tokens.parquet", tmp_path, 10_000))]


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
    pq.write_table(pq.read_table(paths.TOKENS), tmp_path / "tokens.parquet", row_group_size=500)
    known = load_collocations()
    found, totals = [], []
    for who, machine in machines(tmp_path, used.workers).items():
        out = tmp_path / who
        totals.append(segment_file(tmp_path / "tokens.parquet", paths.WORDS, out, "mst", known, machine))
        found.append(out.read_bytes())
    assert found[0] == found[1] == found[2] == paths.segmented("mst").read_bytes()
    assert totals[0] == totals[1] == totals[2]
    assert used.counts == [6]


def configured(root: Path, machine: MachineParams) -> None:
    params = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
    names = ("memory_limit", "threads", "workers", "temp_directory", "executor", "dask_scheduler")
    params["machine"] = {name: getattr(machine, name) for name in names}
    (root / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def test_private_documents(project: Path, tmp_path: Path, used: Used, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise too: it belongs to a text, wherever it is rewritten, and again after a worker was killed."""
    used.kill = True
    monkeypatch.setattr(stage_adapter, "GROUP", 100)
    monkeypatch.setattr(stage_adapter, "SMALL", 1)
    found = []
    for who, machine in machines(tmp_path, used.workers).items():
        configured(project, machine)
        stage_adapter.privatize_documents("madlib", "S3", 20.0, tmp_path / who)
        found.append(of_bytes(tmp_path / who))
    assert len(found[0]) == 4 and found[0] == found[1] == found[2]
    assert used.counts == [9]


def labelled(n: int, told: bool) -> pa.Table:
    """Two data sets with the label in the text, or not; one has an attribute, one is too small to tell members."""
    rows = []
    for name, size in (("letters", n), ("notes", 12)):
        for i in range(size):
            text = f"it was {('poor', 'fine')[i % 2] if told else 'there'} , number {i % 5}"
            split = ("train", "validation")[i % 3 == 0]
            rows.append(
                (name, f"{i:03}", split, str(i % 2), "ab"[i // 2 % 2] if name == "letters" else None, text, None)
            )
    names = ("dataset", "doc_id", "split", "label", "attribute", "text", "text_b")
    schema = pa.schema([(name, pa.string()) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)


@pytest.mark.nightly
def test_scores(project: Path, tmp_path: Path, used: Used, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learnt of each data set."""
    clean, private = labelled(80, True), labelled(80, False)
    file = paths.private("none", "none", 0.0) / "documents.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(clean, file)
    run_stage("train_attackers")
    run_stage("train_language_model")
    monkeypatch.setattr(evaluate, "LARGE", 1)
    params = load_params()
    models = load_models(params.evaluation)
    found = {}
    for who, machine in machines(tmp_path, used.workers).items():
        found[who] = evaluate.evaluate(clean, private, params.model_copy(update={"machine": machine}), models)
    assert found["one"] == found["two"] == found["dask"]
    assert found["one"]["letters"]["membership"]["left_out"] is None
    alone = params.model_copy(update={"machine": machines(tmp_path, used.workers)["one"]})
    assert found["one"] != evaluate.evaluate(clean, clean, alone, models)
    assert used.counts == [2]


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


def segmented(root: Path, folder: Path, machine: MachineParams) -> subprocess.CompletedProcess[str]:
    """The stage as the graph runs it: its functions then belong to the main module, which no worker has."""
    configured(root, machine)
    source = (ROOT / "tasks/segment_corpus.py").read_text(encoding="utf-8")
    assert "SMALL = 5_000_000" in source
    (folder / "segment_main.py").write_text(source.replace("SMALL = 5_000_000", "SMALL = 1"), encoding="utf-8")
    program = "import sys, runpy; from lexveil.runtime import dask_cluster; dask_cluster.ANSWER = 2.0; "
    program += "sys.argv = ['', 'gst']; "
    return subprocess.run(
        [sys.executable, "-c", program + f"runpy.run_path({str(folder / 'segment_main.py')!r}, run_name='__main__')"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_stage_run_as_the_main_module(project: Path, tmp_path: Path, workers: Any) -> None:
    """And what it wrote before, on one process, is what it writes."""
    before = paths.segmented("gst").read_bytes()
    paths.segmented("gst").unlink()
    done = segmented(project, tmp_path, machines(tmp_path, workers)["dask"])
    assert done.returncode == 0, done.stderr
    assert paths.segmented("gst").read_bytes() == before


def test_a_dead_scheduler_ends_a_stage_with_code_2(project: Path, tmp_path: Path, workers: Any) -> None:
    machine = machines(tmp_path, workers)["dask"].model_copy(update={"dask_scheduler": "tcp://127.0.0.1:9"})
    done = segmented(project, tmp_path, machine)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("RequestError: params.yaml: machine.dask_scheduler is tcp://127.0")


def test_machine_parameters_make_nothing_stale() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    params = [entry for one in stages.values() for entry in one.get("params", [])]
    named = {param for entry in params for param in entry.get("params.yaml", [])}
    assert named and not any(param.split(".")[0] == "machine" for param in named)
