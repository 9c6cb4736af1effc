"""Commands: their end, the failures of stages, and that nothing of a command outlives it."""

import os
import sys
from contextlib import suppress

import psutil
import pytest

from flows.process import Command, interrupt
from flows.repro import StageOutcome


@pytest.mark.parametrize("how", ["ends", "killed"])
def test_what_a_command_leaves_behind_ends_with_it(how):
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


def test_an_interrupted_command_cleans_up_and_a_deaf_one_is_killed():
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


@pytest.mark.parametrize(
    ("outcome", "line", "message", "code"),
    [
        pytest.param(
            StageOutcome(code=1),
            "CheckFailedError: 2 of 3 hold",
            "CheckFailedError: 2 of 3 hold",
            1,
            id="failed",
        ),
        pytest.param(
            StageOutcome(code=2),
            "RequestError: no such key",
            "RequestError: no such key",
            2,
            id="refused",
        ),
        pytest.param(
            StageOutcome(code=137), "2 of 3", "was killed (signal 9), perhaps", 1, id="killed"
        ),
        pytest.param(
            StageOutcome(code=-9), "2 of 3", "was killed (signal 9), perhaps", 1, id="dead"
        ),
        pytest.param(StageOutcome(code=3), "", "the stage ended with code 3", 1, id="silent"),
        pytest.param(
            StageOutcome(code=1),
            "OSError: [Errno 28] No space left on device",
            "free some space on that disk, and run",
            1,
            id="full disk",
        ),
        pytest.param(
            StageOutcome(error="[Errno 30] Read-only file system"),
            "",
            "make it writable",
            1,
            id="read-only",
        ),
        pytest.param(
            StageOutcome(error="Unable to acquire lock"),
            "2 of 3",
            "Unable to acquire lock",
            1,
            id="dvc",
        ),
        pytest.param(StageOutcome(), "", "DVC ended without a result", 1, id="dvc killed"),
    ],
)
def test_failures(outcome, line, message, code):
    said, exit_code = outcome.failure(line, "check")
    assert message in said and exit_code == code
