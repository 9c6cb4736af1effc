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

import pyarrow.parquet as pq
import pytest
from toy_inbox import SECRET, WORDS, Inbox, files

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


def test_what_is_published_is_tracked(tracked: Inbox, capsys) -> None:
    tracked.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    assert main.main(["release", "--dry-run"]) == 0 and not tracked.archive.exists()
    capsys.readouterr()
    assert main.main(["release", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["released"] == 2
    (release,) = tracked.releases()
    pointers = sorted(path.name for path in tracked.archive.glob("*.dvc"))
    assert pointers == sorted([f"{release.name}.dvc", "current.parquet.dvc", "index.parquet.dvc"])
    assert not (tracked.archive / ".gitignore").exists()
    assert json.loads(dvc(tracked, "status", "--json")) == {}

    # A withdrawal changes the release's own pointer; DVC is told, and told by the next run if this one is killed.
    before = (tracked.archive / f"{release.name}.dvc").read_text()
    (tracked.folder / "withdrawn.txt").write_text("2\n")
    tracked.run()
    assert dvc(tracked, "status", "--json").strip() != "{}"
    assert main.main(["release"]) == 0
    assert json.loads(dvc(tracked, "status", "--json")) == {}
    assert (tracked.archive / f"{release.name}.dvc").read_text() != before
    assert not (tracked.archive / "withdrawn.parquet.dvc").exists()  # the operator remembers it

    # What is lost comes back, and nothing is paid for again meanwhile.
    shutil.rmtree(release)
    assert main.main(["release"]) == 2
    assert f"dvc checkout releases/{release.name}.dvc" in capsys.readouterr().err
    dvc(tracked, "checkout", f"releases/{release.name}.dvc")
    assert main.main(["release"]) == 0 and tracked.states() == ["committed"]


def test_words_and_names_of_a_source_are_nowhere_else(tracked: Inbox, capsys, caplog) -> None:
    """Served, stopped by the gate, and refused: in no log, archive, cache, ledger, page or memory of the operator."""
    ident, whom = "quetzalonia", "xylopharra"
    caplog.set_level("DEBUG")
    tracked.configure(subject_column="who", cap=50.0, ids="pseudonym")
    rows = [{"id": f"{ident}{n}", "who": whom, "text": f"{WORDS} {SECRET}"} for n in range(2)]
    tracked.put("a.jsonl", *rows)
    assert main.main(["release"]) == 0
    tracked.put("b.jsonl", {**rows[0], "id": f"{ident}9", "who": f"{whom}9"})
    tracked.configure(gate={"min_coverage": 1.0})
    assert main.main(["release"]) == 1
    tracked.put("c.jsonl", {**rows[0], "text": f"{SECRET} again"})
    assert main.main(["release"]) == 2
    (tracked.folder / "c.jsonl").write_text(f'{{"id": "{ident}", "who": "{whom}", "text": {{"{SECRET}": 1}}}}')
    assert main.main(["release"]) == 2
    kept = [tracked.root / name for name in (".dvc", ".lexveil", "releases", "artifacts/data_docs")]
    found = {str(file): file.read_bytes() for folder in kept for file in files(folder)}
    assert {name.split("/")[-1] for name in found} > {"documents.parquet", "ids.parquet", "ledger.sqlite"}
    assert any("/.dvc/cache/" in name for name in found)
    tables = {f"rows of {name}": name for name in found if name.endswith(".parquet")}
    rows_of = {where: repr(pq.read_table(name).to_pylist()).encode() for where, name in tables.items()}
    said = {"said": repr(capsys.readouterr()).encode(), "logs": caplog.text.encode()}
    for where, content in (found | rows_of | said).items():
        for word in (SECRET, ident, whom):
            is_listed = word == whom and where.endswith("withheld.csv")  # the operator's
            assert is_listed or word.encode() not in content.lower(), f"{word} is in {where}"
