"""What is published is a function of output, parameters and disclosed structure: every verb, format and option.

Two sources of the same disclosed structure are rewritten by a mechanism that answers both alike, as tests/same_noise.py
has it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lexveil
from lexveil.artifacts.model import Model
from lexveil.cli import main
from lexveil.mechanisms.registry import MECHANISMS
from tests.same_noise import SameAnswers, published, sources
from tests.shared_trees import stand_beside

Made = dict[str, bytes]
World = Callable[[Callable[[Sequence[str], Path], Made]], None]
STRATEGIES = ("S1", "S2", "S3", "S4")
# Stop words are perturbed in S1 too, so that they may stand where words stood; unknown words are drawn.
BASE = ("--stopwords", "perturb", "--punctuation", "drop", "--oov", "sample", "--document-budget", "5")


@pytest.fixture
def world(listed: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> World:
    """Does the same with both sources, each in a project with a new ledger, and compares what is published."""
    same = SameAnswers(monkeypatch)
    both = sources(Model.load(listed))

    def compare(does: Callable[[Sequence[str], Path], Made]) -> None:
        made = []
        for number, texts in enumerate(both):
            project = stand_beside(listed, tmp_path_factory.mktemp("world") / "project", monkeypatch)
            folder = project.parent
            same.restart()
            made.append(does(texts, folder))
            assert made[number], "nothing is published"
        first, second = made
        assert first.keys() == second.keys()
        differ = [name for name in first if first[name] != second[name]]
        assert not differ, {name: (first[name][-2000:], second[name][-2000:]) for name in differ}

    return compare


def write(texts: Sequence[str], folder: Path, form: str, *more: str) -> Path:
    """A source in one of the forms; ``more`` are further columns of texts."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"in.{form}"
    rows = [{"id": str(row), "text": text, "n": row} | dict.fromkeys(more, text) for row, text in enumerate(texts)]
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
        return file
    if form.startswith("jsonl"):
        content = "".join(json.dumps(row) + "\n" for row in rows)
    elif form.startswith("txt"):
        content = "".join(text + "\n" for text in texts if text)
    else:
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter="\t" if form.startswith("tsv") else ",", lineterminator="\n")
        writer.writerows([list(rows[0]), *(row.values() for row in rows)])
        content = buffer.getvalue()
    data = content.encode()
    if form.endswith(".zst"):
        with pa.CompressedOutputStream(str(file), "zstd") as stream:
            stream.write(data)
    else:
        file.write_bytes(gzip.compress(data) if form.endswith(".gz") else data)
    return file


def privatized(arguments: Sequence[str], form: str = "jsonl") -> Callable[[Sequence[str], Path], Made]:
    def run(texts: Sequence[str], folder: Path) -> Made:
        more = ["title"] if "title" in arguments else []
        source, out = write(texts, folder, form, *more), folder / "published"
        out.mkdir()
        assert main.main(["privatize", str(source), "-o", str(out / f"out.{form}"), *arguments]) == 0
        return published(out)

    return run


@pytest.mark.parametrize(
    ("mechanism", "strategy"), [*((name, "S3") for name in MECHANISMS), *(("tem", name) for name in ("S1", "S2", "S4"))]
)
def test_mechanisms_and_strategies(world: World, mechanism: str, strategy: str) -> None:
    unproven = ["--without-guarantee"] if mechanism == "truncated_gumbel" else []
    world(privatized(["--mechanism", mechanism, "--strategy", strategy, *BASE, *unproven]))


@pytest.mark.parametrize("form", ["csv", "tsv", "txt", "parquet", "jsonl.gz", "csv.zst"])
def test_forms(world: World, form: str) -> None:
    columns = [] if form == "txt" else ["--text-column", "text", "--subject-column", "id"]
    world(privatized(["--mechanism", "tem", "--strategy", "S3", *BASE, *columns], form))


@pytest.mark.parametrize("strategy", ["S1", "S2"])
@pytest.mark.parametrize(
    "options",
    [
        ["--consistent"],
        ["--columns", "title"],
        ["--oov", "drop"],
        ["--formulas", "quote"],
        ["--max-token-epsilon", "1.5"],
        ["--document-budget", "", "--epsilon", "2"],
        ["--mode", "experiment"],
    ],
    ids=lambda options: options[0].strip("-"),
)
def test_options(world: World, strategy: str, options: list[str]) -> None:
    given = list(BASE)
    for name, value in zip_longest(options[::2], options[1::2]):
        if value is None:
            given.append(name)
            continue
        if name == "--columns":
            given += ["--text-column", "text", "--text-column", value]
            continue
        if name in given:
            position = given.index(name)
            del given[position : position + 2]
        if value:
            given += [name, value]
    world(privatized(["--mechanism", "madlib", "--strategy", strategy, *given]))


def test_layout_that_is_copied_is_all_that_it_adds(world: World) -> None:
    """The first rows differ in layout, which is passed on: they are left out here."""
    run = privatized(["--mechanism", "madlib", "--strategy", "S3", "--keep-layout", *BASE])
    world(lambda texts, folder: run(texts[1:], folder))


def test_a_folder_and_its_files(world: World) -> None:
    def run(texts: Sequence[str], folder: Path) -> Made:
        write(texts, folder / "in", "jsonl")
        write(texts[::-1], folder / "in", "csv")
        (folder / "published").mkdir()
        out = folder / "published/out"
        arguments = ["privatize", str(folder / "in"), "-o", str(out), "--mechanism", "tem", "--strategy", "S4", *BASE]
        assert main.main(arguments) == 0
        return published(folder / "published")

    world(run)


def test_standard_output(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(texts: Sequence[str], folder: Path) -> Made:
        source, out = write(texts, folder, "jsonl"), io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(source.read_bytes())))
            patch.setattr(sys, "stdout", SimpleNamespace(buffer=out, write=lambda _: None, flush=lambda: None))
            assert main.main(["privatize", "-", "-o", "-", "--mechanism", "tem", "--strategy", "S2", *BASE]) == 0
        return {"stdout": out.getvalue()}

    world(run)


def test_the_summary_for_machines(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    def run(texts: Sequence[str], folder: Path) -> Made:
        privatized(["--mechanism", "tem", "--strategy", "S3", "--json", *BASE])(texts, folder)
        return {"summary": capsys.readouterr().out.encode()}

    world(run)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_values_in_memory(world: World, strategy: str) -> None:
    options: dict[str, Any] = {"mechanism": "tem", "strategy": strategy, "document_budget": 5.0}
    policy = {"stopwords": "perturb", "punctuation": "drop", "oov": "sample"}

    def run(texts: Sequence[str], folder: Path) -> Made:
        done = lexveil.privatize(list(texts), **options, **policy)
        return {"values": repr(done.values).encode(), "record": repr(done.record).encode()}

    world(run)
