"""What workers do in tests: light to import, because each worker imports it."""

from __future__ import annotations

import mmap
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lexveil.errors import RequestError


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


@dataclass
class Scale:
    """Holds arrays, one of them twice, and counts its own calls in one."""

    factor: Any
    same: Any
    calls: Any
    folder: Path

    def __call__(self, number: int) -> dict[str, Any]:
        meet(self.folder, 2)
        self.calls += 1
        base = self.factor
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        return {
            "pid": os.getpid(),
            "value": float(self.factor.sum() * number),
            "calls": int(self.calls[0]),
            "same": self.same is self.factor,
            "aligned": self.factor.flags.aligned and self.factor.ctypes.data % 64 == 0,
            "mapped": isinstance(getattr(base, "obj", base), mmap.mmap),
            "threads": os.environ["OPENBLAS_NUM_THREADS"],
        }


def meet(folder: Path, n: int) -> None:
    """Wait until n processes have come here: only then is it certain that one of them did not do all the work."""
    (folder / str(os.getpid())).touch()
    deadline = time.monotonic() + 120
    while len(list(folder.iterdir())) < n:
        if time.monotonic() > deadline:
            raise TimeoutError("the other workers did not come")
        time.sleep(0.01)


def interruptible() -> None:
    """Undo what a shell does to jobs in the background, which ignore Ctrl-C and so would what is tested."""
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
