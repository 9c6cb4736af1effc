"""The flow of the long searches among the tests: those marked nightly, and Hypothesis with more
examples.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from prefect import State, flow
from prefect.states import Completed, Failed

from flows.notify import on_failure
from flows.supervision import deadline, run_command
from lexveil.runtime.project import find_root, prepare

TESTS = Path("tests")
SEARCH = ["pytest", "-n", "0", "-m", "nightly or hypothesis", "--hypothesis-profile", "nightly"]


@flow(
    name="searches",
    persist_result=False,
    retries=0,
    on_failure=[on_failure],
    on_crashed=[on_failure],
)
def searches() -> State[Any]:
    """Run the tests that search for a long time: killed releases, power cuts, arbitrary inputs.
    Does nothing if the project has no tests.
    """
    prepare(find_root(Path.cwd()))
    if not TESTS.is_dir():
        return Completed(name="Off", message="this project has no tests")
    code, line = run_command([sys.executable, "-m", *SEARCH, str(TESTS)], deadline())
    return (
        Failed(message=f"searches: {line}; the run's log names what was found")
        if code
        else Completed(message=line)
    )
