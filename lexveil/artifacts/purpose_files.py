"""Public scales of words by their names: those that ship with the library, those of the user's data folder, and files.

A scale is a text file: lines that begin with ``#`` say what it is, the others hold a word (words of a collocation with
spaces between them), a tab and a score from -1 to 1. Words that are not in it have the score 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from lexveil import paths
from lexveil.artifacts.word_list import listed_file
from lexveil.embeddings.purposes import Purpose
from lexveil.errors import ParameterError, RequestError
from lexveil.parameters import MODEL_NAME
from lexveil.runtime.hashes import sha256
from lexveil.runtime.tables import atomic_file
from lexveil.text.listed import token_of

PUBLIC = "# public"  # a line that says that no private text has a part in it
HEAVIEST = 10.0
KEY = "params.yaml: embeddings.purposes"
SUFFIX = ".tsv"


def folders() -> tuple[Path, ...]:
    """Where scales lie, in the order in which they are looked for."""
    return paths.MODELS / "purposes", paths.user_data() / "purposes"


def installed() -> dict[str, Path]:
    """All scales by name, a shipped one before one of the user with its name."""
    files: dict[str, Path] = {}
    for folder in folders():
        for file in sorted(folder.glob(f"*{SUFFIX}")):
            files.setdefault(file.stem, file)
    return files


def find_purpose(written: str) -> Purpose:
    """The purpose that NAME, NAME=WEIGHT or FILE.tsv=WEIGHT names.

    Raises:
        RequestError: if there is none, its weight is no number above 0 and up to ``HEAVIEST``, or the file is no scale.
    """
    name, _, weight = written.partition("=")
    try:
        value = float(weight or 1)
    except ValueError:
        value = math.nan
    if not 0 < value <= HEAVIEST:
        raise RequestError(f"purpose {name}: its weight is {weight}; it must be a number above 0, up to {HEAVIEST:g}")
    if not name.endswith(SUFFIX):
        there = installed()
        if name not in there:
            raise RequestError(
                f"there is no purpose {name}; there are {', '.join(there)}, and `lexveil purpose build` makes others"
            )
        return read(there[name], value)
    if not re.fullmatch(MODEL_NAME, Path(name).stem):
        raise RequestError(f"{name}: the file's name names the purpose: small letters, digits, _ and - before {SUFFIX}")
    return read(Path(name), value)


def purposes_of(named: Mapping[str, float]) -> tuple[Purpose, ...]:
    """The purposes of params.yaml: those that ship, and files as FILE.tsv@HASH, so that DVC sees when they change.

    Raises:
        RequestError: as ``find_purpose``.
        ParameterError: if a file is not there, has another content than HASH says, or one is named without it.
    """
    found = []
    for name, weight in named.items():
        if "@" in name:
            found.append(read(listed_file(name, KEY), weight))
        elif installed().get(name, folders()[0]).parent == folders()[0]:
            found.append(find_purpose(f"{name}={weight!r}"))
        else:
            raise ParameterError(f"{KEY}: {name} does not ship with the library; write FILE{SUFFIX}@HASH")
    return tuple(found)


def read(file: Path, weight: float = 1.0) -> Purpose:
    """Read a scale.

    Raises:
        RequestError: naming the line, if there is no such file, a line is no word and score, a word stands there twice,
            or all scores are the same.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise RequestError(f"there is no file {file}") from None
    except (OSError, UnicodeDecodeError):
        raise RequestError(f"{file} is no text file in UTF-8 that can be read") from None
    scores: dict[str, float] = {}
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        word, score = _entry(line)
        if not word or not -1 <= score <= 1:
            raise RequestError(f"{file}, line {number}: must be a word, a tab and a score from -1 to 1")
        if word in scores:
            raise RequestError(f"{file}, line {number}: this word stands there before; give it once")
        scores[word] = score
    if len({*scores.values()}) < 2 and {*scores.values()} <= {0.0}:
        raise RequestError(f"{file}: no word has a score other than 0, so it tells no word from another")
    return Purpose(file.stem, weight, scores, sha256(file), PUBLIC in lines)


def _entry(line: str) -> tuple[str, float]:
    word, _, score = line.partition("\t")
    try:
        return token_of(word), float(score)
    except ValueError:
        return "", math.nan


def write(scores: Mapping[str, float], about: str, is_public: bool, file: Path) -> None:
    """Write a scale; ``about`` says in one line what it is and of what."""
    lines = [f"# {about}", *([PUBLIC] if is_public else [])]
    lines += [f"{word.replace('_', ' ')}\t{score:g}" for word, score in sorted(scores.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as partial:
        partial.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")
