"""The lists that screens go by: those of packages needed at build time only, and our own beside this module."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from lexveil.errors import RequestError

OWN = Path(__file__).parent
FIRST_NAMES = ("dist.female.first", "dist.male.first")  # of the census of the United States of 1990
SURNAMES = "dist.all.last"


def slurs() -> frozenset[str]:
    """The list of package better-profanity without the words that have a plain meaning.

    Raises:
        RequestError: if the package is not installed.
    """
    lines = (_package("better_profanity") / "profanity_wordlist.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip().lower() for line in lines) | own("slurs.txt")


def first_names() -> frozenset[str]:
    """First names, in lower case; raises as ``slurs``."""
    folder = _package("names")
    return frozenset().union(*(_census(folder / name) for name in FIRST_NAMES))


def surnames() -> frozenset[str]:
    """Surnames, in lower case; raises as ``slurs``."""
    return _census(_package("names") / SURNAMES)


def own(name: str) -> frozenset[str]:
    """A list of ours, one entry a line; # begins a comment."""
    lines = (OWN / name).read_text(encoding="utf-8").splitlines()
    return frozenset(entry for line in lines if (entry := line.partition("#")[0].strip()))


def _census(file: Path) -> frozenset[str]:
    return frozenset(line.split()[0].lower() for line in file.read_text(encoding="ascii").splitlines() if line.strip())


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise RequestError(
            f"model.screens: the lists of package {name.replace('_', '-')} are needed and it is not installed; "
            "pip install 'lexveil[model]', or leave the screens slurs and names out"
        )
    return Path(spec.origin).parent
