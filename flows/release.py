"""Prefect flow that releases new texts of the source in lexveil.toml, as the command `lexveil
release` does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from prefect import State, flow
from prefect.states import Completed, Failed

from flows.notify import on_failure
from flows.prefect_records import show_table
from flows.supervision import exclusive, run_command
from lexveil.base.runtime.project import find_root, prepare
from lexveil.io.config import load_configuration
from lexveil.release.inbox.report import ReleaseReport


def release_command() -> list[str]:
    """Return the command line that makes one release of new texts."""
    return [sys.executable, "-m", "flows.archive_release"]


@flow(
    name="release",
    persist_result=False,
    retries=0,
    on_failure=[on_failure],
    on_crashed=[on_failure],
)
def release() -> State[Any]:
    """Release new documents of the source in lexveil.toml; the flow does nothing if there is no
    source.
    """
    prepare(find_root(Path.cwd()))
    if not load_configuration().inbox.is_on:
        return Completed(name="Off", message="lexveil.toml: inbox.source and inbox.sql are not set")
    with exclusive() as until:
        code, line = run_command(release_command(), until)
    if code:
        return Failed(message=f"release: {line.removeprefix('lexveil release: ')}")
    report = ReleaseReport(**json.loads(line))
    message = (
        f"{report.released:,} released, {report.changed:,} changed, {report.duplicate:,} "
        "duplicate, "
        f"{report.withdrawn:,} withdrawn, {report.withheld:,} withheld"
    )
    rows = [
        {"what": name, "value": "" if value is None else value}
        for name, value in report.as_dict().items()
    ]
    show_table("lexveil-release", rows, message)
    return Completed(message=message)
