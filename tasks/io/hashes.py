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
