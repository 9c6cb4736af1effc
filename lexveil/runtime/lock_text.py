"""Read and replace one stage's entry in the text of dvc.lock, at a cost that does not grow with its parsing.

DVC parses and writes the whole file again for each stage that ran, which takes seconds once it has hundreds of stages.
Here the file is cut at the lines that begin its entries, and only one of them is parsed. A file of another form than
DVC gives it is left to DVC.
"""

from __future__ import annotations

import re

HEAD = "schema: '2.0'\nstages:\n"
PLAIN_NAME = re.compile(r"[\w@.+-]+")
_BEGIN = re.compile(r"^  ([\w@.+-]+):\n", re.MULTILINE)
# A line of an entry, or the one that begins it; a key in quotes is not of the form that is read here.
_PLAIN = re.compile(r"(?:  [\w@.+-]+:\n(?: {4}.*\n)+)*")

_ENTRY = re.compile(r"  [\w@.+-]+:\n(?: {4}.*\n)+")


def cut(text: str) -> dict[str, str] | None:
    """Return the text of each stage's entry by name, in order; None if the file is not of the form DVC gives it."""
    if not text:
        return {}
    if not text.startswith(HEAD) or not _PLAIN.fullmatch(text, len(HEAD)):
        return None
    begins = list(_BEGIN.finditer(text, len(HEAD)))
    ends = [*(begin.start() for begin in begins[1:]), len(text)]
    entries = {begin[1]: text[begin.start() : end] for begin, end in zip(begins, ends, strict=True)}
    return entries if len(entries) == len(begins) else None


def joined(entries: dict[str, str]) -> str:
    """Return the text of a dvc.lock with these entries, as :func:`cut` has them."""
    return HEAD + "".join(entries.values())


def entry_of(text: str, name: str) -> str | None:
    """Return one stage's entry, "" if it has none; None if the file is not of the form DVC gives it.

    Only that entry is looked at, so that the cost hardly grows with the file.
    """
    if not text:
        return ""
    if not text.startswith(HEAD):
        return None
    begin = text.find(f"\n  {name}:\n", len(HEAD) - 1) + 1
    if not begin:
        return ""
    end = _ENTRY.match(text, begin)
    return end[0] if end and (end.end() == len(text) or _BEGIN.match(text, end.end())) else None
