"""What an output was made with: file hashes and the version of the code."""

from __future__ import annotations

import hashlib
from importlib.metadata import version as installed
from pathlib import Path


def sha256(file: Path) -> str:
    """The sha256 of a file, in hex."""
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def version() -> str:
    """The version of Lexveil."""
    return installed("lexveil")


def code_hash() -> str:
    """The sha256 of all code that makes an output: of ``lexveil`` and ``sql``, names and contents."""
    root = Path(__file__).resolve().parents[2]
    files = [*root.glob("lexveil/**/*.py"), *root.glob("sql/*/*.sql")]
    hashed = hashlib.sha256()
    for file in sorted(files):
        hashed.update(f"{file.relative_to(root).as_posix()}\0{sha256(file)}\n".encode())
    return hashed.hexdigest()
