"""`lexveil release` as one gives it: its lines, its exit codes, and what DVC then has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from toy_inbox import SECRET, WORDS, Inbox

from lexveil.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tracked(inbox: Inbox) -> Iterator[Inbox]:
    """The project as a DVC project in git."""
    (inbox.root / "dvc.yaml").write_text("stages: {}\n")
    shutil.copy(ROOT / ".gitignore", inbox.root)
    shutil.copytree(ROOT / ".dvc", inbox.root / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp"))
    subprocess.run(["git", "init", "-q"], cwd=inbox.root, check=True)
    with mock.patch.dict(os.environ):
        yield inbox


def dvc(inbox: Inbox, *arguments: str) -> str:
    argv = [sys.executable, "-m", "dvc", *arguments]
    return subprocess.run(argv, cwd=inbox.root, check=True, capture_output=True, text=True).stdout


def test_what_is_published_is_tracked(tracked: Inbox, capsys: pytest.CaptureFixture[str]) -> None:
    tracked.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    assert main.main(["release", "--dry-run"]) == 0
    out, _ = capsys.readouterr()
    assert out.splitlines()[0] == "2 rows: 2 new, 0 changed, 0 known or repeated, 0 withdrawn"
    assert out.splitlines()[-1] == "dry run: nothing was done" and not tracked.archive.exists()
    assert main.main(["release", "--json"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert (report["released"], report["current"]) == (2, 2)
    assert SECRET not in out + err
    (release,) = tracked.releases()
    pointers = sorted(path.name for path in tracked.archive.glob("*.dvc"))
    assert pointers == sorted([f"{release.name}.dvc", "current.parquet.dvc", "index.parquet.dvc"])
    assert not (tracked.archive / ".gitignore").exists()
    assert json.loads(dvc(tracked, "status", "--json")) == {}
    ignored = subprocess.run(
        ["git", "status", "--short", "--untracked-files=all", "releases"],
        cwd=tracked.root, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert sorted(line.split("/")[1] for line in ignored.splitlines()) == pointers

    # A withdrawal changes the release's own pointer; DVC is told, and told by the next run if this one is killed.
    before = (tracked.archive / f"{release.name}.dvc").read_text()
    (tracked.folder / "withdrawn.txt").write_text("2\n")
    tracked.run()
    assert dvc(tracked, "status", "--json").strip() != "{}"
    assert main.main(["release"]) == 0
    assert "archived now: 1 documents" in capsys.readouterr().out
    assert json.loads(dvc(tracked, "status", "--json")) == {}
    assert (tracked.archive / f"{release.name}.dvc").read_text() != before
    assert (tracked.archive / "withdrawn.parquet.dvc").exists()

    # What is lost comes back, and nothing is paid for again meanwhile.
    shutil.rmtree(release)
    assert main.main(["release"]) == 2
    assert f"dvc checkout releases/{release.name}.dvc" in capsys.readouterr().err
    dvc(tracked, "checkout", f"releases/{release.name}.dvc")
    assert main.main(["release"]) == 0
    assert "nothing to release" in capsys.readouterr().out


def test_a_closed_gate_is_exit_code_one(tracked: Inbox, capsys: pytest.CaptureFixture[str]) -> None:
    tracked.configure(gate={"min_coverage": 1.0})
    tracked.put("a.jsonl", ("1", WORDS))
    assert main.main(["release"]) == 1
    out, err = capsys.readouterr()
    (last,) = (line for line in err.splitlines() if line.startswith("lexveil release: "))
    assert out == "" and "releases/" in last and "the vocabulary knows" in last and SECRET not in err
    assert list(tracked.archive.iterdir()) == []
