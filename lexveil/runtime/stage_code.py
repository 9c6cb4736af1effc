"""Hashes of the library files that each stage of the graph runs, as dvc.yaml names them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from lexveil import paths
from lexveil.runtime.hashes import sha256

STAGE = re.compile(r"^  (\w+):$")
CODE_FILE = re.compile(r"^      - (lexveil/\S+)$")


def code_hashes() -> dict[str, str]:
    """Return one hash for each stage, over the files of the installed library that it runs, names and contents."""
    hashes: dict[str, hashlib._Hash] = {}
    stage = ""
    for line in (paths.TEMPLATE / "dvc.yaml").read_text(encoding="utf-8").splitlines():
        if match := STAGE.match(line):
            stage = match[1]
            hashes[stage] = hashlib.sha256()
        elif match := CODE_FILE.match(line):
            for file in _files(paths.LIBRARY.parent / match[1]):
                name = file.relative_to(paths.LIBRARY.parent).as_posix()
                hashes[stage].update(f"{name}\0{sha256(file)}\n".encode())
    return {stage: digest.hexdigest() for stage, digest in hashes.items()}


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    else:
        yield from sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
