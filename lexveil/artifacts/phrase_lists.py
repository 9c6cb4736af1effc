"""The user's lists of words and phrases that detectors go by, and of names that pseudonyms are drawn from."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path

from lexveil.detectors.detection import ANY
from lexveil.detectors.lists import Phrases, entries
from lexveil.errors import RequestError

# Of package names, from the census of the United States of 1990: the most frequent first names, and surnames.
FIRST, SURNAMES = ("dist.female.first", "dist.male.first"), "dist.all.last"
N_FIRST, N_SURNAMES = 50, 400  # of each list
CONTROLS = frozenset(map(chr, [*range(32), 127]))


def load_phrases(file: Path, key: str) -> Phrases:
    """The words and phrases of a list, a line each.

    Args:
        key: what messages call the file; they quote nothing of it.

    Raises:
        RequestError: if it is not there, no text in UTF-8, or holds no word.
    """
    return Phrases.of(_lines(file, key), key)


def load_pseudonyms(file: Path | None, key: str) -> Mapping[str, tuple[str, ...]]:
    """Public names by type; without a file, those of a census for PERSON, or none where its package is not installed.

    Raises:
        RequestError: as ``load_phrases``, or if it holds a name twice.
    """
    if file is None:
        persons = tuple(_census_names())
        return {"PERSON": persons} if persons else {}
    names: dict[str, list[str]] = {}
    for name, kind in entries(_lines(file, key), key, ANY):
        names.setdefault(kind, []).append(" ".join(name.split()))
    for several in names.values():
        if len(set(several)) < len(several):
            raise RequestError(f"{key}: a name stands below a heading twice; leave it there once")
    if not names:
        raise RequestError(f"{key}: holds no name; write one a line")
    return {kind: tuple(several) for kind, several in names.items()}


def _lines(file: Path, key: str) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise RequestError(f"{key}: there is no file {file}; paths are relative to the current folder") from None
    except (UnicodeDecodeError, OSError):
        raise RequestError(f"{key}: {file} is no text file in UTF-8, a word or phrase a line") from None
    if any(CONTROLS & set(line.replace("\t", " ")) for line in lines):
        raise RequestError(f"{key}: {file} holds a control character; write plain text, a word or phrase a line")
    return lines


def _census_names() -> Iterator[str]:
    """Full names, each frequent first name with a few of the frequent surnames; nothing without the package names."""
    spec = importlib.util.find_spec("names")
    if spec is None or spec.origin is None:
        return
    folder = Path(spec.origin).parent
    first = [name for file in FIRST for name in _census(folder / file, N_FIRST)]
    for number, surname in enumerate(_census(folder / SURNAMES, N_SURNAMES)):
        yield f"{first[number % len(first)]} {surname}"


def _census(file: Path, most: int) -> list[str]:
    lines = file.read_text(encoding="ascii").splitlines()
    return [line.split()[0].capitalize() for line in lines[:most] if line.strip()]
