"""Prevent the import of slow optional dependencies of other libraries if Lexveil does not need
them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Any


class _Absent(MetaPathFinder):
    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        del path, target
        if fullname == self._name:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


_process: list[str] = []  # not empty once this process is declared Lexveil's own


def take_process() -> None:
    """Declare that this process was started by Lexveil, so that modules may be hidden in it.

    The processes of the command line, of stages and of workers call this function. In a process of
    another program, hidden modules would change that program's behaviour.
    """
    _process.append("lexveil")


def is_own_process() -> bool:
    """Return whether this process was started by Lexveil and is not the process of another
    program.
    """
    return bool(_process)


@contextmanager
def absent(name: str, *, for_good: bool = False) -> Iterator[None]:
    """Make the import of a module fail within the block, unless the module was imported before.

    Args:
        name: full name of the module; importing it raises ``ModuleNotFoundError``.
        for_good: keep the module hidden after the block as well.
    """
    finder = _Absent(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if not for_good:
            sys.meta_path.remove(finder)
