"""The flow that releases new texts of the source in params.yaml, as `lexveil release` does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from prefect import State, flow, get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed, Failed

from flows.notify import on_failure
from flows.prefect_records import published
from flows.supervision import TimedCommands, exclusive, timed_out
from lexveil.config import load_params
from lexveil.inbox.report import ReleaseReport
from lexveil.runtime.project import find_root, prepare


def release_command() -> list[str]:
    """Return the command line of one release."""
    return [sys.executable, "-m", "flows.archive_release"]


def headline(report: ReleaseReport) -> str:
    """Count what a release did."""
    return (
        f"{report.released:,} released, {report.changed:,} changed, {report.duplicate:,} duplicate, "
        f"{report.withdrawn:,} withdrawn, {report.withheld:,} withheld"
    )


@flow(name="release", persist_result=False, retries=0, on_failure=[on_failure], on_crashed=[on_failure])
def release() -> State[Any]:
    """Release what is new in the source that params.yaml names; does nothing where it names none."""
    prepare(find_root(Path.cwd()))
    logger = get_run_logger()
    params = load_params()
    if not params.inbox.is_on:
        return Completed(name="Off", message="params.yaml: inbox.source and inbox.sql are null")
    commands = TimedCommands()
    reports: list[ReleaseReport] = []

    @task(name="release", cache_policy=NO_CACHE, persist_result=False, retries=0)
    def release_new() -> State[Any]:
        ended = commands.run("release", release_command())
        if isinstance(ended, State):
            return ended
        if ended.code == 0 and ended.result is not None:
            reports.append(ReleaseReport(**ended.result))
            return Completed(message=headline(reports[0]))
        return Failed(
            message=ended.error.message
            if ended.error
            else f"the release ended with code {ended.code}; the next one puts right what it left"
        )

    minutes = params.operation.timeout_minutes
    with exclusive(minutes, commands.stop, logger.info):
        state = release_new(return_state=True)
    for report in reports:
        with published(logger):
            rows = [{"what": name, "value": "" if value is None else value} for name, value in report.as_dict().items()]
            create_table_artifact(key="lexveil-release", table=rows, description=headline(report))
    if commands.time_is_up:
        return timed_out(minutes)
    if not state.is_completed():
        return Failed(message=f"release: {state.message}")
    return Completed(message=state.message)
