"""Garbage collection for `lexveil gc`: removes objects of DVC's cache that nothing refers to.

An object is kept if the work tree, a commit of a branch or tag, or a release refers to it. A
release is a file `*.record.json` inside the project with the mode release, which `lexveil
privatize` wrote. Its guarantee can only be checked with its artifacts, and if they are in no
commit, nothing else would keep them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lexveil.errors import RequestError
from lexveil.lineage.file_hashes import Files
from lexveil.lineage.release_lineage import RECORD, Search, is_of_packaged_model, read_record
from lexveil.lineage.results import Garbage, ReleaseArtifacts
from lexveil.runtime.dvc_graph import LOCKFILE, open_repo

if TYPE_CHECKING:
    from dvc.repo import Repo

SKIPPED = {".git", ".dvc", ".venv", ".lexveil"}


def collect(root: Path, remove: bool) -> Garbage:
    """Find objects that nothing refers to, and remove them if ``remove`` is set.

    Raises:
        RequestError: if a commit cannot be read. Its references are then unknown, and nothing is
            removed.
    """
    from dvc.repo import lock_repo
    from dvc_data.hashfile.gc import gc
    from dvc_data.hashfile.hash_info import HashInfo

    with open_repo() as repo, lock_repo(repo):
        odb = repo.cache.local
        files = Files(repo)
        named: set[str] = set()
        unlisted = 0
        for md5 in _named(repo):
            named.add(md5)
            if md5.endswith(".dir"):
                listing = files.cached_listing(md5)
                named.update((listing or {}).values())
                unlisted += listing is None
        records = dict(_releases(root))
        wanted = {hashed for names in records.values() for hashed in names.values()}
        # Each object is read once, because the cache names objects by md5 and records by sha256.
        cached = Search(files).in_cache(wanted) if wanted else {}
        named.update(cached.values())
        releases: list[ReleaseArtifacts] = [
            {
                "file": str(file.relative_to(root)),
                "missing": sorted(name for name, hashed in names.items() if hashed not in cached),
            }
            for file, names in records.items()
        ]
        sizes = {oid: _size(Path(odb.oid_to_path(oid))) for oid in odb.all()}
        unused = [oid for oid in sizes if oid not in named]
        if remove and unused:
            gc(odb, [HashInfo(odb.hash_name, md5) for md5 in named])  # DVC's own
        return {
            "removed": remove,
            "objects": len(unused),
            "bytes": sum(sizes[oid] for oid in unused),
            "kept_objects": len(sizes) - len(unused),
            "kept_bytes": sum(size for oid, size in sizes.items() if oid in named),
            "unlisted": unlisted,
            "releases": releases,
        }


def _named(repo: Repo) -> set[str]:
    """Return every hash that a dvc.lock or *.dvc names as an output, in the work tree and in all
    commits.
    """
    from dvc.scm import NoSCM

    root = Path(repo.root_dir)
    texts = {
        file.read_bytes(): str(file.relative_to(root))
        for file in _walk(root)
        if _is_pointer(file.name)
    }
    if not isinstance(repo.scm, NoSCM) and repo.scm.get_ref("HEAD"):
        for commit in repo.scm.list_all_commits():
            fs = repo.scm.get_fs(commit)
            for path in fs.find("/"):
                if _is_pointer(Path(path).name):
                    texts.setdefault(
                        fs.cat_file(path), f"{path.lstrip('/')} in commit {commit[:10]}"
                    )
    return {md5 for text, where in texts.items() for md5 in _outputs(text, where)}


def _is_pointer(name: str) -> bool:
    return name == LOCKFILE.name or (name.endswith(".dvc") and name != ".dvc")


def _outputs(text: bytes, where: str) -> Iterator[str]:
    """Yield the hashes of the outputs in one dvc.lock or *.dvc file."""
    import yaml

    try:
        read = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
        for stage in (read, *(read.get("stages") or {}).values()):  # a *.dvc is one stage
            for out in stage.get("outs", ()):
                # If a remote keeps versions, an output names its files one by one.
                yield from (file["md5"] for file in (out, *out.get("files", ())) if "md5" in file)
    except (yaml.YAMLError, AttributeError, TypeError):
        raise RequestError(
            f"{where} cannot be read, so what it refers to is not known; nothing is removed"
        ) from None


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED)
        yield from (Path(folder, name) for name in sorted(names))


def _releases(root: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield the records of releases inside the project, ordered by path, each with the hashes of
    the artifacts that DVC keeps for the release.
    """
    for file in _walk(root):
        if file.name.endswith(RECORD):
            try:
                record = read_record(file)
            except RequestError:  # another file with this name
                continue
            if record["mode"] == "release":
                yield file, {} if is_of_packaged_model(record) else record["made_with"]


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def as_text(report: Garbage) -> Iterator[str]:
    """Yield the report as lines of text."""
    verb = "removed" if report["removed"] else "would remove"
    yield f"{verb} {_amount(report['objects'], report['bytes'])} that nothing refers to"
    yield (
        f"kept {_amount(report['kept_objects'], report['kept_bytes'])} of the work tree, "
        "commits, tags and releases"
    )
    if report["unlisted"]:
        yield (
            f"{report['unlisted']:,} folders of older commits are not in the cache as a "
            "whole; a remote may have them"
        )
    for release in report["releases"]:
        missing = (
            f"; not in the cache: {', '.join(release['missing'])}" if release["missing"] else ""
        )
        yield f"release {release['file']}: kept{missing}"
    if not report["removed"] and report["objects"]:
        yield "nothing was removed; `lexveil gc --remove` removes"


def _amount(objects: int, size: int) -> str:
    return f"{objects:,} object{'s' * (objects != 1)} ({size / 2**20:,.1f} MiB)"
