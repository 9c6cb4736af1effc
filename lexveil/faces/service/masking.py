"""Lines for the log of a service, in which no number may count what is in a request's texts.

No message of the library quotes a text, but some count its words, its rows or its subjects. So
every number of a line becomes ``#``, unless it is known to be the operator's: it stands in a path
below one of the operator's folders, or it is a part of a name, such as S1 or tem2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

NUMBER = r"(?<!\w)\d[\d,.]*(?:e[+-]?\d+)?"


def without_numbers(line: str, folders: Iterable[Path] = ()) -> str:
    """Return a line whose numbers are ``#``, but for those in paths below some absolute folders."""
    # The longest come first, since one folder may begin as another does.
    known = sorted({str(folder) for folder in folders}, key=len, reverse=True)
    paths = "".join(rf"(?<![\w/]){re.escape(folder)}(?![\w-])[^\s,;:]*|" for folder in known)
    return re.sub(f"(?P<path>{paths}(?!))|{NUMBER}", _kept, line)


def _kept(found: re.Match[str]) -> str:
    return found["path"] or "#"
