"""The command line: what it refuses, in one line and before anything is touched, and what it hands on."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from scratch_project import ROOT, Project

from lexveil.cli import main


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """What a command puts into the environment ends with its test."""
    with mock.patch.dict(os.environ):
        yield


def call(*arguments: str) -> int:
    try:
        return main.main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


PRIVATIZE = ("privatize", "in.jsonl", "-o", "out.jsonl", "--mechanism", "madlib", "--strategy", "S3")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "COMMAND"),
        (("rum",), "run"),
        (("run", "--params", "absent.yaml"), "absent.yaml"),
        (("data", "use"), "--corpus"),
        (("data", "use", "--corpus", "absent"), "absent"),
        (("data", "use", "--corpus", "a", "b"), "several need a name each"),
        (("data", "use", "--corpus", "a=b", "a=c"), "the name a is there twice"),
        ((*PRIVATIZE, "--epsilon", "ten"), "--epsilon is 'ten'; it must be a number"),
        (("report",), "lexveil run"),
        (("collocations",), "Only [1, 1] choices"),
        (("collocations", "a text"), "lexveil run"),
        (("ui", "--port", "0"), "port"),
        (("schedule",), "prefect.yaml: there is no such file"),
        (("lineage", "artifacts/first.txt"), "has not run yet"),
        (("lineage", "artifacts/counts"), "artifacts/counts/a.txt"),
        (("lineage", "src.txt"), "not made by any stage"),
        (("lineage", "../elsewhere"), "outside"),
        (("lineage", "artifacts/first.txt", "--at", "v9"), "there is no such commit"),
        (("lineage", "--verify", "artifacts/first.txt"), "has not run yet"),
        (("release",), "inbox.source and inbox.sql are null"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_code_two(
    project: Project, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    assert call(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1 and err.endswith("\n") and err.startswith("lexveil")
    assert says in err
    assert project.artifacts() == {} and not (project.root / "out.jsonl").exists() and project.ran() == []


def test_outside_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("run") == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "dvc.yaml" in err
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_said(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert call("ui", "--port", str(taken.getsockname()[1])) == 2
    assert "--port" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["privatize"], ["ledger"], ["service"]])
def test_help_has_an_example_and_loads_nothing_heavy(command: list[str]) -> None:
    code = (
        f"import sys\nfrom lexveil.cli.main import main\nassert main({[*command, '--help']}) == 0\n"
        "heavy = {'prefect', 'dvc', 'duckdb', 'scipy', 'numba', 'numpy', 'pandas', 'pyarrow', 'fastapi'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert " lexveil " in done.stdout


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ("--strategy gst --epsilon 2.5", {"strategy": "S3", "epsilon": 2.5, "is_release": True, "seed": None}),
        ("--epsilon 1 --seed 7 --workers 3", {"is_release": False, "seed": 7, "workers": 3}),
        ("--epsilon 1 --keep-layout --oov drop", {"keep_layout": True, "oov": "drop", "stopwords": None}),
    ],
)
def test_privatize_hands_on_what_was_asked(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys, extra: str, expected: dict[str, object]
) -> None:
    asked: list[Any] = []

    def privatize_file(*arguments: Any, **_: object) -> types.SimpleNamespace:
        asked.extend(arguments)
        return types.SimpleNamespace(record=types.SimpleNamespace(to_dict=lambda: {"n_documents": 3}), operator=None)

    monkeypatch.setattr("lexveil.privatization.adapters.files.privatize_file", privatize_file)
    below = project.root / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert call(*PRIVATIZE, *extra.split(), "--json") == 0
    # Paths are those of the folder the command was given in, not of the project's.
    assert asked[:2] == [below / "in.jsonl", below / "out.jsonl"]
    assert {key: getattr(asked[2], key) for key in expected} == expected
    assert json.loads(capsys.readouterr().out) == {"n_documents": 3}


def test_report_prints_where_it_is_and_its_figures(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project.root / "artifacts/report"
    folder.mkdir(parents=True)
    (folder / "index.html").touch()
    (folder / "metrics.json").write_text('{"documents": 3}\n')
    assert call("report") == call("report", "--json") == 0
    assert capsys.readouterr().out.split(maxsplit=1) == [str(folder / "index.html"), '{"documents": 3}\n']


def test_lineage_leads_from_an_artifact_to_the_source(built: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("lineage", "artifacts/private/S1/1.0/documents.txt", "--json") == 0
    chain = {entry["stage"]: entry for entry in json.loads(capsys.readouterr().out)["chain"]}
    assert list(chain) == ["privatize@S1-1.0", "count@b", "count@a", "first"]
    (source,) = (item for item in chain["first"]["inputs"] if item["path"] == "src.txt")
    assert source["md5"] == hashlib.md5(b"source\n").hexdigest()

    (built.root / "artifacts/first.txt").write_text("another")
    assert call("lineage", "artifacts/counts/a.txt") == 0
    text = capsys.readouterr().out
    assert "(changed since)" in text and "count@b" not in text and "from first" in text
