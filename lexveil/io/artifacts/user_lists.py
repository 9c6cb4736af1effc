"""Word lists of a user as UTF-8 text files: words and phrases, names, words with numbers, and
public word scales for purposes (properties to preserve, such as sentiment).

params.yaml names lists on which an artifact depends as FILE@HASH, so that a change of the content
changes the name. Messages name the file and the line, and quote nothing of the content.

A scale describes itself in lines that begin with ``#``. Each other line has a word, a tab and a
score from -1 to 1; a collocation is written with spaces between its words. Words that the file
lacks have the score 0. Public scales are part of the library or lie in the user's data folder.
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
PUBLIC = "# public"  # a line which declares that no private text went into the scale
PURPOSES = "params.yaml: embeddings.purposes"
SUFFIX = ".tsv"


def read_lines(file: Path, key: str, what: str = "one word or phrase per line") -> list[str]:
    """Return the lines of a user's list file.

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
            f"{key}: the file {file} does not exist; paths are relative to the current folder"
        ) from None
    except (UnicodeDecodeError, OSError):
        raise ParameterError(f"{key}: {file} is not a text file in UTF-8; write {what}") from None
    if any(CONTROLS & set(line) for line in lines):
        raise ParameterError(f"{key}: {file} has a control character; write plain text, {what}")
    return lines


def read_numbers(
    rows: Iterable[tuple[int, list[str]]], file: Path, what: str, low: float, high: float
) -> dict[str, float]:
    """Return the number that a list gives to each word, by the word's normal form. The normal form
    of a collocation joins its words by ``_``.

    Args:
        rows: number of each line, and its fields.
        file: file of the list, for messages.
        what: description of a correct line, for messages.
        low, high: range of the numbers.

    Raises:
        ParameterError: if a line is not a word and a number in the range, or if a word is repeated;
            the message names the line.
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
            raise ParameterError(f"{file}, line {line}: the line must be {what}")
        if word in numbers:
            raise ParameterError(f"{file}, line {line}: the word is a duplicate; give it once")
        numbers[word] = value
    return numbers


def listed_file(named: str, key: str) -> Path:
    """Return the file of a FILE@HASH reference, after checking its hash.

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
            f"{key}: the file {name} does not exist; paths are relative to the project's folder"
        )
    if (content := sha256(file)[:SHORT]) != wanted:
        raise ParameterError(
            f"{key} is {named}, but the file is now {name}@{content}; write the latter if "
            "the change is intended"
        )
    return file


def load_words(named: str, key: str) -> frozenset[str]:
    """Return the words of a list with one word or collocation per line; see ``listed_file`` for the
    arguments.

    Raises:
        ParameterError: if ``listed_file`` or ``read_lines`` rejects the file, or if the list has no
            word.
    """
    words = frozenset(filter(None, map(token_of, read_lines(listed_file(named, key), key))))
    if not words:
        raise ParameterError(
            f"{key}: {named} has no word; write one word per line, or null for no list"
        )
    return words


def load_factors(named: str) -> dict[str, float]:
    """Return the vector length factor of each word in FILE@HASH (params.yaml:
    embeddings.scale_list), a CSV file with the columns word and factor.

    Raises:
        ParameterError: if ``listed_file``, ``read_lines`` or ``read_numbers`` rejects the file; the
            message names the line.
    """
    file = listed_file(named, SCALE_LIST)
    rows = csv.reader(
        read_lines(file, SCALE_LIST, "a CSV file with one word and one factor per line")
    )
    try:
        if next(rows, None) != COLUMNS:
            raise ParameterError(f"{file}, line 1: the columns must be {','.join(COLUMNS)}")
        numbered = ((rows.line_num, row) for row in rows if row)
        what = "a word and a factor, which is a number of at least 0"
        return read_numbers(numbered, file, what, 0, sys.float_info.max)
    except csv.Error:
        raise ParameterError(f"{file} is not a CSV file") from None


def load_phrases(file: Path, key: str) -> Phrases:
    """Load a list of words and phrases for detectors, with one word or phrase per line.

    Raises:
        RequestError: if ``read_lines`` rejects the file, or if the list has no word.
    """
    return Phrases.of(read_lines(file, key), key)


def load_pseudonyms(file: Path | None, key: str) -> Mapping[str, tuple[str, ...]]:
    """Load public names for pseudonyms, by entity type. Without a file, the type PERSON has names
    of a census. Without the package of these names, the result is empty.

    Raises:
        RequestError: if ``read_lines`` rejects the file, or if the list repeats a name.
    """
    if file is None:
        persons = tuple(_census_names())
        return {"PERSON": persons} if persons else {}
    names: dict[str, list[str]] = {}
    for name, kind in entries(read_lines(file, key), key, ANY):
        names.setdefault(kind, []).append(" ".join(name.split()))
    if any(len(set(several)) < len(several) for several in names.values()):
        raise RequestError(f"{key}: a name is repeated below one heading; write it once")
    if not names:
        raise RequestError(f"{key}: the list has no name; write one name per line")
    return {kind: tuple(several) for kind, several in names.items()}


