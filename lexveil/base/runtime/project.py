"""The project that a command works on: its folder, the environment of its processes, and the lock
against simultaneous runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger

LOG = logger(__name__)

STATE = Path(".lexveil")  # git ignores it; nothing in it is needed to repeat a run
LOGS = STATE / "logs"
SCRATCH = STATE / "tmp"
LOCK = STATE / "build.lock"

# Variables that set the number of threads of matrix products.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
# N workers share the machine as N processes; more threads in each would only compete for cores.
ONE_THREAD = dict.fromkeys(THREADS, "1")


def root_around(start: Path) -> Path | None:
    """Return the nearest folder, ``start`` or above it, that contains a dvc.yaml; None if there is
    none.
    """
    return next(
        (folder for folder in (start, *start.parents) if (folder / "dvc.yaml").is_file()), None
    )


def find_root(start: Path) -> Path:
    """Return the nearest folder, ``start`` or above it, that contains a dvc.yaml.

    Raises:
        RequestError: if there is no such folder.
    """
    if (root := root_around(start)) is not None:
        return root
    raise RequestError(
        f"no dvc.yaml in {start} or above it; change into the folder of a project, or make "
        "one by `lexveil init DIR`"
    )


def prepare(root: Path) -> None:
    """Prepare the environment of this process and its children for the project in ``root``. Call
    this function before Prefect is imported.
    """
    os.chdir(root)
    # Import flows and stages from the project, wherever the library is installed.
    if sys.path[0] != str(root):
        sys.path.insert(0, str(root))
    state = root / STATE
    state.mkdir(exist_ok=True)
    # Use a Prefect database of the project: do not read or write the user's home.
    os.environ.setdefault("PREFECT_HOME", str(state / "prefect"))
    # Do not register block types, which are not used: that takes two seconds at every server start.
    os.environ.setdefault("PREFECT_API_BLOCKS_REGISTER_ON_START", "false")
    # Show lines when they are printed, not when a stage ends.
    os.environ["PYTHONUNBUFFERED"] = "1"
    # `python` in dvc.yaml must be the interpreter of this process.
    interpreter = str(Path(sys.executable).parent)
    if os.environ.get("PATH", "").split(os.pathsep)[0] != interpreter:
        os.environ["PATH"] = os.pathsep.join(filter(None, (interpreter, os.environ.get("PATH"))))


def stage_environment(at_once: int = 1) -> dict[str, str]:
    """Return the environment variables of a DVC process. Except for the number of threads, they do
    not depend on the user's shell.

    Args:
        at_once: number of processes that share the cores. With more BLAS threads than cores per
            process, threads would wait for each other and take a quarter more processor time.
    """
    environment = {**os.environ, "SHELL": "/bin/sh"}
    if at_once > 1:
        environment = (
            dict.fromkeys(THREADS, str(max(1, (os.cpu_count() or 1) // at_once))) | environment
        )
    scratch = Path.cwd() / SCRATCH
    scratch.mkdir(parents=True, exist_ok=True)
    # Do not spill rows to /tmp, where a killed stage would leave them. The next run empties this
    # folder.
    # A long path would leave no space for the socket names of multiprocessing there (at most
    # 108 bytes).
    if len(str(scratch)) < 60:
        environment["TMPDIR"] = str(scratch)
    return environment


@contextlib.contextmanager
def build_lock(wait: bool = False, say: Callable[[str], None] = LOG.info) -> Iterator[None]:
    """Lock this project against other runs. The kernel releases the lock when this process ends,
    even if it crashes.

    Raises:
        RequestError: if another run is in progress and ``wait`` is false.
    """
    path = Path.cwd() / LOCK
    path.parent.mkdir(exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        _acquire(file.fileno(), path, wait, say)
        file.truncate(0)
        json.dump({"pid": os.getpid(), "since": time.strftime("%H:%M:%S")}, file)
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _acquire(descriptor: int, path: Path, wait: bool, say: Callable[[str], None]) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except BlockingIOError:
        pass
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        who = f"process {holder['pid']}, since {holder['since']}"
    except (ValueError, KeyError, OSError):
        who = "it has just started"
    if not wait:
        raise RequestError(
            f"another run is in progress in this project ({who}); wait until it ends, or give "
            f"{option('wait')}"
        )
    say(f"waiting for another run ({who})")
    fcntl.flock(descriptor, fcntl.LOCK_EX)
