"""Commands: their end, what is read out of their lines, and that nothing of them outlives it."""

import os
import sys
from contextlib import suppress

import psutil
import pytest

from flows.dvc_output import DvcOutputParser
from flows.process import Command, interrupt


@pytest.mark.parametrize("how", ["ends", "killed"])
def test_what_a_command_leaves_behind_ends_with_it(how: str) -> None:
    """A remaining child process would hold the output open forever."""
    last = "os.kill(os.getpid(), 9)" if how == "killed" else ""
    code = (
        f"import os, subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True); {last}"
    )
    command = Command([sys.executable, "-c", code], os.environ)
    (left,) = command.lines()
    assert command.wait() == (137 if how == "killed" else 0)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(left)).wait(timeout=600)


def test_an_interrupted_command_cleans_up_and_a_deaf_one_is_killed() -> None:
    code = "import signal, time; {}; print('up', flush=True); time.sleep(600)"
    deaf = Command(
        [sys.executable, "-c", code.format("signal.signal(2, signal.SIG_IGN)")], os.environ
    )
    clean = Command(
        [sys.executable, "-c", code.format("signal.signal(2, lambda *_: exit(7))")], os.environ
    )
    for command in (deaf, clean):
        assert next(command.lines()) == "up"
    interrupt([clean], grace=300)
    interrupt([deaf], grace=0.1)
    assert (deaf.wait(), clean.wait()) == (137, 7)
    interrupt([deaf])  # a process already gone is no error


ERROR = "ERROR: failed to reproduce 'check': failed to run: python -m tasks.check, exited with "


@pytest.mark.parametrize(
    ("lines", "message", "code"),
    [
        (["2 of 3", "CheckFailed: 2 of 3 hold", ERROR + "1"], "CheckFailed: 2 of 3 hold", 1),
        (["RequestError: no such key", ERROR + "2"], "RequestError: no such key", 2),
        (
            ["2 of 3", ERROR + "137"],
            "the stage was killed (signal 9), as when memory runs out; its output is in",
            1,
        ),
        (["2 of 3", ERROR + "-9"], "the stage was killed (signal 9)", 1),
        (
            ["Running stage 'check':", "> python -m tasks.check", ERROR + "3"],
            "the stage ended with code 3",
            1,
        ),
        (
            ["OSError: [Errno 28] No space left on device", ERROR + "1"],
            "free some space on that disk, and run",
            1,
        ),
        (
            ["ERROR: failed to reproduce 'check': [Errno 30] Read-only file system"],
            "make it writable",
            1,
        ),
        (["ERROR: Unable to acquire lock", "ERROR: another"], "Unable to acquire lock", 1),
        ([], "DVC ended with code 255", 1),
    ],
)
def test_failures(lines: list[str], message: str, code: int) -> None:
    parser = DvcOutputParser("check")
    assert all(parser.read(line) for line in lines)
    said, exit_code = parser.failure(255)
    assert message in said and exit_code == code
