"""A command in a process group of its own, read line by line while it runs."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import psutil

GUARD = Path(__file__).with_name("process_guard.py")


class Command:
    """One running command. It dies with this process: see guard.py."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], output: int | IO[Any] = subprocess.PIPE) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), *argv],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output if output is not subprocess.PIPE else subprocess.PIPE,
            env=dict(env),
            start_new_session=True,  # its own group: a Ctrl-C in the terminal reaches us first, and we decide
        )

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield ("out" | "err", line) as they come, until the command ends; a carriage return ends a line too."""
        assert self.process.stdout is not None and self.process.stderr is not None
        with selectors.DefaultSelector() as selector:
            rest: dict[str, bytes] = {}
            for name, pipe in (("out", self.process.stdout), ("err", self.process.stderr)):
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, name)
                rest[name] = b""
            while selector.get_map():
                # Something the command left behind may hold the pipes open for ever: its own end is what counts.
                ended = self.process.poll() is not None
                ready = selector.select(timeout=0 if ended else 0.2)
                if ended and not ready:
                    break
                for key, _ in ready:
                    try:
                        data = os.read(key.fd, 65536)
                    except BlockingIOError:
                        continue
                    if not data:
                        selector.unregister(key.fileobj)
                        continue
                    *whole, rest[key.data] = (rest[key.data] + data).replace(b"\r", b"\n").split(b"\n")
                    yield from ((key.data, line.decode(errors="replace")) for line in whole if line.strip())
            yield from ((name, part.decode(errors="replace")) for name, part in rest.items() if part.strip())

    def wait(self) -> int:
        """Return the exit code, 128 + N after signal N; nothing of the group is left then."""
        code = self.process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code if code >= 0 else 128 - code

    def end(self, grace: float = 10.0) -> None:
        """End it as Ctrl-C would, so that it cleans up; kill what is left after ``grace`` seconds."""
        self.signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(grace)
        self.signal(signal.SIGKILL)
        self.wait()

    def inner(self) -> list[psutil.Process]:
        """What the command itself has started: not the guard, and not the command."""
        with contextlib.suppress(psutil.Error):
            guard = psutil.Process(self.process.pid)
            return [process for child in guard.children() for process in child.children(recursive=True)]
        return []

    def signal(self, number: int) -> None:
        """Send a signal to the whole group."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


def stop_stages(commands: Sequence[Command], grace: float = 10.0) -> None:
    """End what DVC runs as Ctrl-C would, and let DVC itself end: it may be writing dvc.lock, which it does in place."""
    deadline = time.monotonic() + grace
    told: set[int] = set()
    while time.monotonic() < deadline and any(command.process.poll() is None for command in commands):
        for command in commands:
            for process in command.inner():
                # Once each: a second interrupt would break into its cleaning up. A stage may start only now.
                if process.pid not in told:
                    told.add(process.pid)
                    with contextlib.suppress(psutil.Error):
                        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    for command in commands:
        command.signal(signal.SIGKILL)
