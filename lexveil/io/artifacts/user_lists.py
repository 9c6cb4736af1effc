"""Lists of a user as UTF-8 text files: words and phrases, names, words with numbers, and public
scales of words for purposes.

Lists on which an artifact depends are named in params.yaml as FILE@HASH, so that a change of the
content changes the name. Messages name file and line, and quote nothing.

A scale describes itself in lines that begin with ``#``; its other lines hold a word (the words of a
collocation with spaces between them), a tab and a score from -1 to 1. Words that are not in the
file have the score 0. Public scales ship with the library or lie in the user's data folder.
"""

from __future__ import annotations

import csv
import importlib.util
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lexveil.base import paths
from lexveil.base.errors import ParameterError, RequestError
from lexveil.base.parameters import MODEL_NAME
from lexveil.base.runtime.hashes import SHORT, sha256
from lexveil.base.runtime.tables import atomic_file
from lexveil.core.detectors.detection import ANY
from lexveil.core.detectors.lists import Phrases, entries
from lexveil.core.embeddings.purposes import HEAVIEST, LIGHTEST, Purpose
from lexveil.core.text.normal_forms import token_of

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
PUBLIC = "# public"  # a line that says that no private text has a part in it
PURPOSES = "params.yaml: embeddings.purposes"
SUFFIX = ".tsv"


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


def purpose_folders() -> tuple[Path, ...]:
    """Return the folders with scales, in search order."""
    return paths.MODELS / "purposes", paths.user_data() / "purposes"


def installed_purposes() -> dict[str, Path]:
    """Return all scales by name; a scale that ships takes precedence over one of the user."""
    files: dict[str, Path] = {}
    for folder in purpose_folders():
        for file in sorted(folder.glob(f"*{SUFFIX}")):
            files.setdefault(file.stem, file)
    return files


def find_purpose(written: str) -> Purpose:
    """Return the purpose for NAME, NAME=WEIGHT or FILE.tsv=WEIGHT.

    Raises:
        RequestError: if there is none, its weight is no number from ``LIGHTEST`` to ``HEAVIEST``,
            or the file is no scale.
    """
    name, _, weight = written.partition("=")
    try:
        value = float(weight or 1)
    except ValueError:
        value = math.nan
    if not LIGHTEST <= value <= HEAVIEST:
        raise RequestError(
            f"purpose {name}: its weight is {weight}; it must be a number from {LIGHTEST:g} to "
            f"{HEAVIEST:g}"
        )
    if not name.endswith(SUFFIX):
        there = installed_purposes()
        if name not in there:
            raise RequestError(
                f"there is no purpose {name}; there are {', '.join(there)}, and `lexveil "
                "purpose build` makes others"
            )
        return read_purpose(there[name], value)
    if not re.fullmatch(MODEL_NAME, Path(name).stem):
        raise RequestError(
            f"{name}: the file's name names the purpose: small letters, digits, _ and - "
            f"before {SUFFIX}"
        )
    return read_purpose(Path(name), value)


def purposes_of(named: Mapping[str, float]) -> tuple[Purpose, ...]:
    """Return the purposes of params.yaml. Purposes that ship are given by name, and files as
    FILE.tsv@HASH, so that DVC notices changes of a file.

    Raises:
        RequestError: see ``find_purpose``.
        ParameterError: if a file does not exist, its content does not match HASH, or a file is
            named without HASH.
    """
    shipped = purpose_folders()[0]
    for name in named:
        if "@" not in name and installed_purposes().get(name, shipped).parent != shipped:
            raise ParameterError(
                f"{PURPOSES}: {name} does not ship with the library; write FILE{SUFFIX}@HASH"
            )
    return tuple(
        read_purpose(listed_file(name, PURPOSES), weight)
        if "@" in name
        else find_purpose(f"{name}={weight!r}")
        for name, weight in named.items()
    )


def require_made_with(purposes: tuple[Purpose, ...], made: Mapping[str, str], place: Path) -> None:
    """Check that an embedding was made with the purposes of params.yaml: the vectors contain the
    axes of the purposes of their training, whatever params.yaml says later.

    Args:
        made: the sha256 of each scale of the embedding, by the scale's name and weight.
        place: the embedding's folder, for messages.

    Raises:
        ParameterError: if the purposes differ.
    """
    named = {str(purpose): purpose.sha256 for purpose in purposes}
    if named == made:
        return
    changed = {*named} ^ {*made}
    what = f"has {_listed(made)}, and {PURPOSES} names {_listed(named)}"
    if not changed:
        scale = next(name for name in made if made[name] != named[name])
        what = f"has another content of the scale {scale} than {PURPOSES} names"
    raise ParameterError(
        f"{place}: {what}; its vectors keep what they were made with. Train them anew by `lexveil "
        "run`, or name in params.yaml what they have"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no purpose"


def read_purpose(file: Path, weight: float = 1.0) -> Purpose:
    """Read a purpose from the file of its scale, which gives a score to each of its words.

    Raises:
        RequestError: with the line, if there is no such file, a line is not a word and a score, a
            word is repeated, or all scores are 0.
    """
    lines = read_lines(file, "purpose", "a word, a tab and a score a line")
    rows = (
        (number, line.split("\t"))
        for number, line in enumerate(lines, 1)
        if line and not line.startswith("#")
    )
    scores = read_numbers(rows, file, "a word, a tab and a score from -1 to 1", -1, 1)
    if not any(scores.values()):
        raise RequestError(f"{file}: every word has the score 0; give some words another score")
    return Purpose(file.stem, weight, scores, sha256(file), PUBLIC in lines)


def write_purpose(scores: Mapping[str, float], about: str, is_public: bool, file: Path) -> None:
    """Write a scale; ``about`` describes it and its source in one line."""
    lines = [f"# {about}", *([PUBLIC] if is_public else [])]
    lines += [f"{word.replace('_', ' ')}\t{score:g}" for word, score in sorted(scores.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as partial:
        partial.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")
