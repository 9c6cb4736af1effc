"""Lineage on the scratch project: what it leads to, at which time, and in which form."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from scratch_project import Project

from lexveil.lineage.rendering import as_text
from lexveil.lineage.trace import lineage

pytestmark = pytest.mark.slow

PRIVATE = Path("artifacts/private/S1/1.0/documents.txt")


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def test_at_a_revision_it_tells_of_that_time_and_leaves_the_work_tree(built: Project) -> None:
    project, first = built, built.commit()
    project.set_params("seed: 20261", "seed: 7")
    (project.root / "src.txt").write_text("another source\n")
    project.dvc("repro")
    before = (project.artifacts(), project.lock(), project.git("status", "--porcelain"))
    then, now = lineage(PRIVATE, first), lineage(PRIVATE)
    assert before == (project.artifacts(), project.lock(), project.git("status", "--porcelain"))
    assert (then["commit"], then["committed"], now["commit"], now["committed"]) == (first, True, first, False)
    assert [entry["stage"] for entry in then["chain"]] == [entry["stage"] for entry in now["chain"]]
    assert then["chain"][0]["params"] == {"seed": 20261} and now["chain"][0]["params"] == {"seed": 7}
    assert now["md5"] == md5((project.root / PRIVATE).read_bytes()) != then["md5"]
    assert now["chain"][0]["outputs"][0]["unchanged"] and not then["chain"][0]["outputs"][0]["unchanged"]
    (source,) = (item for item in then["chain"][-1]["inputs"] if item["path"] == "src.txt")
    assert source["md5"] == md5(b"source\n")
    project.git("tag", "v1")
    assert lineage(PRIVATE, "v1") == then | {"at": "v1"}


def test_inputs_are_compared_with_what_their_makers_made(built: Project) -> None:
    """After one output of a folder was made anew."""
    (built.root / "src.txt").write_text("another source\n")
    built.dvc("repro", "--single-item", "first", "count@a")
    (counts, _) = lineage(PRIVATE)["chain"][0]["inputs"]
    assert counts["as_made"] is False
    assert any("(made again since)" in line for line in as_text(lineage(PRIVATE)))


def test_the_chain_ends_at_the_files_of_the_data(built: Project) -> None:
    """Only those that the chain reads, from DVC's cache where the work tree has others."""
    for name in ("corpus/a.txt", "corpus/more/b.txt", "documents/c.txt"):
        (built.root / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (built.root / "data" / name).write_text(name)
    built.dvc("add", "data")
    file = built.root / "dvc.yaml"
    file.write_text(file.read_text().replace("deps: [src.txt, stage.py]", "deps: [data/corpus, stage.py]"))
    file.write_text(file.read_text().replace("artifacts/first.txt src.txt", "artifacts/first.txt data/corpus"))
    built.dvc("repro")
    expected = [{"path": f"data/{name}", "md5": md5(name.encode())} for name in ("corpus/a.txt", "corpus/more/b.txt")]
    entry = lineage(PRIVATE)["chain"][-1]
    assert (entry["stage"], entry["command"], entry["sources"]) == ("data.dvc", None, expected)
    (built.root / "data/corpus/a.txt").unlink()
    (built.root / "data/corpus/a.txt").write_text("slipped in")
    assert lineage(PRIVATE)["chain"][-1]["sources"] == expected
    assert f"  source   data/corpus/a.txt  {md5(b'corpus/a.txt')}" in list(as_text(lineage(PRIVATE)))


def test_the_privacy_record_of_the_time_is_shown(built: Project) -> None:
    """From the run's own folder, and from DVC's cache where the folder holds another one by now."""
    record = {"mode": "experiment", "guarantee": {"formula": "none", "statement": "Not private.", "because": []}}
    (built.root / "record.json").write_text(json.dumps(record))
    file = built.root / "dvc.yaml"
    both = "artifacts/private/${item.strategy}/${item.epsilon}"
    before = f"cmd: python stage.py {both}/documents.txt artifacts/counts"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, f"{before} && cp record.json {both}/record.json"))
    built.dvc("repro")
    assert lineage(PRIVATE)["chain"][0]["privacy"] == record
    own = built.root / PRIVATE.parent / "record.json"
    own.unlink()
    own.write_text(json.dumps(record | {"mode": "release"}))
    assert lineage(PRIVATE)["chain"][0]["privacy"] == record
    assert "  privacy  mode experiment; guarantee: none" in list(as_text(lineage(PRIVATE)))
