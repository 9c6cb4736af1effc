"""`lexveil gc`: objects of DVC's cache that nothing refers to any more.

Kept is what the work tree, any commit of any branch or tag, or a release refers to. A release is a file
`*.record.json` inside the project whose mode is release: `lexveil privatize` wrote it, and its artifacts are what the
guarantee can be checked with. Where it is in no commit, nothing else would keep them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.files import Files
from flows.graph import open_repo
from flows.released import RECORD, Search, read_record
from tasks.errors import RequestError

if TYPE_CHECKING:
    from dvc.repo import Repo
    from dvc_data.hashfile.hash_info import HashInfo

SKIPPED = {".git", ".dvc", ".venv", ".lexveil"}


def collect(root: Path, remove: bool) -> dict[str, Any]:
    """Find what nothing refers to, and remove it if asked.

    Returns:
        removed: whether it is gone now; objects, bytes: of what nothing refers to; kept_objects, kept_bytes;
        releases: each with file and missing (names of what it was made with that the cache does not hold).

    Raises:
        RequestError: if a commit cannot be read: what it refers to is then not known, and nothing is removed.
    """
    from dvc.repo import lock_repo
    from dvc_data.hashfile.gc import gc
    from dvc_data.hashfile.hash_info import HashInfo

    with open_repo() as repo, lock_repo(repo):
        odb = repo.cache.local
        used = _used(repo)
        records = {file: read_record(file)["made_with"] for file in _releases(root)}
        wanted = {hashed for names in records.values() for hashed in names.values()}
        # Every object is read once: their names in the cache are md5, those in records sha256.
        found = Search(Files(repo)).in_cache(wanted) if wanted else {}
        used.update(HashInfo("md5", md5) for md5 in found.values())
        releases = [
            {
                "file": str(file.relative_to(root)),
                "missing": sorted(name for name, hashed in names.items() if hashed not in found),
            }
            for file, names in records.items()
        ]
        sizes = {oid: _size(Path(odb.oid_to_path(oid))) for oid in odb.all()}
        named = {one.value for one in used}
        unused = [oid for oid in sizes if oid not in named]
        if remove and unused:
            gc(odb, used)  # DVC's own
        return {
            "removed": remove,
            "objects": len(unused),
            "bytes": sum(sizes[oid] for oid in unused),
            "kept_objects": len(sizes) - len(unused),
            "kept_bytes": sum(size for oid, size in sizes.items() if oid in named),
            "releases": releases,
        }


def _used(repo: Repo) -> set[HashInfo]:
    """Return every hash that the work tree or a commit refers to, as `dvc gc --all-commits` collects them."""
    from dvc.exceptions import DvcException
    from dvc.scm import NoSCM

    try:
        # Without a repository there are no commits, and the work tree is all there is.
        found = repo.used_objs(all_commits=not isinstance(repo.scm, NoSCM))
    except DvcException as error:
        line = " ".join(str(error).split())[:200]
        raise RequestError(f"DVC cannot read every commit, so nothing is removed: {line}") from error
    return {hashed for some in found.values() for hashed in some}


def _releases(root: Path) -> Iterator[Path]:
    """Yield the records of releases inside the project, in order of their paths."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED)
        for name in sorted(names):
            if name.endswith(RECORD):
                file = Path(folder, name)
                try:
                    release = read_record(file)["mode"] == "release"
                except RequestError:  # some other file of that name
                    continue
                if release:
                    yield file


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def as_text(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that people read."""
    verb = "removed" if report["removed"] else "would remove"
    yield f"{verb} {_amount(report['objects'], report['bytes'])} that nothing refers to"
    yield f"kept {_amount(report['kept_objects'], report['kept_bytes'])} of the work tree, commits, tags and releases"
    for release in report["releases"]:
        missing = f"; not in the cache: {', '.join(release['missing'])}" if release["missing"] else ""
        yield f"release {release['file']}: kept{missing}"
    if not report["removed"] and report["objects"]:
        yield "nothing was removed; `lexveil gc --remove` removes"


def _amount(objects: int, size: int) -> str:
    return f"{objects:,} object{'s' * (objects != 1)} ({size / 2**20:,.1f} MiB)"
