"""Functions for workers in tests. The module is light to import, because each worker imports it."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from lexveil.base.errors import RequestError


def negative(number: int) -> int:
    return -number


def die(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def fail(number: int) -> int:
    if number == 2:
        raise ValueError("two")
    return number


def sleep(mark: str) -> None:
    Path(mark).touch()
    time.sleep(600)


def interruptible() -> None:
    """Undo what a shell does to jobs in the background, which ignore Ctrl-C and so would what is
    tested."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass
class DieOnce:
    """Kills its own process at one item, the first time that item comes."""

    folder: Path
    at: int

    def __call__(self, number: int) -> int:
        (self.folder / f"{number}-{os.getpid()}").touch()
        if number == self.at and not (self.folder / "died").exists():
            (self.folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number


def refuse(text: str) -> str:
    raise RequestError("no")
