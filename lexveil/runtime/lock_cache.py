"""Entries of dvc.lock that were parsed before: with hundreds of stages, parsing them costs seconds a time.

Each is kept by the hash of its text. An entry that JSON would not give back as it was is parsed each time.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from lexveil.runtime.lock_text import cut
from lexveil.runtime.lock_yaml import read_entries
from lexveil.runtime.project import STATE

FOLDER = STATE / "lock-entries"


def parsed(text: str, kind: str, parse: Callable[[str], dict[str, Any]]) -> dict[str, Any] | None:
    """Return what ``parse`` makes of each entry; None if the file is not of the form DVC gives it.

    Args:
        text: of dvc.lock.
        kind: of parser, in letters; each has entries of its own.
        parse: reads the text of a dvc.lock and returns its entries by name.
    """
    texts = cut(text)
    if texts is None:
        return None
    file = FOLDER.absolute() / f"{kind}.json"
    known = _known(file)
    hashes = {name: hashlib.sha256(entry.encode()).hexdigest() for name, entry in texts.items()}
    unknown = [name for name in texts if hashes[name] not in known]
    fresh = read_entries({name: texts[name] for name in unknown}, parse)
    if fresh.keys() != set(unknown):
        return None
    kept = {hashes[name]: json.dumps(entry) for name, entry in fresh.items() if _plain(entry)}
    if kept:
        known.update(kept)
        _write(file, {hashed: known[hashed] for hashed in hashes.values() if hashed in known})
    return {name: fresh[name] if name in fresh else json.loads(known[hashes[name]]) for name in texts}


def _plain(value: object) -> bool:
    """Whether JSON gives a value back as it was."""
    if type(value) is dict:
        return all(type(key) is str and _plain(inner) for key, inner in value.items())
    if type(value) is list:
        return all(map(_plain, value))
    return value is None or type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value))


@cache
def _known(file: Path) -> dict[str, str]:
    """Return the entries that are kept; once for each process, which adds to them."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {name: text for name, text in content.items() if type(text) is str} if type(content) is dict else {}


def _write(file: Path, content: dict[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps(content), encoding="utf-8")
    os.replace(partial, file)
