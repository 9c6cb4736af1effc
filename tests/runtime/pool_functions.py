"""What workers do in tests: light to import, because each worker imports it."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
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


def end_in_the_middle(program: str, marks: list[Path], number: int) -> tuple[int, str]:
    """Run a program until its workers have made the marks, end it by a signal, and see its workers end too.

    Returns:
        Its exit code and what it wrote to stderr.
    """
    import psutil

    here = Path(__file__)
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, marks)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(here.parents[2]), str(here.parent)])},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=interruptible,  # noqa: PLW1509 - no thread is running yet
    )
    while not all(mark.exists() for mark in marks):
        assert process.poll() is None
        time.sleep(0.05)
    workers = psutil.Process(process.pid).children(recursive=True)
    assert len(workers) >= 2
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.kill()
    _, left = psutil.wait_procs(workers, timeout=60)
    for worker in left:  # a failure leaves nothing behind
        worker.kill()
    _, said = process.communicate(timeout=60)
    assert left == []
    return process.returncode, said
