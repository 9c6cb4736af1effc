"""`lexveil privatize --workers`: the same bytes whatever the processes and batches, and noise that is nobody else's."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
import yaml
from asking import privatize_file
from worker_toys import Meeting, OneGenerator

from lexveil import paths
from lexveil.accounting.budgets import Policy
from lexveil.artifacts.document_sets import load_documents
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.model import Model
from lexveil.artifacts.word_orders import write_word_orders
from lexveil.embeddings.word_orders import WordLists
from lexveil.formats import chunks
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.privatization.adapters import files
from lexveil.privatization.adapters.memory import Texts, privatize_texts
from lexveil.privatization.engine import engine
from lexveil.privatization.release import run as two_passes
from lexveil.privatization.release.preconditions import check
from lexveil.privatization.settings import Settings
from lexveil.request import FileRequest
from lexveil.runtime import pool
from tests.conftest import ROOT
from tests.runtime.pool_functions import interruptible
from tests.shared_trees import share, stand_beside

pytestmark = pytest.mark.slow

BATCHES = (1, 4096)
POLICY = Policy("perturb", "keep", "sample")


@pytest.fixture(scope="module")
def _permuted(_built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built project with a list set, which any order will do for, and a calibration that takes every epsilon."""
    root = tmp_path_factory.mktemp("listed")
    (root / "artifacts").mkdir()
    for name in ("checks", "collocations", "corpus", "embeddings"):
        (root / "artifacts" / name).symlink_to(_built / "artifacts" / name)
    (root / "data").symlink_to(_built / "data")
    (root / "dvc.yaml").write_text("stages: {}\n")
    params = yaml.safe_load((_built / "params.yaml").read_text(encoding="utf-8"))
    params["mechanisms"]["truncated_gumbel"]["calibration"] = "paper"
    (root / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        words = load_embedding("gst").tokens[:900]
        orders = np.random.default_rng(1).permutation(len(words)).astype(np.int32)[None]
        write_word_orders(WordLists(words, orders), {}, paths.word_orders("gst", "L0"))
    share(root)
    return root


@pytest.fixture
def listed(_permuted: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    return stand_beside(_permuted, tmp_path_factory.mktemp("beside"), monkeypatch)


def some_texts(n: int = 80) -> list[str]:
    texts = load_documents().column("text").to_pylist()[: n - 3]
    return [*texts[:40], "", "Zorblax!", *texts[40:], " \n"]


def of_bytes(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def made(source: Path, folder: Path, mechanism: str, workers: int) -> dict[str, str]:
    """Hashes of the text, the record and the ledger of an experiment."""
    folder.mkdir()
    how: dict[str, Any] = {"mechanism": mechanism, "strategy": "S3", "epsilon": 5.0, "seed": 11, "mode": "experiment"}
    privatize_file(source, folder / "out.jsonl", workers=workers, **how)
    return of_bytes(folder)


@pytest.fixture
def source(listed: Path, tmp_path: Path) -> Path:
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in some_texts()), encoding="utf-8")
    return file


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_batches_change_no_byte(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    """Text, ledger and record, of every mechanism; in this process."""
    found = []
    for size in BATCHES:
        monkeypatch.setattr(chunks, "ROWS", size)
        folder = tmp_path / str(size)
        text = made(source, folder, mechanism, 1)["out.jsonl"]
        # Each batch is a row group of its own; what is in them is the same.
        tokens = pq.read_table(folder / "out.jsonl.tokens.parquet").combine_chunks()
        record, operator = (
            json.loads((folder / f"out.jsonl.{kind}.json").read_text()) for kind in ("record", "operator")
        )
        assert operator["output"].pop("tokens_sha256")
        found.append((text, tokens, record, operator))
    assert found[0] == found[1]


def releases(monkeypatch: pytest.MonkeyPatch, folder: Path, workers: int) -> list[str]:
    """The same text 64 times, released by workers of which none does all the work; half of its words are unknown."""
    folder.mkdir()
    calls: list[Path] = []

    class Together(pool.Workers[Any, Any]):
        def __init__(self, function: Any, n: int) -> None:
            calls.append(folder / str(len(calls)))
            calls[-1].mkdir()
            super().__init__(Meeting(function, calls[-1], n), n)

    monkeypatch.setattr(two_passes, "Workers", Together)
    monkeypatch.setattr(chunks, "ROWS", 4)
    settings = Settings("madlib", "S3", 1.0, None, None, POLICY, False)
    texts = ["the government said that fire services in new south wales were there " + "zorblax " * 12] * 64
    subjects = [f"{workers}-{number}" for number in range(64)]  # or the cap of the one text would withhold most
    done = privatize_texts(Texts(texts, subjects), check(settings, Model.load()), workers=workers)
    assert [len(list(call.iterdir())) for call in calls] == ([workers] if workers > 1 else [])  # one alone is this one
    assert len(done.values) == 64
    assert done.record.mode == "release"
    return done.values


def test_workers_of_a_release_share_no_noise(listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does another release. Two texts are the same by chance once in 10^35: twelve draws of some 2,000 words."""
    runs = [releases(monkeypatch, tmp_path / str(workers), workers) for workers in (2, 1)]
    assert len({text for run in runs for text in run}) == 128


def test_a_generator_that_workers_share_would_be_caught(
    listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BatchWorker", OneGenerator)
    rewritten = releases(monkeypatch, tmp_path / "workers", 2)
    assert len(set(rewritten)) < 64


@pytest.mark.parametrize(("module", "are_shared"), [(None, False), ("tests.privatization.shared_generator", True)])
def test_forked_workers_share_no_noise(
    listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str | None, are_shared: bool
) -> None:
    """Those of much input are forked from a process that has loaded kernels; a generator made there would be caught."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # of an earlier test
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    prepared: list[str] = []

    def prepared_workers(name: str) -> Any:
        prepared.append(name)
        return pool.prepared_workers(module or name)

    monkeypatch.setattr(files, "SMALL", 0)
    monkeypatch.setattr(files, "prepared_workers", prepared_workers)
    monkeypatch.setattr(chunks, "ROWS", 1)
    text = "the government said that fire services in new south wales were there " + "zorblax " * 12
    rows = [{"text": text, "who": f"{module}-{number}"} for number in range(64)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    how: dict[str, Any] = {"mechanism": "madlib", "strategy": "S3", "epsilon": 1.0, "subject_column": "who"}
    request = FileRequest.of(how | {"average_words": 30.0, "workers": 2})
    files.privatize_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl", request)
    texts = [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    assert prepared and len(texts) == 64
    assert (len(set(texts)) < 64) == are_shared


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_command_leaves_nothing(number: signal.Signals, listed: Path, tmp_path: Path) -> None:
    """By Ctrl-C, which a terminal sends to workers too, or by SIGTERM, as they start or work: no file, no process."""
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("the government said no to the fire services and to the police\n" * 20_000)
    command = [sys.executable, "-m", "lexveil.cli", "privatize", str(source), "-o", str(out)]
    command += ["--mechanism", "madlib", "--strategy", "S1", "--epsilon", "5", "--workers", "2"]
    process = subprocess.Popen(
        command,
        cwd=listed,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=interruptible,  # noqa: PLW1509 - no thread is running yet
    )
    workers: list[psutil.Process] = []
    while len(workers) < 2:
        assert process.poll() is None
        time.sleep(0.05)
        every = psutil.Process(process.pid).children(recursive=True)
        workers = [child for child in every if "spawn_main" in " ".join(child.cmdline())]
    # Python loses an interrupt that falls into a callback of its own, so a person may have to press again.
    for _ in range(3):
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=40)
            break
    said, error = process.communicate(timeout=60)
    assert process.returncode == 128 + number and said == ""
    if number == signal.SIGINT:
        assert error.splitlines()[-1] == "lexveil privatize: interrupted"
    # A worker that is just being started can lose what it is sent, and says so where it ends.
    assert "Traceback" not in error or "Exception ignored" in error or "spawn_main" in error
    assert psutil.wait_procs(workers, timeout=60)[1] == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.txt"]
