"""One stage after another brought up to date, each in a fork of one process that has imported DVC.

Importing DVC costs several times what it then does for a stage. A process that has imported it, and done nothing else,
waits for requests; for each it forks, and the fork is in all what a new process would be: a group of its own, which
dies with the process that asked (see process_guard.py), its own standard streams and environment.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO

from flows.process_guard import watch
from lexveil.errors import LexveilError, advised

REQUEST = 1 << 20  # bytes at most: names and values of the environment


class Forked:
    """A running fork, with what is used of ``subprocess.Popen``.

    Args:
        pid: the leader of its process group.
        end: a pipe, on which it writes its exit code; nothing comes if it was killed.
    """

    def __init__(self, pid: int, end: int, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.pid, self.stdin, self.stdout, self.stderr = pid, stdin, stdout, stderr
        self.returncode: int | None = None
        self._end = end
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code, -9 after a signal; None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code.

        Raises:
            subprocess.TimeoutExpired: if it runs on.
        """
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("dvc repro", timeout or 0.0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        with self._lock:  # the thread that follows it, and the one that stops the run
            if self.returncode is None and self._readable(timeout):
                text = os.read(self._end, 16)
                os.close(self._end)
                self.returncode = int(text) if text else -signal.SIGKILL
            return self.returncode

    def _readable(self, timeout: float | None) -> bool:
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        return bool(poll.poll(None if timeout is None else 1000 * timeout))


class DvcForks:
    """Starts forks; the process that makes them begins with the first and ends with :meth:`close` or with this one.

    Attributes:
        ahead: stages that this process looks at before it forks for the first one.
    """

    def __init__(self) -> None:
        self.ahead: Sequence[str] = ()
        self._lock = threading.Lock()
        self._requests: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, stage: str, env: Mapping[str, str]) -> Forked:
        """Start to bring a stage up to date, with pipes as standard streams.

        Raises:
            LexveilError: if no process could be made.
        """
        (stdin, ours_in), (ours_end, end), (ours_out, stdout), (ours_err, stderr) = (os.pipe() for _ in range(4))
        theirs, ours = (stdin, end, stdout, stderr), (ours_in, ours_end, ours_out, ours_err)
        try:
            with self._lock:
                pid = self._ask(json.dumps([stage, dict(env)]).encode(), theirs, env)
        except OSError as error:
            for descriptor in ours:
                os.close(descriptor)
            raise LexveilError(advised(f"no process for DVC could be made: {error}")) from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        return Forked(
            pid, ours_end, os.fdopen(ours_in, "wb", 0), os.fdopen(ours_out, "rb", 0), os.fdopen(ours_err, "rb", 0)
        )

    def close(self) -> None:
        """End the process that makes forks; forks themselves go on."""
        with self._lock:
            self._stop()

    def _ask(self, request: bytes, descriptors: Sequence[int], env: Mapping[str, str]) -> int:
        if self._process is not None and self._process.poll() is not None:
            self._stop()
        if self._requests is None:
            self._begin(env)
        assert self._requests is not None
        socket.send_fds(self._requests, [request], descriptors)
        answer = self._requests.recv(64)
        if not answer:
            raise OSError("it ended")
        return int(answer)

    def _begin(self, env: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "flows.dvc_stage", *self.ahead],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=env,
                start_new_session=True,  # a Ctrl-C in the terminal is not for it
            )
        self.ahead = ()  # one that takes its place begins while stages run

    def _stop(self) -> None:
        if self._requests is not None:
            self._requests.close()  # it reads the end, and ends
        if self._process is not None:
            self._process.wait()
        self._requests = self._process = None


def serve(work: Callable[[str], int]) -> None:
    """Fork for each request on standard input, a socket, until its other end is closed; a fork does ``work``."""
    requests = socket.socket(fileno=os.dup(0))
    os.set_inheritable(requests.fileno(), False)
    os.close(0)
    os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)  # takes the place of standard input
    gc.freeze()  # what a fork never looks at stays shared
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, REQUEST, 4)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not request:
            return
        stage, environment = json.loads(request)
        pid = os.fork()
        if pid == 0:
            os._exit(_guarded(requests, descriptors, environment, partial(work, stage)))
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(str(pid).encode())


def _guarded(
    requests: socket.socket, descriptors: list[int], environment: dict[str, str], work: Callable[[], int]
) -> int:
    """What process_guard.py does for a command, in a fork for the work of another one."""
    os.setsid()
    requests.close()
    stdin, end, stdout, stderr = descriptors
    for descriptor, place in ((stdout, 1), (stderr, 2)):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # as in process_guard.py: the work handles it, this only reports its end
    child = os.fork()
    if child == 0:
        os.close(stdin)
        os.close(end)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        code = 1
        try:
            code = work()
        finally:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.dup2(stdin, 0)
    os.close(stdin)
    threading.Thread(target=watch, daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = code if code >= 0 else 128 - code
    os.write(end, str(code).encode())
    return code
