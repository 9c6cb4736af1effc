"""`dvc gc --all-commits` as docs/how-to/lineage.md describes it, and what it keeps of releases."""

import hashlib
import json
from pathlib import Path

import pytest

from lexveil.lab.lineage.release_lineage import released

pytestmark = pytest.mark.slow

PRIVATE = "artifacts/private/S1/1.0/documents.txt"


def make_anew(project, source):
    """Make the private output of another source, and return its content."""
    (project.root / "src.txt").write_text(source)
    project.dvc("repro", "privatize@S1-1.0")
    return (project.root / PRIVATE).read_bytes()


def in_cache(project, content):
    md5 = hashlib.md5(content).hexdigest()
    return (project.root / ".dvc/cache/files/md5" / md5[:2] / md5[2:]).exists()


def test_what_a_release_was_made_with_stays_if_it_was_committed(built):
    artifact = make_anew(built, "source of a release\n")
    record = {
        "mode": "release",
        "guarantee": {},
        "made_with": {"documents.txt": hashlib.sha256(artifact).hexdigest()},
    }
    (built.root / "out.jsonl.record.json").write_text(json.dumps(record))
    commit = built.commit()
    make_anew(built, "the work tree\n")
    built.dvc("gc", "--all-commits", "--force")
    found = released(Path("out.jsonl"), Path("out.jsonl.record.json"))
    assert (found["at"], found["made_with"][0]["path"]) == (commit, PRIVATE)


def test_what_neither_the_work_tree_nor_a_commit_names_goes(built):
    committed = make_anew(built, "committed\n")
    built.commit()
    forgotten = make_anew(built, "never committed\n")
    current = make_anew(built, "the work tree\n")
    built.dvc("gc", "--all-commits", "--force")
    assert [in_cache(built, each) for each in (committed, forgotten, current)] == [
        True,
        False,
        True,
    ]
