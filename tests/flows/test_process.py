"""Commands: their end, and that nothing of them outlives it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import psutil
import pytest

from flows.process import Command, interrupt


@pytest.mark.parametrize("how", ["ends", "killed"])
def test_what_a_command_leaves_behind_ends_with_it(how: str) -> None:
    """It would hold the output open for ever."""
    last = "os.kill(os.getpid(), 9)" if how == "killed" else ""
    code = f"import os, subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True); {last}"
    command = Command([sys.executable, "-c", code], os.environ)
    (left,) = command.lines()
    assert command.wait() == (137 if how == "killed" else 0)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(left)).wait(timeout=60)


def test_an_interrupted_command_cleans_up_and_a_deaf_one_is_killed() -> None:
    code = "import signal, time; {}; print('up', flush=True); time.sleep(600)"
    deaf = Command([sys.executable, "-c", code.format("signal.signal(2, signal.SIG_IGN)")], os.environ)
    clean = Command([sys.executable, "-c", code.format("signal.signal(2, lambda *_: exit(7))")], os.environ)
    for command in (deaf, clean):
        assert next(command.lines()) == "up"
    interrupt([deaf, clean], grace=1)
    assert (deaf.wait(), clean.wait()) == (137, 7)
    interrupt([deaf])  # a process already gone is no error
