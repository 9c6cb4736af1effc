"""Lineage of artifacts and releases: the inputs, the time and the run of each, and later
alterations.
"""

import hashlib
import json
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from scratch_project import Project, run_flow

from lexveil.base.errors import RequestError
from lexveil.faces.cli import main
from lexveil.lab.lineage.release_lineage import record_beside, released
from lexveil.lab.lineage.rendering import as_text
from lexveil.lab.lineage.trace import lineage
from lexveil.lab.lineage.verify import as_text as findings_as_text
from lexveil.lab.lineage.verify import verify

pytestmark = pytest.mark.slow

PRIVATE = Path("artifacts/private/S1/1.0/documents.txt")
FOLDER = PRIVATE.parent.as_posix()
COUNTS = "artifacts/counts/a.txt"


def md5(content):
    return hashlib.md5(content).hexdigest()


@pytest.fixture(scope="module")
def remade(built_template, worked_once):
    """A project that was committed, and made anew of another source and seed; and the commit."""

    def remake(project):
        commit = project.commit()
        project.set_params("seed: 20261", "seed: 7")
        (project.root / "src.txt").write_text("another source\n")
        project.dvc("repro")
        return project.root, commit

    return worked_once(built_template, remake)


@pytest.fixture
def first(project, remade):
    """The commit of the project, which was made anew since."""
    root, commit = remade
    project.take(root)
    return commit


def test_lineage_leaves_the_work_tree(project, first):
    before = (project.artifacts(), project.lock(), project.git("status", "--porcelain"))
    lineage(PRIVATE, first)
    assert before == (project.artifacts(), project.lock(), project.git("status", "--porcelain"))


def commits(found):
    return found["commit"], found["committed"]


def test_at_a_revision_it_tells_of_that_time(project, first):
    then = lineage(PRIVATE, first)
    made = then["chain"][0]
    assert commits(then) == (first, True)
    assert made["params"] == {"seed": 20261}
    assert not made["outputs"][0]["unchanged"]
    (source,) = (item for item in then["chain"][-1]["inputs"] if item["path"] == "src.txt")
    assert source["md5"] == md5(b"source\n")


def test_without_a_revision_it_tells_of_now(project, first):
    now = lineage(PRIVATE)
    made = now["chain"][0]
    assert commits(now) == (first, False)
    assert made["params"] == {"seed": 7}
    assert made["outputs"][0]["unchanged"]
    assert now["md5"] == md5((project.root / PRIVATE).read_bytes())


def test_a_revision_may_be_a_tag(project, first):
    project.git("tag", "v1")
    assert lineage(PRIVATE, "v1") == lineage(PRIVATE, first) | {"at": "v1"}


def test_a_run_that_was_skipped_is_in_no_chain(built):
    """The folder of the run holds the reason alone; the other run is in the chain of the report."""
    file = built.root / "dvc.yaml"
    text = file.read_text()
    folder = "artifacts/private/${item.strategy}/${item.epsilon}"
    assert f"{folder}/documents.txt" in text
    file.write_text(text.replace(f"{folder}/documents.txt", f"{folder}/skipped.json"))
    built.dvc("repro", "--single-item", "privatize@S1-1.0")
    stages = [entry["stage"] for entry in lineage(Path("artifacts/report/index.html"))["chain"]]
    assert "privatize@S2-1.0" in stages and "privatize@S1-1.0" not in stages
    with pytest.raises(RequestError, match="belongs to a run that was skipped"):
        lineage(Path("artifacts/private/S1/1.0/skipped.json"))


def test_inputs_are_compared_with_what_their_makers_made(built):
    """One output of a folder is made anew, and the inputs from this folder are reported as made
    again.
    """
    (built.root / "src.txt").write_text("another source\n")
    built.dvc("repro", "--single-item", "first", "count@a")
    (counts, _) = lineage(PRIVATE)["chain"][0]["inputs"]
    assert counts["as_made"] is False
    assert any(
        "(made again since this stage read it)" in line for line in as_text(lineage(PRIVATE))
    )


