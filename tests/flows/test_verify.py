"""Verification finds what was altered, by name, and nothing where nothing was: on the scratch project."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
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
    (built.root / PRIVATE).unlink()
    with pytest.raises(RequestError, match="is not there"):
        verify(PRIVATE)


def alter(built: Project) -> None:
    """In the middle, so that the size is the old one."""
    content = (built.root / PRIVATE).read_bytes()
    replace(built.root / PRIVATE, content[:-2] + b"X" + content[-1:])


def alter_with_list(built: Project) -> None:
    """The list of a folder's files, too, in DVC's cache: it is not believed."""
    (out,) = yaml.safe_load(built.lock())["stages"]["privatize@S1-1.0"]["outs"]
    listing = built.root / ".dvc/cache/files/md5" / out["md5"][:2] / out["md5"][2:]
    entries = json.loads(listing.read_text())
    listing.chmod(0o644)
    listing.write_text(json.dumps([entry | {"md5": "0" * 32} for entry in entries]))
    replace(built.root / PRIVATE, b"tampered")


FOLDER = PRIVATE.parent.as_posix()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (alter, {("output", FOLDER): [("changed", f"{FOLDER}/documents.txt")]}),
        (alter_with_list, {("output", FOLDER): None}),
        (
            lambda built: (built.root / PRIVATE).rename(built.root / FOLDER / "other.txt"),
            {("output", FOLDER): [("missing", f"{FOLDER}/documents.txt"), ("added", f"{FOLDER}/other.txt")]},
        ),
        (
            lambda built: replace(built.root / "artifacts/counts/a.txt", b"tampered"),
            {("output", "artifacts/counts/a.txt"): [("changed", "artifacts/counts/a.txt")]},
        ),
        (lambda built: (built.root / "artifacts/first.txt").unlink(), {}),  # what is absent cannot differ
    ],
)
def test_what_was_altered_is_named(
    built: Project, change: Callable[[Project], object], found: dict[tuple[str, str], Any]
) -> None:
    change(built)
    report = verify(PRIVATE.parent)
    assert changed(report) == found and report["holds"] == (not found)
    absent = [one["path"] for one in report["findings"] if one["state"] == "absent"]
    assert absent == ([] if found else ["artifacts/first.txt"])


def test_code_may_be_here_or_in_the_commit(built: Project) -> None:
    first = built.commit()
    (built.root / "stage.py").write_text("print('new')\n")
    report = verify(PRIVATE)
    codes = [(one["state"], one.get("commit")) for one in report["findings"] if one["path"] == "stage.py"]
    assert report["holds"] and codes == [("committed", first)] * 4
    built.git("rm", "-q", "--cached", "stage.py")
    built.git("commit", "-q", "--amend", "-m", "never had it")
    assert set(changed(verify(PRIVATE))) == {("code", "stage.py")}
