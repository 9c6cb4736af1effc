"""The flow of the long searches among the tests: `pytest -m nightly`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from prefect import State, flow
from prefect.states import Completed, Failed

from flows.notify import on_failure
from flows.supervision import TimedCommands, time_limit, timed_out
from lexveil.config import load_params
from lexveil.runtime.project import find_root, prepare

TESTS = Path("tests")


@flow(name="searches", persist_result=False, retries=0, on_failure=[on_failure], on_crashed=[on_failure])
def searches() -> State[Any]:
    """Run the tests that search for long: killed releases, power cuts, arbitrary inputs. Off where there are none."""
    prepare(find_root(Path.cwd()))
    if not TESTS.is_dir():
        return Completed(name="Off", message="this project has no tests")
    minutes = load_params().operation.timeout_minutes
    commands = TimedCommands()
    with time_limit(minutes, commands.stop):
        ended = commands.run("searches", [sys.executable, "-m", "pytest", "-n", "0", "-m", "nightly", str(TESTS)])
    if isinstance(ended, State):
        return timed_out(minutes)
    if ended.code:
        return Failed(message=f"pytest ended with code {ended.code}; the run's log names what was found")
    return Completed(message="nothing found")