def _census_names() -> Iterator[str]:
    """Yield full names of a census: each frequent first name with a few of the frequent surnames.
    If the package of these names is not installed, yield nothing.
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
    """Return the folders with word scales for purposes, in search order."""
    return paths.MODELS / "purposes", paths.user_data() / "purposes"


def installed_purposes() -> dict[str, Path]:
    """Return the files of all installed word scales by name. If two scales have one name, the scale
    of the library takes precedence over the scale of the user.
    """
    files: dict[str, Path] = {}
    for folder in purpose_folders():
        for file in sorted(folder.glob(f"*{SUFFIX}")):
            files.setdefault(file.stem, file)
    return files


def find_purpose(written: str) -> Purpose:
    """Return the purpose (a word scale to preserve, with a weight) for NAME, NAME=WEIGHT or
    FILE.tsv=WEIGHT.

    Raises:
        RequestError: if there is no such purpose, its weight is no number from ``LIGHTEST`` to
            ``HEAVIEST``, or the file is no scale.
    """
    name, _, weight = written.partition("=")
    try:
        value = float(weight or 1)
    except ValueError:
        value = math.nan
    if not LIGHTEST <= value <= HEAVIEST:
        raise RequestError(
            f"purpose {name}: the weight is {weight}, but it must be a number from "
            f"{LIGHTEST:g} to {HEAVIEST:g}"
        )
    if not name.endswith(SUFFIX):
        there = installed_purposes()
        if name not in there:
            raise RequestError(
                f"there is no purpose {name}; choose from {', '.join(there)}, or make one "
                "by `lexveil purpose build`"
            )
        return read_purpose(there[name], value)
    if not re.fullmatch(MODEL_NAME, Path(name).stem):
        raise RequestError(
            f"{name}: the name of the file is the name of the purpose, so it must consist "
            f"of small letters, digits, _ and - before {SUFFIX}; rename the file"
        )
    return read_purpose(Path(name), value)


def purposes_of(named: Mapping[str, float]) -> tuple[Purpose, ...]:
    """Return the purposes (word scales to preserve) that params.yaml names. A purpose of the
    library is given by name. Another purpose is given as FILE.tsv@HASH, so that DVC notices a
    change of the file.

    Raises:
        RequestError: see ``find_purpose``.
        ParameterError: if a file does not exist, its content does not match HASH, or a file is
            named without HASH.
    """
    shipped = purpose_folders()[0]
    for name in named:
        if "@" not in name and installed_purposes().get(name, shipped).parent != shipped:
            raise ParameterError(
                f"{PURPOSES}: purpose {name} is not part of the library; write FILE{SUFFIX}@HASH"
            )
    return tuple(
        read_purpose(listed_file(name, PURPOSES), weight)
        if "@" in name
        else find_purpose(f"{name}={weight!r}")
        for name, weight in named.items()
    )


def require_made_with(purposes: tuple[Purpose, ...], made: Mapping[str, str], place: Path) -> None:
    """Check that an embedding was trained with the purposes (word scales to preserve) of
    params.yaml. Its vectors contain the axes of the purposes of their training, even if params.yaml
    changes later.

    Args:
        made: the SHA-256 of each scale of the embedding, by the scale's name and weight.
        place: the embedding's folder, for messages.

    Raises:
        ParameterError: if the purposes differ.
    """
    named = {str(purpose): purpose.sha256 for purpose in purposes}
    if named == made:
        return
    changed = {*named} ^ {*made}
    what = f"the vectors have {_listed(made)}, but {PURPOSES} names {_listed(named)}"
    if not changed:
        scale = next(name for name in made if made[name] != named[name])
        what = f"the vectors have another content of the scale {scale} than {PURPOSES} names"
    raise ParameterError(
        f"{place}: {what}; train the vectors anew by `lexveil run`, or name in params.yaml "
        "the purposes that the vectors have"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no purpose"


def read_purpose(file: Path, weight: float = 1.0) -> Purpose:
    """Read a purpose (a word scale to preserve) from the file of its scale, which gives each word a
    score.

    Raises:
        RequestError: if there is no such file, a line is not a word and a score, a word is
            repeated, or all scores are 0; the message names the line.
    """
    lines = read_lines(file, "purpose", "a word, a tab and a score per line")
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
    """Write a word scale to a file.

    Args:
        about: one line that describes the scale and its source.
    """
    lines = [f"# {about}", *([PUBLIC] if is_public else [])]
    lines += [f"{word.replace('_', ' ')}\t{score:g}" for word, score in sorted(scores.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as partial:
        partial.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")
