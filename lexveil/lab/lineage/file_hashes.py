"""Hashes of the project's present files, and listings of earlier files from DVC's cache.

DVC names a file by the md5 of its bytes, and a folder by the md5 of a list of its files, with the
suffix `.dir`.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dvc.repo import Repo

Listing = dict[str, str]  # path inside a folder -> md5


def digest(listing: Mapping[str, str]) -> str:
    """Return the hash by which DVC names a folder with these files."""
    return hashlib.md5(_object(listing)).hexdigest() + ".dir"


def _object(listing: Mapping[str, str]) -> bytes:
    entries = [{"md5": md5, "relpath": path} for path, md5 in sorted(listing.items())]
    return json.dumps(entries, sort_keys=True).encode()


def below(listing: Mapping[str, str], prefix: str) -> Listing:
    """Return the files of a listing that lie in the folder ``prefix``."""
    return {
        path.removeprefix(f"{prefix}/"): md5
        for path, md5 in listing.items()
        if path.startswith(f"{prefix}/")
    }


def within(folder: str, listing: Mapping[str, str]) -> Listing:
    """Return a folder's listing with paths relative to the project. A listing of a single file has
    one entry, named "".
    """
    return {
        f"{folder}/{inside}" if inside else folder: md5 for inside, md5 in sorted(listing.items())
    }


def file_md5(file: Path) -> str:
    """Return the md5 of a file's bytes."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "md5").hexdigest()


class Files:
    """Access to the present and earlier files of the project, by paths relative to the project.

    Create this object before DVC switches to another revision: the object keeps the work tree and
    the cache of the time of its creation.

    Args:
        repo: the DVC project of the work tree.
        trust: whether to trust DVC's hash of a file if its size and times have not changed since
            DVC hashed it; otherwise all files are read.
    """

    def __init__(self, repo: Repo, trust: bool = True) -> None:
        self._root = Path(repo.root_dir)
        self._fs = repo.fs
        self._ignore = repo.dvcignore
        self._state = repo.state if trust else None
        self._cache = repo.cache.local
        self._scm = repo.scm
        self.committed = cache(self._committed)
        self.md5 = cache(self._md5)
        self.now = cache(self._now)
        self.recorded = cache(self._recorded)

    def _md5(self, path: str) -> str | None:
        """Return the present md5 of a file or folder; None if the path does not exist."""
        if (self._root / path).is_file():
            return self.now(path)[""]
        listing = self.now(path)
        return digest(listing) if listing else None

    def _now(self, path: str) -> Listing:
        """List the present files of a folder with their hashes. For a single file return one entry,
        named "".
        """
        from dvc_data.hashfile.hash import hash_file

        listing: Listing = {}
        full = self._root / path
        if full.is_file():
            return {"": str(hash_file(str(full), self._fs, "md5", state=self._state)[1].value)}
        for folder, _, names in self._ignore.walk(self._fs, str(full)):
            for name in names:
                file = Path(folder, name)
                _, hashed = hash_file(str(file), self._fs, "md5", state=self._state)
                listing[file.relative_to(full).as_posix()] = str(hashed.value)
        return listing

    def _recorded(self, path: str, md5: str | None) -> Listing | None:
        """List the files that a folder (or single file) had when its hash was ``md5``. Return None
        if neither the cache nor the work tree has that content.
        """
        if md5 is None or not md5.endswith(".dir"):
            return {"": md5} if md5 else None
        listing = self.cached_listing(md5)
        if listing is not None:
            return listing
        return self.now(path) if self.md5(path) == md5 else None

    def cached_listing(self, md5: str) -> Listing | None:
        """Read the listing of a folder from DVC's cache. Return None if the cache has no such
        listing, or a modified one.
        """
        try:
            entries = json.loads(Path(self._cache.oid_to_path(md5)).read_bytes())
            listing = {str(entry["relpath"]): str(entry["md5"]) for entry in entries}
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return listing if digest(listing) == md5 else None

    def drop_damaged(self, md5: str) -> int:
        """Delete from DVC's cache those objects of a file or folder whose bytes do not match their
        hash, and return the number of deleted objects.

        DVC itself trusts every object that is write-protected.
        """
        members = (self.cached_listing(md5) or {}).values() if md5.endswith(".dir") else ()
        damaged = 0
        for name in {md5, *members}:
            copy = Path(self._cache.oid_to_path(name))
            if copy.is_file() and file_md5(copy) != name.removesuffix(".dir"):
                copy.unlink()
                damaged += 1
        return damaged

    def _committed(self, path: str, commit: str) -> str | None:
        """Return the hash that a file or folder had in a git commit; None if the commit or the file
        does not exist.
        """
        from scmrepo.exceptions import SCMError

        try:
            fs = self._scm.get_fs(commit)
        except SCMError:
            return None
        top = Path("/") / self._root.relative_to(self._scm.root_dir)
        full = (top / path).as_posix()
        if not fs.exists(full):
            return None
        if fs.isfile(full):
            return hashlib.md5(fs.cat_file(full)).hexdigest()
        return digest(
            {
                file.removeprefix(f"{full}/"): hashlib.md5(fs.cat_file(file)).hexdigest()
                for file in fs.find(full)
            }
        )

    def last_change(self, path: str, commit: str) -> str | None:
        """Return the latest commit, up to ``commit``, that changed a file; None if no commit
        changed the file.
        """
        argv = ["git", "log", "-1", "--format=%H", commit, "--", path]
        ended = subprocess.run(argv, cwd=self._root, capture_output=True, text=True, check=False)
        return ended.stdout.strip() or None

    def content(self, path: str, md5: str) -> Path | None:
        """Return the path of a file whose content has this hash: the file at ``path``, or DVC's
        copy; None if neither has the content.
        """
        if self.md5(path) == md5:
            return self._root / path
        copy = Path(self._cache.oid_to_path(md5))
        if not copy.is_file():
            return None
        return copy if file_md5(copy) == md5 else None
