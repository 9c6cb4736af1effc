"""Lists of a user as UTF-8 text files: words and phrases, names, and words with numbers.

Lists on which an artifact depends are named in params.yaml as FILE@HASH, so that a change of the
content changes the name. Messages name file and line, and quote nothing.
"""

from __future__ import annotations

import csv
import importlib.util
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lexveil.detectors.detection import ANY
from lexveil.detectors.lists import Phrases, entries
from lexveil.errors import ParameterError, RequestError
from lexveil.runtime.hashes import SHORT, sha256
from lexveil.text.normal_forms import token_of

SCALE_LIST = "params.yaml: embeddings.scale_list"
COLUMNS = ["word", "factor"]
# Files of the package "names", from the census of the United States of 1990: the most frequent
# first names and surnames.
FIRST = ("dist.female.first", "dist.male.first")
SURNAMES = "dist.all.last"
# number of names to take from each list
N_FIRST = 50
N_SURNAMES = 400
CONTROLS = frozenset(map(chr, [*range(9), *range(10, 32), 127]))


def read_lines(file: Path, key: str, what: str = "a word or phrase a line") -> list[str]:
    """Return the lines of a list.

    Args:
        file: file of the list.
        key: name of the list in messages.
        what: description of a correct line, for messages.

    Raises:
        ParameterError: if the file does not exist, is not a text in UTF-8, or contains a control
            character.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise ParameterError(
            f"{key}: there is no file {file}; paths are relative to the current folder"
        ) from None
    except (UnicodeDecodeError, OSError):
        raise ParameterError(f"{key}: {file} is no text file in UTF-8, {what}") from None
    if any(CONTROLS & set(line) for line in lines):
        raise ParameterError(f"{key}: {file} holds a control character; write plain text, {what}")
    return lines


def read_numbers(
    rows: Iterable[tuple[int, list[str]]], file: Path, what: str, low: float, high: float
) -> dict[str, float]:
    """Return a number for each word, by normal form (the words of a collocation are joined by
    ``_``).

    Args:
        rows: number of each line, and its fields.
        file: file of the list, for messages.
        what: description of a correct line, for messages.
        low, high: range of the numbers.

    Raises:
        ParameterError: with the line, if it is not a word and a number in the range, or a word is
            repeated.
    """
    numbers: dict[str, float] = {}
    for line, row in rows:
        try:
            text, number = row
            word = token_of(text)
            value = float(number)
        except ValueError:
            word = ""
            value = math.nan
        if not word or not low <= value <= high:
            raise ParameterError(f"{file}, line {line}: must be {what}")
        if word in numbers:
            raise ParameterError(f"{file}, line {line}: duplicate word; give it once")
        numbers[word] = value
    return numbers


def listed_file(named: str, key: str) -> Path:
    """Return the file of FILE@HASH.

    Args:
        named: FILE@HASH, as in params.yaml.
        key: key of params.yaml, for messages.

    Raises:
        ParameterError: if the file does not exist, or its content does not match HASH.
    """
    name, _, wanted = named.rpartition("@")
    file = Path(name)
    if not file.is_file():
        raise ParameterError(
            f"{key}: there is no file {name}; paths are relative to the project's folder"
        )
    if (content := sha256(file)[:SHORT]) != wanted:
        raise ParameterError(
            f"{key} is {named}, but the file is {name}@{content}; write that if its change is meant"
        )
    return file


def load_words(named: str, key: str) -> frozenset[str]:
    """Return the words of a list with one word or collocation per line; see ``listed_file`` for the
    arguments.

    Raises:
        ParameterError: see ``listed_file`` and ``read_lines``; also if the list has no word.
    """
    words = frozenset(filter(None, map(token_of, read_lines(listed_file(named, key), key))))
    if not words:
        raise ParameterError(f"{key}: {named} holds no word; write one a line, or null for no list")
    return words


def load_factors(named: str) -> dict[str, float]:
    """Return the factor of each word in FILE@HASH (params.yaml: embeddings.scale_list), a CSV with
    the columns word and factor.

    Raises:
        ParameterError: with the line; see ``listed_file``, ``read_lines`` and ``read_numbers``.
    """
    file = listed_file(named, SCALE_LIST)
    rows = csv.reader(read_lines(file, SCALE_LIST, "a CSV with a word and a factor a line"))
    try:
        if next(rows, None) != COLUMNS:
            raise ParameterError(f"{file}, line 1: the columns must be {','.join(COLUMNS)}")
        numbered = ((rows.line_num, row) for row in rows if row)
        what = "a word and a factor, a number of at least 0"
        return read_numbers(numbered, file, what, 0, sys.float_info.max)
    except csv.Error:
        raise ParameterError(f"{file} is no CSV") from None


def load_phrases(file: Path, key: str) -> Phrases:
    """Load a list of words and phrases for detectors, one per line.

    Raises:
        RequestError: see ``read_lines``; also if the list has no word.
    """
    return Phrases.of(read_lines(file, key), key)


def load_pseudonyms(file: Path | None, key: str) -> Mapping[str, tuple[str, ...]]:
    """Load public names by type. Without a file, PERSON has names of a census, or there are none if
    their package is not installed.

    Raises:
        RequestError: see ``read_lines``; also if the list repeats a name.
    """
    if file is None:
        persons = tuple(_census_names())
        return {"PERSON": persons} if persons else {}
    names: dict[str, list[str]] = {}
    for name, kind in entries(read_lines(file, key), key, ANY):
        names.setdefault(kind, []).append(" ".join(name.split()))
    if any(len(set(several)) < len(several) for several in names.values()):
        raise RequestError(f"{key}: a name is below a heading twice; leave it there once")
    if not names:
        raise RequestError(f"{key}: holds no name; write one a line")
    return {kind: tuple(several) for kind, several in names.items()}


def _census_names() -> Iterator[str]:
    """Yield full names: each frequent first name with a few of the frequent surnames. Nothing
    without the package names.
    """
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