def test_the_chain_ends_at_the_files_of_the_data(built):
    """The chain lists only the files that it reads, from DVC's cache if the work tree has
    others.
    """
    for name in ("corpus/a.txt", "corpus/more/b.txt", "documents/c.txt"):
        (built.root / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (built.root / "data" / name).write_text(name)
    built.dvc("add", "data")
    file = built.root / "dvc.yaml"
    file.write_text(
        file.read_text().replace("deps: [src.txt, stage.py]", "deps: [data/corpus, stage.py]")
    )
    file.write_text(
        file.read_text().replace("artifacts/first.txt src.txt", "artifacts/first.txt data/corpus")
    )
    built.dvc("repro")
    expected = [
        {"path": f"data/{name}", "md5": md5(name.encode())}
        for name in ("corpus/a.txt", "corpus/more/b.txt")
    ]
    entry = lineage(PRIVATE)["chain"][-1]
    assert (entry["stage"], entry["command"], entry["sources"]) == ("data.dvc", None, expected)
    (built.root / "data/corpus/a.txt").unlink()
    (built.root / "data/corpus/a.txt").write_text("slipped in")
    assert lineage(PRIVATE)["chain"][-1]["sources"] == expected
    assert f"  source   data/corpus/a.txt  {md5(b'corpus/a.txt')}" in list(
        as_text(lineage(PRIVATE))
    )


def test_the_privacy_record_of_the_time_is_shown(built):
    """The record comes from the run's own folder, or from DVC's cache if the folder has another one
    by now.
    """
    record = {
        "mode": "experiment",
        "guarantee": {"formula": "none", "statement": "Not private.", "because": []},
    }
    (built.root / "record.json").write_text(json.dumps(record))
    file = built.root / "dvc.yaml"
    both = "artifacts/private/${item.strategy}/${item.epsilon}"
    before = f"cmd: python stage.py {both}/documents.txt artifacts/counts"
    assert before in file.read_text()
    file.write_text(
        file.read_text().replace(before, f"{before} && cp record.json {both}/record.json")
    )
    built.dvc("repro")
    assert lineage(PRIVATE)["chain"][0]["privacy"] == record
    own = built.root / PRIVATE.parent / "record.json"
    own.unlink()
    own.write_text(json.dumps(record | {"mode": "release"}))
    assert lineage(PRIVATE)["chain"][0]["privacy"] == record
    assert "  privacy  mode experiment; guarantee: none" in list(as_text(lineage(PRIVATE)))


def changed(report):
    return {
        one["path"]: one["files"]
        and [f"{file['how']} {Path(file['path']).name}" for file in one["files"]]
        for one in report["findings"]
        if one["state"] == "changed"
    }


def replace(file, content):
    """Write a file anew with its old times, as somebody would who wants it not to be noticed."""
    before = file.stat()
    file.unlink()
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_chain_that_nobody_touched_holds(built):
    built.commit()
    report = verify(PRIVATE)
    assert report["holds"] and {one["state"] for one in report["findings"]} == {"same"}
    kinds = [one["kind"] for one in report["findings"]]
    # private, two counts, first; counts read by private, first read by each count; source, and code
    # of four stages.
    assert {kind: kinds.count(kind) for kind in kinds} == {"output": 4, "link": 3, "code": 5}
    assert next(findings_as_text(report)).endswith("all existing files are as recorded")
    (built.root / PRIVATE).unlink()
    with pytest.raises(RequestError, match="is missing"):
        verify(PRIVATE)


def alter(built):
    """Alter a byte in the middle of a file, so that its size stays the same."""
    content = (built.root / PRIVATE).read_bytes()
    replace(built.root / PRIVATE, content[:-2] + b"X" + content[-1:])


def alter_with_list(built):
    """The list of a folder's files, too, in DVC's cache: it is not believed."""
    (out,) = yaml.safe_load(built.lock())["stages"]["privatize@S1-1.0"]["outs"]
    listing = built.root / ".dvc/cache/files/md5" / out["md5"][:2] / out["md5"][2:]
    entries = json.loads(listing.read_text())
    listing.chmod(0o644)
    listing.write_text(json.dumps([entry | {"md5": "0" * 32} for entry in entries]))
    replace(built.root / PRIVATE, b"tampered")


def rename(built):
    (built.root / PRIVATE).rename(built.root / FOLDER / "other.txt")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (alter, {FOLDER: ["changed documents.txt"]}),
        (alter_with_list, {FOLDER: None}),
        (rename, {FOLDER: ["missing documents.txt", "added other.txt"]}),
        (lambda built: replace(built.root / COUNTS, b"tampered"), {COUNTS: ["changed a.txt"]}),
        # what is absent cannot differ
        (lambda built: (built.root / "artifacts/first.txt").unlink(), {}),
    ],
)
def test_what_was_altered_is_named(built, change, found):
    change(built)
    report = verify(PRIVATE.parent)
    assert changed(report) == found and report["holds"] == (not found)
    absent = [one["path"] for one in report["findings"] if one["state"] == "absent"]
    assert absent == ([] if found else ["artifacts/first.txt"])


