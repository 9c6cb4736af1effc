"""Lineage on the scratch project: what it leads to, at which time, and in which form."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from scratch_project import Project

from lexveil.lineage.file_hashes import Files, below, digest
from lexveil.lineage.rendering import as_text
from lexveil.lineage.trace import lineage
from lexveil.runtime.dvc_graph import open_repo

pytestmark = pytest.mark.slow

PRIVATE = Path("artifacts/private/S1/1.0/documents.txt")


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


@pytest.fixture
def twice(built: Project) -> tuple[Project, str]:
    """Made, committed, and made again with another seed and source, not committed; the commit."""
    first = built.commit()
    built.set_params("seed: 20261", "seed: 7")
    (built.root / "src.txt").write_text("another source\n")
    built.dvc("repro")
    return built, first


def test_a_folder_is_named_as_dvc_names_it(built: Project) -> None:
    """The digest against DVC's own, and the listing against the folder."""
    with open_repo() as repo:
        files = Files(repo)
        (out,) = repo.stage.collect("privatize@S1-1.0")[0].outs
        folder, recorded = "artifacts/private/S1/1.0", out.hash_info.value
        content = (built.root / PRIVATE).read_bytes()
        assert files.now(folder) == {"documents.txt": md5(content)}
        assert files.md5(folder) == recorded == digest(files.now(folder))
        assert files.recorded(folder, recorded) == files.now(folder)
        assert digest({"documents.txt": md5(content + b"!")}) != recorded
        assert files.recorded(folder, "0" * 32 + ".dir") is None
        assert (files.md5("absent"), files.content("absent", "0" * 32)) == (None, None)
    assert below({"a/b": "1", "a/c/d": "2", "ab/e": "3"}, "a") == {"b": "1", "c/d": "2"}


def test_at_a_revision_it_tells_of_that_time_and_leaves_the_work_tree(twice: tuple[Project, str]) -> None:
    project, first = twice
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
    """A folder of several outputs, a whole folder, and after one of them was made anew."""
    (counts, _) = lineage(PRIVATE)["chain"][0]["inputs"]
    assert (counts["path"], counts["made_by"], counts["as_made"]) == ("artifacts/counts", "count@a, count@b", True)
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
