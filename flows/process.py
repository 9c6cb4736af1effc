"""Child processes in their own process groups, whose output is read line by line while they run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

GUARD = Path(__file__).with_name("process_guard.py")


class Command:
    """A running child process in its own process group. It is killed if this process dies
    (process_guard.py).

    Args:
        argv: the command.
        env: environment variables of the command.
        output: target of both output streams; by default ``lines`` yields the output.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], output: int | IO[Any] = subprocess.PIPE
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), *argv],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            text=True,  # a carriage return ends a line too
            errors="replace",
            # own process group: a Ctrl-C in the terminal then reaches this process only, which
            # decides
            start_new_session=True,
        )
        self.end = threading.Thread(target=self._await_end, daemon=True)
        self.end.start()

    def _await_end(self) -> None:
        self.process.wait()
        self.signal(signal.SIGKILL)  # remaining children would keep the output of the command open

    def lines(self) -> Iterator[str]:
        """Yield the lines that the command prints, without blank ones, until the command has
        ended.
        """
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip():
                yield line.rstrip("\n")

    def wait(self) -> int:
        """Wait until the process group has ended, and return the exit code, which is 128 + N after
        signal N.
        """
        self.end.join()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        code = self.process.returncode
        return code if code >= 0 else 128 - code

    def signal(self, number: int) -> None:
        """Send a signal to the whole process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def interrupt(commands: Sequence[Command], grace: float = 10.0) -> None:
    """Interrupt commands as Ctrl-C would, so that they clean up; kill commands that still run after
    ``grace`` seconds.
    """
    deadline = time.monotonic() + grace
    for command in commands:
        command.signal(signal.SIGINT)
    for command in commands:
        command.end.join(max(0.0, deadline - time.monotonic()))
        command.signal(signal.SIGKILL)
