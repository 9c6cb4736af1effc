"""Files of a release: their temporary ("partial") paths, their final paths, and the steps that
publish them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.objects import ObjectPath, as_path
from lexveil.release.ledger.connection import Connection
from lexveil.release.ledger.database import Database, text
from lexveil.release.ledger.locks import sync


@dataclass(frozen=True, slots=True)
class File:
    """One file of a release. ``final`` (its final path) and ``sha256`` are None until the file is
    written.
    """

    partial: Path
    final: Path | None = None
    sha256: str | None = None


def stored(database: Database, number: int) -> list[File]:
    """Return the files of a release from the ledger's database. Written files are in the order of
    their publication.
    """
    rows = database.rows("select partial, final, sha256 from files where release = ?", (number,))
    files = [
        File(
            Path(os.fsdecode(partial)),
            None if final is None else as_path(os.fsdecode(final)),
            digest,
        )
        for partial, final, digest in rows
    ]
    entries = database.rows(text("ledger/written"), {"release": number})
    order = {
        file["final"]: place
        for (entry,) in entries
        for place, file in enumerate(json.loads(entry)["files"])
    }
    return sorted(files, key=lambda file: order.get(str(file.final), -1))


def store(con: Connection, number: int, files: Sequence[File]) -> None:
    """Store files of a release in the ledger's database, replacing files with the same partial
    path.
    """
    for file in files:
        final = None if file.final is None else os.fsencode(file.final)
        con.execute(
            "insert into files values (?, ?, ?, ?) on conflict (release, partial) do update "
            "set final = excluded.final, sha256 = excluded.sha256",
            (number, os.fsencode(file.partial), final, file.sha256),
        )


def absolute(path: Path | str) -> Path:
    """Return the absolute path of a file; links are not followed."""
    path = as_path(path)
    return path if isinstance(path, ObjectPath) else Path(os.path.abspath(path))  # noqa: PTH100


def make_folder(folder: Path, mode: int = 0o777) -> list[Path]:
    """Create a folder and its missing parents durably, so that a power cut cannot remove the
    folders.

    Args:
        mode: permissions of the folder itself.

    Returns:
        The folders that were created, the outermost first.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()][::-1]
    for path in missing:
        path.mkdir(mode=mode if path == folder else 0o777, exist_ok=True)
    # Sync all parents: a process may have created an existing parent and been killed before its
    # sync.
    for path in absolute(folder).parents:
        with suppress(PermissionError):
            sync(path)
    return missing


def erase(path: Path) -> None:
    """Truncate and remove a file, so that another hard link to it keeps no content."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)
    path.unlink(missing_ok=True)


def is_own(status: os.stat_result) -> bool:
    """Return whether a file is a regular file of this user with one name only. The owner of a
    second hard link could change or keep the file.
    """
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()


def discard(files: Iterable[File]) -> None:
    """Remove partial (unpublished) files durably. Files that do not exist are skipped."""
    folders = set()
    for file in files:
        if file.partial.is_file() or file.partial.is_symlink():
            erase(file.partial)
            folders.add(file.partial.parent)
    for folder in folders:
        sync(folder)


def bring(files: Sequence[tuple[Path, Path]]) -> None:
    """Move partial (unpublished) files to their final paths, durably and in the given order.

    Objects are uploaded one after the other, which may take hours. If one upload fails, the
    previously uploaded objects are removed.
    """
    uploaded = list[Path]()
    try:
        for partial, final in files:
            if isinstance(final, ObjectPath):
                uploaded.append(final)
                final.upload(partial)
            else:
                os.replace(partial, final)
                # sync before the next rename, so that no text exists without its record
                sync(final.parent)
    except BaseException:
        for final in uploaded:
            with suppress(OSError):
                final.unlink()
        raise
    for partial, final in files:
        if isinstance(final, ObjectPath):
            erase(partial)


def roll_forward(files: Sequence[File], trusted: bool) -> list[str]:
    """Publish the written files of a release durably. A second call does no harm.

    Args:
        trusted: whether partial files are known to be unchanged. This is not known after a crash.

    Returns:
        One line for each file that could not be published because it is missing or damaged.
    """
    lost = list[str]()
    whole = list[tuple[Path, Path]]()
    for file in files:
        if file.final is None:
            continue
        if file.partial.is_file() and (trusted or sha256(file.partial) == file.sha256):
            whole.append((file.partial, file.final))
        elif not file.final.is_file() or sha256(file.final) != file.sha256:
            state = "damaged" if file.partial.is_file() or file.final.is_file() else "missing"
            lost.append(f"{file.final}: {state}")
    bring(whole)
    # Remove announced files that are not outputs, and damaged files.
    discard(files)
    for folder in {file.final.parent for file in files if file.final is not None}:
        if not isinstance(folder, ObjectPath) and folder.is_dir():
            sync(folder)
    return lost
