"""Whether compiled code is worth its start: numba takes about a second to load, and half a minute on a new machine.

Functions that have compiled kernels do small work without them, by NumPy and Python, with the same results: exactly
where a result is counted in whole numbers, else as another processor would give them.
"""

from __future__ import annotations

import sys

START = 2.0  # seconds of work without kernels in this process, after which they are loaded

_done = 0.0


def worth_kernels(seconds: float) -> bool:
    """Whether work that takes about so long without compiled kernels should be done by them.

    So what a process does without them takes no longer than about twice what loading them would have taken. It decides
    on time and memory, never on results.
    """
    global _done  # noqa: PLW0603 - of the process, as what is loaded is
    if "numba" in sys.modules:
        return True
    _done += seconds
    return _done > START


def expect_much() -> None:
    """Say that much work is to come, which kernels are worth from the first of it on."""
    worth_kernels(START * 2)
