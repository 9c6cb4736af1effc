"""`lexveil gc`: what nothing refers to goes when asked, and nothing else ever."""

import hashlib
import json
import shutil

import pytest
import yaml
from scratch_project import Project

from lexveil.cli import main
from lexveil.errors import RequestError
from lexveil.lineage.gc import collect

pytestmark = pytest.mark.slow

PRIVATE = "artifacts/private/S1/1.0/documents.txt"


def objects(project: Project) -> set[str]:
    folder = project.root / ".dvc/cache/files/md5"
    return {f"{file.parent.name}{file.name}" for file in folder.glob("*/*")}


def outs(project: Project) -> set[str]:
    """All hashes that dvc.lock names, and the one file of each private folder."""
    entries = yaml.safe_load(project.lock())["stages"].values()
    named = {out["md5"] for entry in entries for out in entry["outs"]}
    return named | {hashlib.md5(content).hexdigest() for content in project.artifacts().values()}


def make_anew(project: Project, source: str, *targets: str) -> None:
    """Make outputs of another source: those that one private output needs, if no targets are
    given."""
    (project.root / "src.txt").write_text(source)
    project.dvc("repro", *(targets or ["privatize@S1-1.0"]))


def release(project: Project, name: str, mode: str, content: bytes) -> None:
    record = {
        "mode": mode,
        "guarantee": {},
        "made_with": {"documents.txt": hashlib.sha256(content).hexdigest()},
    }
    (project.root / name).parent.mkdir(exist_ok=True)
    (project.root / name).write_text(json.dumps(record))


def test_what_was_never_committed_goes_and_only_when_asked(built: Project, capsys) -> None:
    old = objects(built)
    assert old == outs(built)
    make_anew(built, "another source\n", "report")
    new = outs(built)
    assert main.main(["gc", "--json"]) == main.main(["gc", "--dry-run"]) == 0
    out = capsys.readouterr().out
    report = json.loads(out[: out.rindex("}") + 1])
    assert (report["removed"], report["objects"]) == (False, len(old - new)) and report["bytes"] > 0
    assert "nothing was removed" in out and objects(built) == old | new
    assert main.main(["gc", "--remove"]) == 0
    assert objects(built) == new
    assert collect(built.root, remove=True)["objects"] == 0
    shutil.rmtree("artifacts")
    built.dvc("checkout")  # all that the work tree needs is there


def test_every_commit_and_tag_is_kept_whatever_branch_it_is_on(built: Project) -> None:
    """A pointer in a folder below, too, that is gone by now."""
    (built.root / "below").mkdir()
    (built.root / "below/own.txt").write_text("a user's own")
    built.dvc("add", "below/own.txt")
    first = objects(built)
    built.commit()
    built.git("rm", "-q", "below/own.txt.dvc")
    built.git("checkout", "-q", "-b", "aside")
    make_anew(built, "a source aside\n")
    aside = outs(built)
    built.commit()
    built.git("tag", "v1")
    built.git("checkout", "-q", "-")
    built.git("branch", "-q", "-D", "aside")  # the tag alone holds it now
    make_anew(built, "not committed\n")
    uncommitted = outs(built)
    make_anew(built, "the work tree\n")
    collect(built.root, remove=True)
    assert objects(built) == first | aside | outs(built) and not objects(built) & (
        uncommitted - first
    )


def test_a_release_keeps_what_it_was_made_with_and_an_experiment_does_not(built: Project) -> None:
    contents = {}
    for number in range(2):
        make_anew(built, f"source {number}\n")
        contents[number] = (built.root / PRIVATE).read_bytes()
    make_anew(built, "the work tree\n")
    release(built, "sent/out.jsonl.record.json", "release", contents[0])
    release(built, "tried/out.jsonl.record.json", "experiment", contents[1])
    release(built, "from-elsewhere.jsonl.record.json", "release", b"never here")
    (built.root / "other.record.json").write_text("[]")
    report = collect(built.root, remove=True)
    md5 = {number: hashlib.md5(content).hexdigest() for number, content in contents.items()}
    assert objects(built) == outs(built) | {md5[0]} and md5[1] not in objects(built)
    assert report["releases"] == [
        {"file": "from-elsewhere.jsonl.record.json", "missing": ["documents.txt"]},
        {"file": "sent/out.jsonl.record.json", "missing": []},
    ]


def test_a_commit_that_cannot_be_read_stops_it(built: Project) -> None:
    before = objects(built)
    good = built.lock()
    (built.root / "dvc.lock").write_text("stages: [broken")
    broken = built.commit()
    (built.root / "dvc.lock").write_text(good)
    built.commit()
    make_anew(built, "another source\n")
    with pytest.raises(RequestError, match=rf"dvc\.lock in commit {broken[:10]} cannot be read"):
        collect(built.root, remove=True)
    assert before <= objects(built)
