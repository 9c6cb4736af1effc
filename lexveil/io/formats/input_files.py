"""Discovery of data files under given paths, and names for the document sets that are made of the
files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from lexveil.base.errors import RequestError
from lexveil.io.formats.base import Source
from lexveil.io.formats.messages import shown
from lexveil.io.formats.registry import as_source, known_endings

# Names of files that accompany data. Any other file of an unknown kind in a folder is an error. It
# is not skipped, because a corpus that is silently read in part is worse than a rejected corpus.
COMPANION = re.compile(
    r"(readme|licen[cs]e|notice|copying|checksums?|changelog|dataset_infos?)(\.(md|txt|rst|json))?"
    r"|.*\.(md|dvc|crc|md5|sha1|sha256)"
    r"|_success|_metadata|_common_metadata",
    re.IGNORECASE,
)

SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")


def find_sources(paths: Iterable[Path]) -> list[Source]:
    """Return every readable file of ``paths``. Files are in the given order, and a folder is
    replaced by all its files in the order of their names.

    Links are followed. A file or folder that is reached twice is read once, so that a circle of
    links ends. Hidden files, and files that accompany data (README, LICENSE, checksums), are
    skipped.

    Raises:
        RequestError: if a path is missing or not readable, the ending of a file is not known, or a
            folder has no data.
    """
    seen: set[Path] = set()
    sources: list[Source] = []
    for path in paths:
        try:
            is_folder = path.is_dir()
            new = [*(_walk if is_folder else _file)(path, seen)]
            if is_folder and not new:
                raise RequestError(
                    f"{shown(path)}: no file in this folder is data; known endings are "
                    f"{known_endings()}"
                )
            sources += new
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
        why = (
            "the target of the link does not exist"
            if path.is_symlink()
            else "there is no such file or folder"
        )
        raise RequestError(f"{shown(path)}: {why}; check the path")
    if not path.is_file():
        raise RequestError(
            f"{shown(path)}: the path is not a regular file; write its content to a file first"
        )
    source = as_source(path)
    if source is None:
        hint = "; save the sheet as CSV" if path.suffix.lower() in SPREADSHEETS else ""
        raise RequestError(
            f"{shown(path)}: the ending is not an ending of data; known endings are "
            f"{known_endings()}{hint}"
        )
    real = path.resolve()
    if real not in seen:
        seen.add(real)
        yield source


def dataset_names(sources: Iterable[Source]) -> dict[str, Source]:
    """Name every document set by the stem of its file, with letters, digits, _ and - only.

    Raises:
        RequestError: if a stem has no letter or digit, or if two names would be equal or differ
            only in capitals, because some disks ignore capitals.
    """
    names: dict[str, Source] = {}
    folded: dict[str, Source] = {}
    for source in sources:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", source.stem).strip("-")
        if not name:
            raise RequestError(
                f"{shown(source.path)}: a document set's name needs a letter or digit; rename it"
            )
        other = folded.setdefault(name.lower(), source)
        if other is not source:
            raise RequestError(
                f"{shown(other.path)} and {shown(source.path)} would both become {name}; rename one"
            )
        names[name] = source
    return names
