"""Supervision of commands that scheduled flows run: a command runs alone in the project, its output
goes to the log, and it is ended when its time is up.
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
from lexveil.base.runtime.project import build_lock, stage_environment
from lexveil.io.config import load_configuration


def deadline() -> float:
    """Return the time at which a run that begins now must have ended, on the monotonic clock."""
    minutes = load_configuration().operation.timeout_minutes
    return math.inf if minutes is None else time.monotonic() + 60 * minutes


def timed_out() -> TimeoutError:
    """Return the exception for a run that exceeded its time limit; Prefect shows such a run as
    TimedOut.
    """
    minutes = load_configuration().operation.timeout_minutes
    return TimeoutError(
        f"stopped after {minutes} minutes (lexveil.toml: operation.timeout_minutes)"
    )


@contextlib.contextmanager
def exclusive() -> Iterator[float]:
    """Context manager that holds the build lock, so that no build changes the artifacts during a
    flow; it yields the time limit.
    """
    say = get_run_logger().info
    with build_lock(wait=True, say=say):
        note_run(say)
        yield deadline()
        FLOW_RUN.unlink(missing_ok=True)


def run_command(argv: Sequence[str], until: float) -> tuple[int, str]:
    """Run a command until it ends or its time is up. Return its exit code and its last line of
    output, which is its result or the reason of its failure.

    Raises:
        TimeoutError: if the command has not ended by ``until``; it is then killed. Commands of
            flows leave nothing half-done.
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
        command.signal(signal.SIGKILL)  # only reached if an exception left the loop
        code = command.wait()
        timer.cancel()
    if time.monotonic() >= until:
        raise timed_out()
    if code > 128:
        line = f"killed (signal {code - 128}), perhaps because memory ran out"
    return code, line
