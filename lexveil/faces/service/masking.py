"""Masking of numbers in the service's log lines, because a number might disclose a count of a
request's texts.

No message of the library quotes a text, but some messages count words, rows or subjects. Therefore
every number of a line becomes ``#`` unless it is known to come from the operator. A number comes
from the operator if it is in a path below one of the operator's folders, or is part of a name, such
as S1 or tem2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

NUMBER = r"(?<!\w)\d[\d,.]*(?:e[+-]?\d+)?"


def without_numbers(line: str, folders: Iterable[Path] = ()) -> str:
    """Return a line with its numbers replaced by ``#``, except for numbers in paths below the given
    absolute folders.
    """
    # The longest folders come first, because one folder may begin like another.
    known = sorted({str(folder) for folder in folders}, key=len, reverse=True)
    paths = "".join(rf"(?<![\w/]){re.escape(folder)}(?![\w-])[^\s,;:]*|" for folder in known)
    return re.sub(f"(?P<path>{paths}(?!))|{NUMBER}", _kept, line)


def _kept(found: re.Match[str]) -> str:
    return found["path"] or "#"