def test_code_may_be_here_or_in_the_commit(built):
    first = built.commit()
    (built.root / "stage.py").write_text("print('new')\n")
    report = verify(PRIVATE)
    codes = [
        (one["state"], one.get("commit")) for one in report["findings"] if one["path"] == "stage.py"
    ]
    assert report["holds"] and codes == [("committed", first)] * 4
    built.git("rm", "-q", "--cached", "stage.py")
    built.git("commit", "-q", "--amend", "-m", "never had it")
    assert set(changed(verify(PRIVATE))) == {"stage.py"}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def letter(built, tmp_path):
    """An output outside the project, with record and ledger, made with one count and a file of a
    run's folder."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    out = folder / "out.jsonl"
    ledger = folder / "out.jsonl.tokens.parquet"
    out.write_text('{"text": "rewritten"}\n')
    ledger.write_bytes(b"a ledger")
    artifacts = built.artifacts()
    record = {
        "schema": 3,
        "mode": "release",
        "guarantee": {"formula": "a bound", "statement": "In words.", "because": []},
        "made_with": {
            "a.txt": sha256(artifacts["artifacts/counts/a.txt"]),
            "S1/1.0/documents.txt": sha256(artifacts["artifacts/private/S1/1.0/documents.txt"]),
        },
        "output": {
            "sha256": sha256(out.read_bytes()),
            "tokens_sha256": sha256(ledger.read_bytes()),
        },
    }
    (folder / "out.jsonl.record.json").write_text(json.dumps(record))
    return out


def trace(file, at=None):
    record = record_beside(file)
    assert record is not None
    return released(file, record, at)


def test_it_leads_to_the_artifacts_and_on_to_the_source(built, letter):
    found = trace(letter)
    where = {item["name"]: (item["path"], item["stage"]) for item in found["made_with"]}
    assert where == {
        "a.txt": ("artifacts/counts/a.txt", "count@a"),
        "S1/1.0/documents.txt": ("artifacts/private/S1/1.0/documents.txt", "privatize@S1-1.0"),
    }
    assert [entry["stage"] for entry in found["chain"]] == [
        "privatize@S1-1.0",
        "count@b",
        "count@a",
        "first",
    ]
    assert "  privacy  mode release; guarantee: a bound" in list(as_text(found))


def test_after_the_artifacts_were_made_anew_the_commit_is_found(built, letter):
    first = built.commit()
    (built.root / "src.txt").write_text("another source\n")
    built.dvc("repro")
    built.commit()
    found = trace(letter)
    assert found["at"] == found["commit"] == first
    assert all(item["path"] for item in found["made_with"])
    assert trace(letter, "HEAD")["made_with"][0]["path"] is None
    assert trace(letter, "HEAD")["chain"] == []


def test_output_ledger_and_chain_are_verified(built, letter, capsys):
    assert main.main(["lineage", "--verify", str(letter)]) == 0
    for file in (
        letter,
        letter.with_name("out.jsonl.tokens.parquet"),
        built.root / "artifacts/first.txt",
    ):
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(b"tampered")
        capsys.readouterr()
        assert main.main(["lineage", "--verify", str(letter)]) == 1
        (line,) = (line for line in capsys.readouterr().out.splitlines() if "changed  " in line)
        assert line.endswith(file.name)
        file.write_bytes(content)
    assert main.main(["lineage", "--verify", str(letter)]) == 0


pytestmark = pytest.mark.slow

CHECKED = Path("artifacts/checks/outputs.json")


def noted(project):
    return json.loads((project.root / ".provenance.json").read_text())


def made(at=None):
    return {entry["stage"]: entry["made"] for entry in lineage(CHECKED, at)["chain"]}


def make_stale(project, to):
    """Make the stage `check` stale."""
    params = project.root / "params.yaml"
    params.write_text(re.sub(r"min_coverage: 0\.\d", f"min_coverage: {to}", params.read_text()))


@dataclass(frozen=True)
class Committed:
    """A project that was committed, made and committed again: its first commit, and who made each
    stage.
    """

    project: Project
    first: str
    origins: dict


@pytest.fixture(scope="module")
def committed(template, worked_once, prefect_server):
    def commit(project):
        first = project.commit()
        run_flow(prefect_server)
        origins = made()
        project.commit()
        return Committed(project, first, origins)

    return worked_once(template, commit)


@pytest.fixture
def origins(project, committed):
    """The makers of the stages of the project, which is a copy of the committed one."""
    project.take(committed.project.root)
    return committed.origins


@pytest.mark.usefixtures("origins")
def test_every_stage_tells_of_the_run_and_commit_that_made_it(committed):
    makers = committed.origins.values()
    assert len(makers) == 6
    assert {(one["commit"], one["committed"]) for one in makers} == {(committed.first, True)}
    assert len({one["flow_run"] for one in makers}) == 1
    assert len({uuid.UUID(one["task_run"]) for one in makers}) == 6
    (environment,) = lineage(CHECKED)["environments"].values()
    assert environment["packages"]["numpy"] == np.__version__


@pytest.mark.usefixtures("origins")
def test_a_note_of_runs_makes_nothing_stale(project, run):
    before = noted(project)
    run()
    assert noted(project) == before


def test_a_stage_that_ran_again_tells_of_that_run_alone(project, run, origins):
    """Changed parameters are no changed code."""
    make_stale(project, 0.6)
    run()
    check = made()["check"]
    head = project.git("rev-parse", "HEAD").strip()
    assert (check["commit"], check["committed"]) == (head, True)
    assert check["flow_run"] != origins["check"]["flow_run"]
    assert made() | {"check": origins["check"]} == origins == made(at="HEAD")


@pytest.mark.usefixtures("origins")
def test_a_run_with_changes_that_are_not_committed_says_so(project, run):
    make_stale(project, 0.7)
    project.behave("first wait 0")  # any file that is committed
    run()
    assert [name for name, origin in made().items() if not origin["committed"]] == ["check"]
    assert any("with changes not committed" in line for line in as_text(lineage(CHECKED)))


@pytest.mark.usefixtures("origins")
def test_what_dvc_alone_made_is_of_no_run(project, run):
    make_stale(project, 0.8)
    project.dvc("repro")
    assert [name for name, origin in made().items() if origin is None] == ["check"]
    assert any("without a record" in line for line in as_text(lineage(CHECKED)))
    run()
    assert "check" not in noted(project)["stages"]


def test_what_dvc_brings_back_is_of_the_run_that_made_it(project, run, origins):
    make_stale(project, 0.6)
    run()
    make_stale(project, 0.5)
    project.ran()
    run()
    assert project.ran() == []
    assert made() == origins
