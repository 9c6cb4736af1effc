"""A command in a process group of its own, whose lines and events are read while it runs."""

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

from lexveil.runtime.events import PIPE, Event, EventPipe
from lexveil.runtime.project import SCRATCH

GUARD = Path(__file__).with_name("process_guard.py")


class Command:
    """One running command. It dies with this process: see process_guard.py.

    Args:
        argv: the command.
        env: its environment.
        output: where both of its streams go, if not to ``messages``.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        output: int | IO[Any] = subprocess.PIPE,
    ) -> None:
        environment = {name: value for name, value in env.items() if name != PIPE}
        self.events: EventPipe | None = None
        if output is subprocess.PIPE:
            SCRATCH.mkdir(parents=True, exist_ok=True)
            self.events = EventPipe(SCRATCH)
            environment[PIPE] = str(self.events.path)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), *argv],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,  # its own group: a Ctrl-C in the terminal reaches us first, and we decide
        )

    def messages(self) -> Iterator[tuple[str, str] | Event]:
        """Yield events, and lines as ("out" | "err", line), as they come, until the command ends.

        A carriage return ends a line too.
        """
        assert self.process.stdout is not None and self.process.stderr is not None and self.events is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.events, selectors.EVENT_READ)
            rest: dict[str, bytes] = {}
            for name, pipe in (("out", self.process.stdout), ("err", self.process.stderr)):
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, name)
                rest[name] = b""
            while len(selector.get_map()) > 1:
                # A process that the command left behind may hold the pipes open forever: the command's end counts.
                ended = self.process.poll() is not None
                ready = selector.select(timeout=0 if ended else 0.2)
                if ended and not ready:
                    break
                for key, _ in ready:
                    if key.data is None:
                        yield from self.events.read()
                        continue
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
            yield from self.events.read()

    def wait(self) -> int:
        """Return the exit code, 128 + N after signal N; nothing of the group is left then."""
        code = self.process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        if self.events is not None:
            self.events.close()
            self.events = None
        return code if code >= 0 else 128 - code

    def end(self, grace: float = 10.0) -> None:
        """End it as Ctrl-C would, so that it cleans up; kill what is left after ``grace`` seconds."""
        self.signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(grace)
        self.signal(signal.SIGKILL)
        self.wait()

    def inner(self) -> list[psutil.Process]:
        """The processes that the command has started: neither the guard nor the command."""
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
    """Interrupt the stages that DVC runs and let DVC itself end: it writes dvc.lock in place."""
    deadline = time.monotonic() + grace
    signalled: set[int] = set()
    while time.monotonic() < deadline and any(command.process.poll() is None for command in commands):
        for command in commands:
            for process in command.inner():
                # Once each: a second interrupt would break its clean-up. A stage may start only now.
                if process.pid not in signalled:
                    signalled.add(process.pid)
                    with contextlib.suppress(psutil.Error):
                        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    for command in commands:
        command.signal(signal.SIGKILL)
