"""`lexveil privatize --workers`: the same bytes whatever the processes and batches, and noise that
is nobody else's."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pyarrow.parquet as pq
import pytest
from asking import privatize_file

from lexveil.core.mechanisms.registry import MECHANISMS
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.io.execution import pool
from lexveil.io.formats import chunks
from lexveil.release.adapters import files
from tests.conftest import ROOT
from tests.runtime.pool_functions import interruptible

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_batches_change_no_byte(listed, tmp_path, monkeypatch, mechanism):
    """Text, ledger and record, of every mechanism; in this process."""
    texts = [*load_documents().column("text").to_pylist()[:77], "", "Zorblax!", " \n"]
    source = tmp_path / "in.jsonl"
    found = []
    source.write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8"
    )
    how = {
        "mechanism": mechanism,
        "strategy": "S3",
        "seed": 11,
        "mode": "experiment",
        "workers": 1,
    }
    # it refuses what its theorem does not cover
    budget = 1e7 if mechanism == "truncated_gumbel" else 100.0
    for size in (1, 4096):
        monkeypatch.setattr(chunks, "ROWS_OF_A_CHUNK", size)
        out = tmp_path / f"{size}.jsonl"
        done = privatize_file(source, out, document_budget=budget, **how)
        # Each batch is a row group of its own; what is in them is the same.
        found.append(
            (
                out.read_bytes(),
                pq.read_table(f"{out}.tokens.parquet").combine_chunks(),
                done.record.to_dict(),
            )
        )
        operator = done.operator.to_dict()
        assert operator["output"].pop("tokens_sha256")
        found[-1] += (operator,)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("started", "module"),
    [("spawned", None), ("forked", None), ("forked", "tests.privatization.shared_generator")],
    ids=["spawned", "forked", "forked of one that has a generator"],
)
def test_workers_share_no_noise(built, tmp_path, monkeypatch, started, module):
    """Workers for much input are forked from a process that has loaded kernels; the test would
    detect a generator made there.

    Two texts are the same by chance once in 10^35: twelve draws of some 2,000 words.
    """
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    prepared = []

    def prepared_workers(name):
        prepared.append(name)
        return pool.prepared_workers(module or name)

    monkeypatch.setattr(files, "SMALL_FILE", 0 if started == "forked" else 10**9)
    monkeypatch.setattr(files, "prepared_workers", prepared_workers)
    monkeypatch.setattr(chunks, "ROWS_OF_A_CHUNK", 1)
    text = "the government said that fire services in new south wales were there " + "zorblax " * 12
    rows = [{"text": text, "who": f"{module}-{number}"} for number in range(64)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    how = {
        "mechanism": "madlib",
        "strategy": "S3",
        "epsilon": 1.0,
        "subject_column": "who",
    }
    privatize_file(
        tmp_path / "in.jsonl", tmp_path / "out.jsonl", average_words=30.0, workers=2, **how
    )
    texts = [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert bool(prepared) == (started == "forked") and len(texts) == 64
    assert (len(set(texts)) < 64) == (module is not None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_command_leaves_nothing(number, built, tmp_path):
    """Ctrl-C, which a terminal sends to workers too, or SIGTERM stops the command while workers
    start or work. No file and no process is left.
    """
    source = tmp_path / "in.txt"
    out = tmp_path / "out.txt"
    source.write_text("the government said no to the fire services and to the police\n" * 20_000)
    command = [sys.executable, "-m", "lexveil.faces.cli", "privatize", str(source), "-o", str(out)]
    command += ["--mechanism", "madlib", "--strategy", "S1", "--epsilon", "5", "--workers", "2"]
    process = subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=interruptible,  # noqa: PLW1509
    )
    workers = []
    while len(workers) < 2:
        assert process.poll() is None
        time.sleep(0.05)
        every = psutil.Process(process.pid).children(recursive=True)
        workers = [child for child in every if "runtime import worker" in " ".join(child.cmdline())]
    # Python loses an interrupt that falls into a callback of its own, so a person may have to press
    # again.
    for _ in range(3):
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=300)
            break
    said, error = process.communicate(timeout=1800)
    assert process.returncode == 128 + number and said == ""
    if number == signal.SIGINT:
        assert error.splitlines()[-1] == "lexveil privatize: interrupted"
    assert "Traceback" not in error or "Exception ignored" in error
    assert psutil.wait_procs(workers, timeout=1800)[1] == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.txt"]
