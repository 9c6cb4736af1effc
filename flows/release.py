"""The flow that releases what is new in the source of params.yaml: release, by what `lexveil release` does."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

from prefect import State, flow, get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Cancelled, Completed, Failed

from flows.archive_release import SAYS
from flows.build import FLOW_RUN, note_run, published, time_limit, timed_out
from flows.notify import on_failure
from flows.process import Command
from flows.stage_progress import ProgressPage
from lexveil.config import load_params
from lexveil.runtime.project import build_lock, find_root, prepare, stage_environment


class Work:
    """The process of one flow run, and whether time is up."""

    def __init__(self) -> None:
        self.running: Command | None = None
        self.time_is_up = False
        self.report: dict[str, Any] = {}

    def stop(self) -> None:
        """End it: the ledger undoes or completes what it was at, when it is opened next."""
        self.time_is_up = True
        if self.running is not None:
            self.running.signal(signal.SIGKILL)


def release_command() -> list[str]:
    """Return the command line of one release."""
    return [sys.executable, "-m", "flows.archive_release"]


def _make(work: Work) -> State[Any]:
    """Run it as a process of its own, which can be ended, and say how it went."""
    logger = get_run_logger()
    if work.time_is_up:
        return Cancelled(name="NotRun", message="the run was stopped")
    command = work.running = Command(release_command(), stage_environment())
    progress = ProgressPage("release")
    said = result = ""
    try:
        for stream, line in command.lines():
            if stream == "out":
                result = line
                continue
            logger.info(line)
            progress.hear(line)
            said = line.removeprefix(SAYS) if line.startswith(SAYS) else said
    finally:
        work.running = None
        progress.close()
        command.signal(signal.SIGKILL)  # only where an interrupt left the loop
        code = command.wait()
    if work.time_is_up:
        return Cancelled(name="Stopped", message="the run was stopped")
    if code != 0:
        return Failed(message=said or f"the release ended with code {code}; the next one puts right what it left")
    work.report = json.loads(result)
    return Completed(message=headline(work.report))


def headline(report: dict[str, Any]) -> str:
    """Count what a release did."""
    counts = ("released", "changed", "duplicate", "withdrawn", "withheld")
    return ", ".join(f"{report[name]:,} {name}" for name in counts)


def rows_of(report: dict[str, Any]) -> list[dict[str, object]]:
    """One row per count, for Prefect's table."""
    return [{"what": name, "value": "" if value is None else value} for name, value in report.items()]


@flow(name="release", persist_result=False, retries=0, on_failure=[on_failure], on_crashed=[on_failure])
def release() -> State[Any]:
    """Release what is new in the source that params.yaml names; does nothing where it names none."""
    prepare(find_root(Path.cwd()))
    logger = get_run_logger()
    params = load_params()
    if params.release.source is None and params.release.sql is None:
        return Completed(name="Off", message="params.yaml: release.source and release.sql are null")
    work = Work()

    @task(name="release", cache_policy=NO_CACHE, persist_result=False, retries=0)
    def one() -> State[Any]:
        return _make(work)

    minutes = params.operation.timeout_minutes
    # No build may change the artifacts meanwhile.
    with build_lock(wait=True, say=logger.info), time_limit(minutes, work.stop):
        note_run(logger.info)
        state = one(return_state=True)
        FLOW_RUN.unlink(missing_ok=True)
    if work.report:
        with published(logger):
            create_table_artifact(key="lexveil-release", table=rows_of(work.report), description=headline(work.report))
    if work.time_is_up:
        return timed_out(minutes)
    if not state.is_completed():
        return Failed(message=f"release: {state.message}")
    return Completed(message=state.message)
