"""Entries of dvc.lock that stages have just written, beside it, until they are put into it together.

To write the whole of dvc.lock for each stage costs as much in all as the square of the number of stages. Here a stage
appends its entry to a journal, and dvc.lock is written anew once the journal has an eighth of its size: in all a
constant number of times its final size. A small dvc.lock, which costs nothing, is written at once. Everything happens
under DVC's lock of the project, and nothing but :func:`fold` ever writes dvc.lock, by rename. A journal that a killed
run leaves is put into dvc.lock by the next one; an entry whose place somebody else has taken meanwhile is dropped,
and DVC finds the result in its cache of runs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from lexveil.runtime.lock_text import PLAIN_NAME, cut, entry_of, joined
from lexveil.runtime.project import STATE

LOCKFILE = Path("dvc.lock")
JOURNAL = STATE / "dvc.lock.journal"
SMALL = 1 << 18  # bytes of a dvc.lock that is written at once
SHARE = 8
MARK = "\x1e"  # begins a record; YAML never has it as it is


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _records() -> Iterator[tuple[str, str, str]]:
    """Yield name, hash of the entry before and entry; what a killed process wrote by half is skipped."""
    written = JOURNAL.read_bytes().decode("utf-8", errors="replace") if JOURNAL.exists() else ""  # it may end in a half
    for record in written.split(MARK)[1:]:
        head, _, entry = record.partition("\n")
        try:
            about = json.loads(head)
            if about["is"] == _hash(entry):
                yield about["name"], about["was"], entry
        except (ValueError, KeyError, TypeError):
            continue


def current(name: str) -> str | None:
    """Return a stage's entry, "" if it has none; None if it, or dvc.lock, is not of the usual form."""
    entry = entry_of(_text(LOCKFILE), name) if PLAIN_NAME.fullmatch(name) else None
    if entry is not None:
        for other, was, new in _records():
            if other == name and was == _hash(entry):
                entry = new
    return entry


def append(name: str, entry: str) -> None:
    """Make this the entry of a stage; dvc.lock is of DVC's form, and DVC's lock is held."""
    before = current(name)
    assert before is not None
    if entry == before:
        return
    head = json.dumps({"name": name, "was": _hash(before), "is": _hash(entry)})
    JOURNAL.parent.mkdir(parents=True, exist_ok=True)
    with JOURNAL.open("a", encoding="utf-8") as journal:
        journal.write(f"{MARK}{head}\n{entry}")
    size = LOCKFILE.stat().st_size if LOCKFILE.exists() else 0
    if size < SMALL or SHARE * JOURNAL.stat().st_size >= size:
        fold()


def fold() -> None:
    """Put the journal into dvc.lock; DVC's lock is held."""
    if not JOURNAL.exists():
        return
    try:
        entries = cut(_text(LOCKFILE))
    except UnicodeDecodeError:  # damaged: what is seen to next
        entries = None
    changed = False
    if entries is not None:
        for name, was, entry in _records():
            if was == _hash(entries.get(name, "")):
                entries[name], changed = entry, True
    if entries is not None and changed:
        partial = LOCKFILE.with_name(f".{LOCKFILE}.partial")
        partial.write_text(joined(entries), encoding="utf-8")
        os.replace(partial, LOCKFILE)
    JOURNAL.unlink()
