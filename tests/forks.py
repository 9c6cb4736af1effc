"""Processes that may be killed, for the price of a fork: of one that has imported what they need
and done nothing else.

A fork is in all that tests look at what a new interpreter is: its own memory, descriptors, current
folder, environment and end. Importing is most of what a new one costs.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
REQUEST = 1 << 20  # bytes at most: code, arguments, environment

SERVER = f"""
import lexveil.base.runtime.blas  # before NumPy: no threads
import gc, importlib, json, os, socket, sys, traceback
requests = socket.socket(fileno=os.dup(0))
for name in sys.argv[1:]:
    importlib.import_module(name)
gc.freeze()
while True:
    request, streams, *_ = socket.recv_fds(requests, {REQUEST}, 3)
    if not request:
        break
    code, pid, arguments, folder, environment = json.loads(request)
    if pid:
        requests.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        continue
    pid = os.fork()
    if pid:
        for stream in streams:
            os.close(stream)
        requests.send(b"%d" % pid)
        continue
    status = 1
    try:
        requests.close()
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["-c", *arguments]
        exec(compile(code, "<fork>", "exec"), {{"__name__": "__main__"}})
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
"""


@dataclass
class Fork:
    """A running fork; what it writes goes to files."""

    forks: Forks
    pid: int
    stdout: IO[str]
    stderr: IO[str]

    def wait(self) -> subprocess.CompletedProcess[str]:
        """Wait for its end: its exit code, -9 after SIGKILL, and what it wrote."""
        code = self.forks.ask("", self.pid)
        said = []
        for stream in (self.stdout, self.stderr):
            stream.seek(0)
            said.append(stream.read())
            stream.close()
        return subprocess.CompletedProcess([], code, *said)


class Forks:
    """Runs code in forks of a process; see :func:`forks_of`."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests

    def start(self, code: str, *arguments: object, stdin: int | None = None) -> Fork:
        """Begin to run code in the current folder and environment; ``stdin`` is closed to it if
        none is given."""
        out, err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115
        with Path(os.devnull).open() as null:
            streams = (null.fileno() if stdin is None else stdin, out.fileno(), err.fileno())
            return Fork(self, self.ask(code, 0, *map(str, arguments), streams=streams), out, err)

    def run(self, code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run code to its end."""
        return self.start(code, *arguments).wait()

    def ask(self, code: str, pid: int, *arguments: str, streams: tuple[int, ...] = ()) -> int:
        """Ask for a fork that runs code, and return its number; or ask for the exit code of the
        fork with a number."""
        request = json.dumps([code, pid, arguments, str(Path.cwd()), dict(os.environ)]).encode()
        socket.send_fds(self._requests, [request], streams)
        answer = self._requests.recv(64)
        assert answer, "the process that forks has ended"
        return int(answer)


@contextmanager
def forks_of(*modules: str) -> Iterator[Forks]:
    """Give forks of a process that has imported ``modules``."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, *modules], stdin=theirs.fileno(), env=environment
    )
    theirs.close()
    try:
        yield Forks(ours)
    finally:
        ours.close()  # it reads the end, and ends
        process.wait()
