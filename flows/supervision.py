"""Commands of scheduled flows: alone in the project, their output in the log, ended when time is
up.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterator, Sequence

from prefect import get_run_logger

from flows.prefect_records import FLOW_RUN, note_run
from flows.process import Command
from lexveil.config import load_params
from lexveil.runtime.project import build_lock, stage_environment


def deadline() -> float:
    """Return when the time of a run that begins now is up, on the monotonic clock."""
    minutes = load_params().operation.timeout_minutes
    return math.inf if minutes is None else time.monotonic() + 60 * minutes


def timed_out() -> TimeoutError:
    """Return the error of a run that took longer than it may; Prefect calls its state TimedOut."""
    minutes = load_params().operation.timeout_minutes
    return TimeoutError(f"stopped after {minutes} minutes (params.yaml: operation.timeout_minutes)")


@contextlib.contextmanager
def exclusive() -> Iterator[float]:
    """Hold the build lock, so that no build changes the artifacts meanwhile; give when time is
    up.
    """
    say = get_run_logger().info
    with build_lock(wait=True, say=say):
        note_run(say)
        yield deadline()
        FLOW_RUN.unlink(missing_ok=True)


def run_command(argv: Sequence[str], until: float) -> tuple[int, str]:
    """Run a command and return its exit code and its last line, which is its result, or why it
    failed.

    Raises:
        TimeoutError: if it has not ended by ``until``; it is killed then. Commands of flows leave
            nothing half-done.
    """
    log = get_run_logger()
    command = Command(argv, stage_environment())
    left = min(until - time.monotonic(), threading.TIMEOUT_MAX)
    timer = threading.Timer(left, command.signal, [signal.SIGKILL])
    timer.start()
    line = ""
    try:
        for line in command.lines():
            log.info(line)
    finally:
        command.signal(signal.SIGKILL)  # only where an exception left the loop
        code = command.wait()
        timer.cancel()
    if time.monotonic() >= until:
        raise timed_out()
    if code > 128:
        line = f"killed (signal {code - 128}), as when memory runs out"
    return code, line
