"""Hide slow, optional dependencies of other libraries that Lexveil does not need."""

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
    """Declare that this process belongs to Lexveil, as the processes of the command line, of stages
    and of workers do. Modules may then be hidden in this process; in a process of another program,
    hiding them would change that program.
    """
    _process.append("lexveil")


def is_own_process() -> bool:
    """Return whether this process is Lexveil's own."""
    return bool(_process)


@contextmanager
def absent(name: str, *, for_good: bool = False) -> Iterator[None]:
    """Hide a module from importers, unless it was imported before.

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
