"""Which files a path stands for, and as what each is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from lexveil.errors import RequestError

Kind = Literal["json", "csv", "tsv", "parquet", "txt"]
Packing = Literal["", "gz", "zst"]

KINDS: dict[str, Kind] = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "txt",
    ".parquet": "parquet",
}
PACKINGS: tuple[Packing, ...] = ("gz", "zst")
KNOWN = "json, jsonl, ndjson, csv, tsv, txt (each also as .gz or .zst) and parquet"

# What stands beside data without being data. Anything else of unknown kind in a folder is an error, not skipped:
# a corpus that is read in part, without a word, is worse than one that is refused.
COMPANION = re.compile(
    r"(readme|licen[cs]e|notice|copying|checksums?|changelog|dataset_infos?)(\.(md|txt|rst|json))?"
    r"|.*\.(md|dvc|crc|md5|sha1|sha256)"
    r"|_success|_metadata|_common_metadata",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Source:
    """One file and how it is read. ``stem`` is its name without the endings that say so."""

    path: Path
    kind: Kind
    packing: Packing
    stem: str


@lru_cache(maxsize=256)
def shown(path: Path | str) -> str:
    """The path, or another name, as one printable line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in str(path))


def as_source(path: Path) -> Source | None:
    """How the name of a file says that it is read; None if it does not."""
    name = path.name
    packing: Packing = next((one for one in PACKINGS if name.lower().endswith(f".{one}")), "")
    if packing:
        name = name[: -len(packing) - 1]
    stem, dot, ending = name.rpartition(".")
    kind = KINDS.get(f".{ending.lower()}") if dot else None
    if kind is None or (packing and kind == "parquet"):
        return None
    return Source(path, kind, packing, stem)


def find_sources(paths: Iterable[Path]) -> list[Source]:
    """Every readable file of ``paths``: files as given, folders with all they hold, in the order of their names.

    Links are followed; a file or folder that is reached twice is read once, so that a circle of links ends.
    Hidden files and what accompanies data (README, LICENSE, checksums) are passed over.

    Raises:
        RequestError: if a path is missing or not readable, a file's ending is not known, or a folder holds no data.
    """
    seen: set[Path] = set()
    sources: list[Source] = []
    for path in paths:
        try:
            if path.is_dir():
                found = list(_walk(path, seen))
                if not found:
                    raise RequestError(f"{shown(path)}: no file in this folder can be read as data; known are {KNOWN}")
                sources += found
            else:
                sources += _file(path, seen)
        except OSError as error:
            where = Path(error.filename) if isinstance(error.filename, str) else path
            raise RequestError(f"{shown(where)}: cannot be read ({error.strerror})") from None
    return sources


def _walk(folder: Path, seen: set[Path]) -> Iterator[Source]:
    real = folder.resolve()
    if real in seen:
        return
    seen.add(real)
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.startswith(".") or COMPANION.fullmatch(entry.name):
            continue
        if entry.is_dir():
            yield from _walk(entry, seen)
        else:
            yield from _file(entry, seen)


def _file(path: Path, seen: set[Path]) -> Iterator[Source]:
    if not path.exists():
        why = "the link leads nowhere" if path.is_symlink() else "there is no such file or folder"
        raise RequestError(f"{shown(path)}: {why}; check the path")
    if not path.is_file():
        raise RequestError(f"{shown(path)}: not a regular file; write its content to a file first")
    source = as_source(path)
    if source is None:
        raise RequestError(
            f"{shown(path)}: the ending of the name does not say how to read it; known are {KNOWN}; "
            "rename, convert or remove the file"
        )
    real = path.resolve()
    if real not in seen:
        seen.add(real)
        yield source


def dataset_name(source: Source) -> str:
    """The name of a document set: the file's stem, letters, digits, _ and - only.

    Raises:
        RequestError: if nothing is left of it.
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", source.stem).strip("-")
    if not name:
        raise RequestError(
            f"{shown(source.path)}: its name becomes the document set's and needs a letter or digit (A-Z, a-z, 0-9); "
            "rename it"
        )
    return name


def dataset_names(sources: Iterable[Source]) -> dict[str, Source]:
    """Name every document set.

    Raises:
        RequestError: if two files would have the same name, also where only capitals differ (some disks see none).
    """
    names: dict[str, Source] = {}
    folded: dict[str, Source] = {}
    for source in sources:
        name = dataset_name(source)
        other = folded.setdefault(name.lower(), source)
        if other is not source:
            raise RequestError(
                f"{shown(other.path)} and {shown(source.path)} would both become the document set {name}; rename one"
            )
        names[name] = source
    return names
