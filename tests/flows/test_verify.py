"""Verification finds what was altered, by name, and nothing where nothing was: on the scratch project."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from scratch_project import Project

from lexveil.errors import RequestError
from lexveil.lineage.verify import as_text, verify

pytestmark = pytest.mark.slow

PRIVATE = Path("artifacts/private/S1/1.0/documents.txt")


def changed(report: dict) -> dict[tuple[str, str], list[tuple[str, str]] | None]:
    return {
        (one["kind"], one["path"]): one["files"] and [(file["how"], file["path"]) for file in one["files"]]
        for one in report["findings"]
        if one["state"] == "changed"
    }


def replace(file: Path, content: bytes) -> None:
    """Write a file anew with its old times, as somebody would who wants it not to be noticed."""
    before = file.stat()
    file.unlink()
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_chain_that_nobody_touched_holds(built: Project) -> None:
    built.commit()
    report = verify(PRIVATE)
    assert report["holds"] and {one["state"] for one in report["findings"]} == {"same"}
    kinds = [one["kind"] for one in report["findings"]]
    # private, two counts, first; counts read by private, first read by each count; source, and code of four stages.
    assert {kind: kinds.count(kind) for kind in kinds} == {"output": 4, "link": 3, "code": 5}
    assert next(as_text(report)).endswith("everything that is here is as recorded")


def test_an_altered_file_is_named_even_with_its_old_size_and_times(built: Project) -> None:
    file = built.root / PRIVATE
    content = file.read_bytes()
    replace(file, content[:-2] + b"X" + content[-1:])
    assert file.stat().st_size == len(content)
    report = verify(PRIVATE)
    assert not report["holds"]
    assert changed(report) == {("output", "artifacts/private/S1/1.0"): [("changed", PRIVATE.as_posix())]}
    assert any(f"changed  {PRIVATE}" in line for line in as_text(report))


def test_missing_and_added_files_of_a_folder_are_named(built: Project) -> None:
    folder = built.root / PRIVATE.parent
    (folder / "documents.txt").rename(folder / "other.txt")
    assert changed(verify(PRIVATE.parent)) == {
        ("output", PRIVATE.parent.as_posix()): [
            ("missing", PRIVATE.as_posix()),
            ("added", (PRIVATE.parent / "other.txt").as_posix()),
        ]
    }


def test_further_down_the_chain_and_only_there(built: Project) -> None:
    replace(built.root / "artifacts/counts/a.txt", b"tampered")
    found = changed(verify(PRIVATE))
    assert found == {("output", "artifacts/counts/a.txt"): [("changed", "artifacts/counts/a.txt")]}
    assert verify(Path("artifacts/first.txt"))["holds"]


def test_code_may_be_here_or_in_the_commit(built: Project) -> None:
    first = built.commit()
    (built.root / "stage.py").write_text("print('new')\n")
    report = verify(PRIVATE)
    codes = [(one["state"], one.get("commit")) for one in report["findings"] if one["path"] == "stage.py"]
    assert report["holds"] and codes == [("committed", first)] * 4
    built.git("rm", "-q", "--cached", "stage.py")
    built.git("commit", "-q", "--amend", "-m", "never had it")
    assert set(changed(verify(PRIVATE))) == {("code", "stage.py")}


def test_what_is_absent_cannot_differ_but_the_artifact_must_be_there(built: Project) -> None:
    (built.root / "artifacts/first.txt").unlink()
    report = verify(PRIVATE)
    assert report["holds"]
    assert [one["path"] for one in report["findings"] if one["state"] == "absent"] == ["artifacts/first.txt"]
    (built.root / PRIVATE).unlink()
    with pytest.raises(RequestError, match="is not there"):
        verify(PRIVATE)


def test_a_list_of_files_that_was_altered_is_not_believed(built: Project) -> None:
    (recorded,) = (one["md5"] for one in lock_outs(built, "privatize@S1-1.0"))
    listing = built.root / ".dvc/cache/files/md5" / recorded[:2] / recorded[2:]
    entries = json.loads(listing.read_text())
    listing.chmod(0o644)
    listing.write_text(json.dumps([entry | {"md5": "0" * 32} for entry in entries]))
    replace(built.root / PRIVATE, b"tampered")
    assert changed(verify(PRIVATE)) == {("output", "artifacts/private/S1/1.0"): None}


def lock_outs(project: Project, stage: str) -> list[dict]:
    import yaml

    return yaml.safe_load(project.lock())["stages"][stage]["outs"]
