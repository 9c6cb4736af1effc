"""Hashes of files, and the version and hash of the code that computes an output."""

from __future__ import annotations

import hashlib
import importlib.util
from functools import cache
from importlib.metadata import version as installed
from pathlib import Path

from lexveil.base import paths

# digits of a hash in NAME@HASH and FILE@HASH: enough to distinguish the files of a project
SHORT = 12


def sha256(file: Path) -> str:
    """Return the sha256 of a file, in hex."""
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


@cache
def version() -> str:
    """Return the version of Lexveil."""
    return installed("lexveil")


@cache
def code_hash() -> str:
    """Return the sha256 of all code that affects an output: ``lexveil``, ``sql`` and, in a project,
    ``tasks``.
    """
    tasks = importlib.util.find_spec("tasks")
    return _hash_of(
        paths.LIBRARY, paths.sql(), *([Path(tasks.origin).parent] if tasks and tasks.origin else [])
    )


@cache
def library_hash() -> str:
    """Return the sha256 of the code in ``lexveil`` only, which does not depend on the current
    folder.
    """
    return _hash_of(paths.LIBRARY)


def _hash_of(*folders: Path) -> str:
    hashed = hashlib.sha256()
    for folder in folders:
        for file in sorted(file for file in folder.rglob("*") if file.suffix in (".py", ".sql")):
            hashed.update(
                f"{folder.name}/{file.relative_to(folder).as_posix()}\0{sha256(file)}\n".encode()
            )
    return hashed.hexdigest()
