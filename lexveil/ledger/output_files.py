"""Files of a release: where they are written, where they go, and what moves them there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lexveil.runtime.hashes import sha256


@dataclass(frozen=True, slots=True)
class File:
    """One file: ``final`` and ``sha256`` are None until it is written."""

    partial: Path
    final: Path | None = None
    sha256: str | None = None


def stored(con: sqlite3.Connection, number: int) -> list[File]:
    """The files of a release."""
    rows = con.execute("select partial, final, sha256 from files where release = ?", (number,)).fetchall()
    return [
        File(Path(os.fsdecode(partial)), None if final is None else Path(os.fsdecode(final)), digest)
        for partial, final, digest in rows
    ]


def store(con: sqlite3.Connection, number: int, files: Sequence[File]) -> None:
    """Remember files; one that is there is replaced."""
    con.executemany(
        "insert or replace into files values (?, ?, ?, ?)",
        (
            (number, os.fsencode(file.partial), None if file.final is None else os.fsencode(file.final), file.sha256)
            for file in files
        ),
    )


def absolute(path: Path | str) -> Path:
    """The same file from any folder; links are not followed."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(files: Iterable[File]) -> None:
    """Remove partial files, durably; those that are not there are gone already."""
    folders = set()
    for file in files:
        if file.partial.is_file() or file.partial.is_symlink():
            file.partial.unlink(missing_ok=True)
            folders.add(file.partial.parent)
    for folder in folders:
        sync(folder)


def roll_forward(files: Sequence[File], trusted: bool) -> list[str]:
    """Bring written files to where they go, durably; twice does no harm.

    Args:
        trusted: that partial files are as they were written: not so after a crash.

    Returns:
        What could not be brought there because it is gone or damaged, a line each.
    """
    lost = []
    for file in files:
        if file.final is None:
            continue
        if file.partial.is_file() and (trusted or sha256(file.partial) == file.sha256):
            os.replace(file.partial, file.final)
        elif not file.final.is_file() or sha256(file.final) != file.sha256:
            state = "damaged" if file.partial.is_file() or file.final.is_file() else "missing"
            lost.append(f"{file.final}: {state}")
    # What was announced and is not among the outputs, and what is damaged.
    discard(files)
    for folder in {file.final.parent for file in files if file.final is not None}:
        if folder.is_dir():
            sync(folder)
    return lost
