"""The lists that screens go by: those of packages needed at build time only, and our own beside this module."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from lexveil.errors import RequestError

OWN = Path(__file__).parent
FIRST_NAMES = ("dist.female.first", "dist.male.first")  # of the census of the United States of 1990
SURNAMES = ("dist.all.last",)


def slurs() -> frozenset[str]:
    """The list of package better-profanity without the words that have a plain meaning.

    Raises:
        RequestError: if the package is not installed.
    """
    lines = (_package("better_profanity") / "profanity_wordlist.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip().lower() for line in lines) | own("slurs.txt")


def census(*files: str) -> frozenset[str]:
    """Names of files of the census, ``FIRST_NAMES`` or ``SURNAMES``, in lower case; raises as ``slurs``."""
    lines = [line for file in files for line in (_package("names") / file).read_text(encoding="ascii").splitlines()]
    return frozenset(line.split()[0].lower() for line in lines if line.strip())


def own(name: str) -> frozenset[str]:
    """A list of ours, one entry a line; # begins a comment."""
    lines = (OWN / name).read_text(encoding="utf-8").splitlines()
    return frozenset(entry for line in lines if (entry := line.partition("#")[0].strip()))


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        package = name.replace("_", "-")
        raise RequestError(f"model.screens: package {package} is not installed; pip install 'lexveil[model]'")
    return Path(spec.origin).parent
