"""The same bytes from one process, two processes and a Dask cluster of three workers, of every stage that has parts."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tasks import count_ngrams, privatize, release, sample_corpus
from tasks.count_ngrams import count
from tasks.errors import RequestError
from tasks.io import paths, work
from tasks.io.collocations import load_collocations
from tasks.io.params import MachineParams
from tasks.release import privatize_file
from tasks.sample_corpus import tokenize
from tasks.segment_corpus import segment_file
from tests.conftest import ROOT

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    kept = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0") as made:
        yield made.scheduler_address
    os.environ.pop("PYTHONPATH")
    if kept is not None:
        os.environ["PYTHONPATH"] = kept


def machines(folder: Path, address: str) -> dict[str, MachineParams]:
    one = MachineParams("900MB", 1, 1, str(folder / "work"))
    return {"one": one, "two": replace(one, workers=2), "dask": replace(one, executor="dask", dask_scheduler=address)}


def of_bytes(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and "work" not in file.parts)
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_tokens(built: Path, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_corpus, "SMALL", 1)
    monkeypatch.setattr(sample_corpus, "BATCH", 50)
    found = []
    for who, machine in machines(tmp_path, address).items():
        tokenize(paths.SAMPLE.resolve(), tmp_path / who / "t.parquet", tmp_path / who / "w.parquet", machine)
        found.append(of_bytes(tmp_path / who))
    assert len(found[0]) == 2 and found[0] == found[1] == found[2]


def test_counts(built: Path, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In shards so small that there are several, which needs row groups that small."""
    monkeypatch.setattr(count_ngrams, "SHARD_TOKENS", 10_000)
    pq.write_table(pq.read_table(paths.TOKENS), tmp_path / "tokens.parquet", row_group_size=500)
    assert len(count_ngrams.shards_of(tmp_path / "tokens.parquet", tmp_path, 10_000)) > 5
    found, totals = [], []
    for who, machine in machines(tmp_path, address).items():
        totals.append(count(tmp_path / "tokens.parquet", paths.WORDS, tmp_path / who, 2, machine))
        found.append(of_bytes(tmp_path / who))
    assert totals[0] == totals[1] == totals[2]
    assert len(found[0]) == 3 and found[0] == found[1] == found[2]


def test_counts_that_are_nowhere_to_be_seen(
    built: Path, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where machine.temp_directory is each machine's own."""
    monkeypatch.setattr(work, "SHOWN", 0.2)
    monkeypatch.setattr(count_ngrams, "SHARD_TOKENS", 10_000)
    pq.write_table(pq.read_table(paths.TOKENS), tmp_path / "tokens.parquet", row_group_size=500)
    monkeypatch.setattr(count_ngrams, "ordered_map", lambda function, items, machine: ({} for _ in items))
    with pytest.raises(RequestError, match=r"cannot be seen by this process .*machine\.temp_directory"):
        count(tmp_path / "tokens.parquet", paths.WORDS, tmp_path / "out", 2, machines(tmp_path, address)["dask"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("segmentation", ["word", "mst"])
def test_segments(built: Path, tmp_path: Path, address: str, segmentation: str) -> None:
    pq.write_table(pq.read_table(paths.TOKENS), tmp_path / "tokens.parquet", row_group_size=500)
    known = None if segmentation == "word" else load_collocations()
    found, totals = [], []
    for who, machine in machines(tmp_path, address).items():
        out = tmp_path / who
        totals.append(segment_file(tmp_path / "tokens.parquet", paths.WORDS, out, segmentation, known, machine))
        found.append(out.read_bytes())
    assert found[0] == found[1] == found[2] == paths.segmented(segmentation).read_bytes()
    assert totals[0] == totals[1] == totals[2]


def configured(root: Path, machine: MachineParams) -> None:
    params = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
    names = ("memory_limit", "threads", "workers", "temp_directory", "executor", "dask_scheduler")
    params["machine"] = {name: getattr(machine, name) for name in names}
    (root / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def test_private_documents(project: Path, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise too: it belongs to a text, wherever it is rewritten."""
    monkeypatch.setattr(privatize, "BATCH", 100)
    monkeypatch.setattr(privatize, "SMALL", 1)
    found = []
    for who, machine in machines(tmp_path, address).items():
        configured(project, machine)
        privatize.privatize("madlib", "S3", 20.0, tmp_path / who)
        found.append(of_bytes(tmp_path / who))
    assert len(found[0]) == 4 and found[0] == found[1] == found[2]


def test_released_file(project: Path, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an experiment; and a release on a cluster has noise of its own in every batch."""
    monkeypatch.setattr(release, "SMALL", 1)
    text = "the government said that fire services in new south wales were there " + "zorblax " * 12
    (tmp_path / "in.jsonl").write_text((json.dumps({"text": text}) + "\n") * 64, encoding="utf-8")
    how: dict[str, Any] = {"mechanism": "madlib", "strategy": "S3", "epsilon": 5.0}
    found = []
    for who, machine in machines(tmp_path, address).items():
        configured(project, machine)
        (tmp_path / who).mkdir()
        privatize_file(tmp_path / "in.jsonl", tmp_path / who / "out.jsonl", seed=11, mode="experiment", **how)
        found.append(of_bytes(tmp_path / who))
    assert len(found[0]) == 3 and found[0] == found[1] == found[2]
    privatize_file(tmp_path / "in.jsonl", tmp_path / "released.jsonl", **how)
    assert len(set((tmp_path / "released.jsonl").read_text(encoding="utf-8").splitlines())) == 64


def stage(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A stage as the graph runs it: its functions then belong to the main module, which no worker has."""
    return subprocess.run(
        [sys.executable, "-c", "import sys, runpy; " + command[0], *command[1:]],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_stage_run_as_the_main_module(project: Path, tmp_path: Path, address: str) -> None:
    """And what it wrote before, on one process, is what it writes."""
    before = paths.segmented("gst").read_bytes()
    paths.segmented("gst").unlink()
    configured(project, machines(tmp_path, address)["dask"])
    # SMALL is of the module that runs, which runpy makes anew.
    source = (ROOT / "tasks/segment_corpus.py").read_text(encoding="utf-8")
    (tmp_path / "segment_main.py").write_text(source.replace("SMALL = 5_000_000", "SMALL = 1"), encoding="utf-8")
    program = f"runpy.run_path({str(tmp_path / 'segment_main.py')!r}, run_name='__main__')"
    done = stage(project, program, "gst")
    assert done.returncode == 0, done.stderr
    assert paths.segmented("gst").read_bytes() == before


def test_a_dead_scheduler_ends_a_stage_with_code_2(project: Path, tmp_path: Path) -> None:
    machine = machines(tmp_path, "tcp://127.0.0.1:9")["dask"]
    configured(project, machine)
    source = (ROOT / "tasks/segment_corpus.py").read_text(encoding="utf-8")
    (tmp_path / "segment_main.py").write_text(source.replace("SMALL = 5_000_000", "SMALL = 1"), encoding="utf-8")
    done = stage(project, f"runpy.run_path({str(tmp_path / 'segment_main.py')!r}, run_name='__main__')", "gst")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("RequestError: params.yaml: machine.dask_scheduler is tcp://127.0")


def test_machine_parameters_make_nothing_stale() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    named = {param for one in stages.values() for param in one.get("params", [])}
    assert named and not any(param.split(".")[0] == "machine" for param in named)
