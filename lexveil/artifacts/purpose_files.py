"""Public scales of words by name: those that ship with the library, those in the user's data
folder, and files.

A scale is a text file. Lines that begin with ``#`` describe it; the other lines hold a word (the
words of a collocation with spaces between them), a tab and a score from -1 to 1. Words that are not
in the file have the score 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lexveil import paths
from lexveil.artifacts.user_lists import listed_file, read_lines, read_numbers
from lexveil.embeddings.purposes import HEAVIEST, LIGHTEST, Purpose
from lexveil.errors import ParameterError, RequestError
from lexveil.parameters import MODEL_NAME
from lexveil.runtime.hashes import sha256
from lexveil.runtime.tables import atomic_file

PUBLIC = "# public"  # a line that says that no private text has a part in it
KEY = "params.yaml: embeddings.purposes"
SUFFIX = ".tsv"


def folders() -> tuple[Path, ...]:
    """Return the folders with scales, in search order."""
    return paths.MODELS / "purposes", paths.user_data() / "purposes"


def installed() -> dict[str, Path]:
    """Return all scales by name; a scale that ships takes precedence over one of the user."""
    files: dict[str, Path] = {}
    for folder in folders():
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
        there = installed()
        if name not in there:
            raise RequestError(
                f"there is no purpose {name}; there are {', '.join(there)}, and `lexveil "
                "purpose build` makes others"
            )
        return read(there[name], value)
    if not re.fullmatch(MODEL_NAME, Path(name).stem):
        raise RequestError(
            f"{name}: the file's name names the purpose: small letters, digits, _ and - "
            f"before {SUFFIX}"
        )
    return read(Path(name), value)


def purposes_of(named: Mapping[str, float]) -> tuple[Purpose, ...]:
    """Return the purposes of params.yaml. Purposes that ship are given by name, and files as
    FILE.tsv@HASH, so that DVC notices changes of a file.

    Raises:
        RequestError: see ``find_purpose``.
        ParameterError: if a file does not exist, its content does not match HASH, or a file is
            named without HASH.
    """
    shipped = folders()[0]
    for name in named:
        if "@" not in name and installed().get(name, shipped).parent != shipped:
            raise ParameterError(
                f"{KEY}: {name} does not ship with the library; write FILE{SUFFIX}@HASH"
            )
    return tuple(
        read(listed_file(name, KEY), weight) if "@" in name else find_purpose(f"{name}={weight!r}")
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
    what = f"has {_listed(made)}, and {KEY} names {_listed(named)}"
    if not changed:
        scale = next(name for name in made if made[name] != named[name])
        what = f"has another content of the scale {scale} than {KEY} names"
    raise ParameterError(
        f"{place}: {what}; its vectors keep what they were made with. Train them anew by `lexveil "
        "run`, or name in params.yaml what they have"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no purpose"


def read(file: Path, weight: float = 1.0) -> Purpose:
    """Read a scale.

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
        raise RequestError(
            f"{file}: no word has a score other than 0, so it tells no word from another"
        )
    return Purpose(file.stem, weight, scores, sha256(file), PUBLIC in lines)


def write(scores: Mapping[str, float], about: str, is_public: bool, file: Path) -> None:
    """Write a scale; ``about`` describes it and its source in one line."""
    lines = [f"# {about}", *([PUBLIC] if is_public else [])]
    lines += [f"{word.replace('_', ' ')}\t{score:g}" for word, score in sorted(scores.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as partial:
        partial.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")
