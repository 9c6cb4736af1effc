"""One process, two processes and a Dask cluster of three workers give the same bytes, for every
stage that has parts.
"""

import os
import signal
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from lexveil.base import paths
from lexveil.base.levels import BaseEpsilon
from lexveil.core.accounting.budgets import PerDocument, Policy
from lexveil.io.artifacts.collocation_tables import load_collocations
from lexveil.io.artifacts.embeddings import load_embedding
from lexveil.io.artifacts.lexicons import load_lexicon
from lexveil.io.artifacts.mechanisms import ModelSpace, prepare
from lexveil.io.artifacts.model_source import OwnRun
from lexveil.io.artifacts.project import Project
from lexveil.io.config import load_params
from lexveil.io.execution.pool import ordered_map
from lexveil.lab.collocations import counting, sampling
from lexveil.lab.collocations.counting import count
from lexveil.lab.collocations.sampling import tokenize
from lexveil.lab.collocations.segmenting import segment_file
from lexveil.release.adapters import stage as stage_adapter
from lexveil.release.engine.batch import Batch
from lexveil.release.engine.worker import BatchWorker, Components
from lexveil.release.settings import Settings
from tests.tasks.changing import configure

pytestmark = pytest.mark.slow

cluster = pytest.importorskip("lexveil.io.execution.dask_cluster")
CLUSTER_MAP = cluster.cluster_map


class Used:
    """The map of a cluster, which counts what it gives back and can kill a worker when it has given
    the first."""

    def __init__(self, workers):
        self.workers = workers
        self.counts = []
        self.kill = False

    def __call__(self, function, items, machine):
        self.counts.append(0)
        results = CLUSTER_MAP(function, items, machine)
        for result in results:
            if self.kill and not self.counts[-1]:
                worker = next(iter(self.workers.scheduler.workers.values()))
                os.kill(self.workers.workers[worker.name].pid, signal.SIGKILL)
            self.counts[-1] += 1
            yield result


@pytest.fixture
def used(workers, there, monkeypatch):
    """The map, of small data in many parts."""
    used = Used(workers)
    monkeypatch.setattr(cluster, "cluster_map", used)
    smaller = [
        (sampling, "SMALL_CORPUS", 1),
        (sampling, "DOCUMENTS_OF_A_BATCH", 100),
        (counting, "SHARD_TOKENS", 10_000),
    ]
    for module, name, value in [
        *smaller,
        (stage_adapter, "GROUP", 100),
        (stage_adapter, "SMALL_SET", 1),
    ]:
        monkeypatch.setattr(module, name, value)
    return used


def tokens(out, machine):
    return tokenize(paths.SAMPLE.resolve(), out / "tokens.parquet", out / "words.parquet", machine)


def in_small_groups():
    """The tokens of the project, in row groups so small that there are several parts."""
    file = Path("tokens.parquet").resolve()
    pq.write_table(pq.read_table(paths.TOKENS), file, row_group_size=500)
    return file


def counts(out, machine):
    return count(in_small_groups(), paths.WORDS, out, 2, machine)


def segments(out, machine):
    return segment_file(
        in_small_groups(), paths.WORDS, out / "mst.txt", "mst", load_collocations(), machine
    )


def private_documents(out, machine):
    """Noise too: it belongs to a text, wherever it is rewritten, and again after a worker was
    killed."""
    names = ("memory_limit", "threads", "workers", "temp_directory", "dask_scheduler")
    configure(machine={name: getattr(machine, name) for name in names})
    return stage_adapter.privatize_documents("madlib", "S3", BaseEpsilon(20.0), out)


@pytest.mark.parametrize(
    ("make", "n_files", "n_parts"),
    [
        pytest.param(tokens, 2, 4, marks=pytest.mark.nightly),
        pytest.param(counts, 3, 6, marks=pytest.mark.nightly),
        pytest.param(segments, 1, 6, marks=pytest.mark.nightly),
        pytest.param(private_documents, 4, 9, marks=pytest.mark.nightly),
    ],
)
def test_the_same_bytes_from_everywhere_and_after_a_worker_was_killed(
    project,
    tmp_path,
    used,
    there,
    make,
    n_files,
    n_parts,
):
    used.kill = True
    machines = {
        "one": {"dask_scheduler": None},
        "two": {"dask_scheduler": None, "workers": 2},
        "dask": {},
    }
    results = []
    for who, values in machines.items():
        machine = there.model_copy(update={"temp_directory": str(tmp_path / "work"), **values})
        told = make(tmp_path / who, machine)
        made = {
            file.name: file.read_bytes() for file in (tmp_path / who).rglob("*") if file.is_file()
        }
        results.append((told, made))
    assert results[0] == results[1] == results[2] and len(made) == n_files
    assert used.counts == [n_parts]


def test_a_release_has_noise_of_its_own_in_every_batch(project, used, there):
    """Two texts are the same by chance once in 10^35: twelve draws of some 2,000 words."""
    policy = Policy("perturb", "keep", "sample")
    source = OwnRun(Project.find(Path()))
    space = ModelSpace("gst", load_embedding("gst"), policy, source)
    made = prepare("madlib", space, load_params().mechanisms)
    components = Components(load_lexicon("gst", Path(), "en"), made.vocabulary, made.mechanism)
    worker = BatchWorker(
        Settings("madlib", "S3", PerDocument(1.0), None, policy, keep_layout=False), components
    )
    text = "the government said that fire services in new south wales were there " + "zorblax " * 12
    batches = [Batch([[text]], [("same",)], part_epsilon=np.ones(1))] * 32
    assert len({part.texts[0][0] for part in ordered_map(worker.rewrite, batches, there)}) == 32
    assert used.counts == [32]
