"""`lexveil init`: what a project consists of, what makes its stages stale, and what is refused."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from lexveil import LexveilError
from lexveil.base import paths
from lexveil.base.runtime import new_project
from lexveil.base.runtime.new_project import FILES, FOLDERS, create

ROOT = Path(__file__).parents[2]


def test_a_project_is_written_whole(tmp_path, cli):
    folder = tmp_path / "demo"
    folder.mkdir()  # an empty one is taken
    said = cli("init", folder).out
    for name in (*FILES, *FOLDERS, ".git"):
        assert (folder / name).exists(), name
    assert (
        f"cd {folder}" in said
        and list(tmp_path.iterdir()) == [folder]
        and not list(folder.rglob("*.pyc"))
    )
    listing = partial(
        subprocess.run,
        [sys.executable, "-m", "dvc", "stage", "list"],
        capture_output=True,
        check=True,
    )
    assert b"train_embeddings@gst" in listing(cwd=folder).stdout
    written = (folder / "params.yaml").read_text(encoding="utf-8").replace("[word, gst]", "[word]")
    (folder / "params.yaml").write_text(written, encoding="utf-8")
    # DVC by hand builds no more
    assert b"@word" in (narrow := listing(cwd=folder).stdout) and b"@gst" not in narrow
    # Git takes every file that it says to add, and there are no others.
    names = said.split("git add ")[1].split(" &&")[0].split()
    assert subprocess.run(["git", "check-ignore", *names], cwd=folder, check=False).returncode == 1
    assert {file.name for file in folder.iterdir()} - {".git"} <= set(names)


def test_queries_are_the_projects_own_where_it_has_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sql" / "corpus").mkdir(parents=True)
    (tmp_path / "sql" / "corpus" / "sample.sql").write_text("select 1")
    # any folder sql/ is not a project's
    assert paths.query("corpus/sample") == ROOT / "sql/corpus/sample.sql"
    (tmp_path / "dvc.yaml").touch()
    assert paths.query("corpus/sample") == tmp_path / "sql/corpus/sample.sql"
    assert paths.query("corpus/words") == ROOT / "sql/corpus/words.sql"


@pytest.mark.parametrize("name", ["full", "file", "no/where"])
def test_what_is_refused(tmp_path, name, cli):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letters.txt").touch()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    assert cli("init", tmp_path / name, code=2).err.startswith("lexveil init: ")
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_is_left_half_written(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "fatal: no space")
    monkeypatch.setattr(new_project.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(LexveilError, match="git init failed: fatal: no space"):
        create(tmp_path / "demo")
    assert list(tmp_path.iterdir()) == []
