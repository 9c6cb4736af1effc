"""The flow: every stage of dvc.yaml as one Prefect task run, named and ordered as DVC does.

DVC alone decides what is stale; Prefect runs, shows and records.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
from prefect import State, flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    temporary_settings,
)
from prefect.states import Cancelled, Completed, Failed

from flows.data_bootstrap import DataUnreachable, ensure_data
from flows.display import duration
from flows.notify import on_failure
from flows.planning import plan, say_done
from flows.prefect_records import FLOW_RUN, hand_over, note_run, published, retry_seconds
from flows.prefect_server import ServerLost, answers_within
from flows.recovery import settle_lock
from flows.run_summary import metrics_page, table_rows
from flows.stages import Build, current_build, schedule
from flows.supervision import time_limit, timed_out
from lexveil.config import load_params
from lexveil.errors import LexveilError, advised
from lexveil.lineage import provenance
from lexveil.lineage.openlineage import Events
from lexveil.lineage.trace import code_state
from lexveil.runtime.dvc_graph import StageGraph, open_repo
from lexveil.runtime.project import build_lock, find_root, prepare
from lexveil.runtime.run_events import RunObserver, StageResult

TIME_IS_UP = signal.SIGALRM  # stands for the time limit among the signals that stop a run


def _is_transient(_task: object, _run: object, state: State[Any]) -> bool:
    return isinstance(state.result(raise_on_failure=False), DataUnreachable)


@task(
    name="data",
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[10, 60],
    retry_condition_fn=_is_transient,
)
def bring_data() -> None:
    """Make sure that data/ exists. Only a remote that cannot be reached is worth a retry."""
    logger = get_run_logger()

    class Log(RunObserver):
        def say(self, text: str) -> None:
            logger.info(text)

    ensure_data(Log())


# No retries of the whole: a stage that failed fails again, and Prefect's client repeats what a server did not take.
@flow(name="build", persist_result=False, retries=0, on_failure=[on_failure], on_crashed=[on_failure])
def build(keep_going: bool = False) -> State[Any]:
    """Bring everything in dvc.yaml up to date.

    Args:
        keep_going: after a failure, go on with what does not depend on it.
    """
    requested = current_build.get()
    if requested is not None:
        return _run(requested)
    # Started by a server, not by `lexveil run`.
    prepare(find_root(Path.cwd()))
    minutes = load_params().operation.timeout_minutes
    requested = Build(keep_going=keep_going)
    token = current_build.set(requested)
    try:
        with build_lock(wait=True, say=get_run_logger().info), time_limit(minutes, partial(requested.stop, TIME_IS_UP)):
            bring_data()
            return _run(requested)
    finally:
        current_build.reset(token)


def _run(build: Build) -> State[Any]:
    logger = get_run_logger()
    started = time.monotonic()

    def say(text: str) -> None:
        logger.info(text)
        build.watcher.say(text)

    build.flow_run = note_run(say)
    context = FlowRunContext.get()
    assert context is not None and context.flow_run is not None
    build.origin = provenance.Origin(str(build.flow_run), context.flow_run.name, *code_state())
    if not build.graph.stages:
        build.graph = plan(say)
    if target := load_params().operation.openlineage:
        build.events = Events(target, str(build.flow_run), build.graph, say)
        build.events.begin()
    wanted = build.wanted()
    build.watcher.begin(len(wanted))
    logger.info(f"{len(wanted)} stages, {sum(stage.name in build.graph.stale for stage in wanted)} stale")
    try:
        with _signals(build):
            schedule(build, load_params().machine.workers)
    finally:
        with open_repo() as repo:
            settle_lock(repo, build.graph)
            provenance.settle()
        FLOW_RUN.unlink(missing_ok=True)
        build.seconds = time.monotonic() - started
        if build.events is not None:
            build.events.end(*build.outcome())
    if build.api_url is None or answers_within(build.api_url, retry_seconds()):
        with published(logger):
            create_table_artifact(
                key="lexveil-build",
                table=table_rows(build.results.values()),
                description=f"Stages of one run, {duration(build.seconds)}: {build.headline()}",
            )
            if page := metrics_page():
                create_markdown_artifact(
                    key="lexveil-report", markdown=page, description="Headline figures of the report"
                )
    else:  # DVC has recorded everything; each further request would be retried for minutes
        build.settings.enter_context(temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}))
    if build.stopped_by == TIME_IS_UP:
        return timed_out(load_params().operation.timeout_minutes)
    if build.stopped_by is not None:
        return Cancelled(message="stopped; the next run continues here")
    if failed := build.failed:
        return Failed(message=f"{failed.stage}: {failed.message}")
    return Completed(message=build.headline())


@contextlib.contextmanager
def _signals(build: Build) -> Iterator[None]:
    """On Ctrl-C and SIGTERM end the stages, then let the flow end cleanly; the same signal again ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        if build.stopped_by == number:
            raise KeyboardInterrupt
        build.stopped_by = number
        # In a thread: the main one may be anywhere, inside a lock or a print too.
        threading.Thread(target=build.stop, args=(number,), daemon=True).start()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(
    api_url: str,
    watcher: RunObserver,
    keep_going: bool = False,
    started: float | None = None,
    until: str | None = None,
    graph: StageGraph | None = None,
) -> int:
    """Run the flow for `lexveil run` and return its exit code; the caller holds the build lock.

    Args:
        api_url: of a Prefect server that answers.
        watcher: observes the run.
        keep_going: after a failure, go on with what does not depend on it.
        started: time.monotonic() when the command began, for the total.
        until: the stage that is wanted; None for all.
        graph: as planned; None plans it in the flow run.

    Raises:
        LexveilError: with the message and the exit code of the stage that failed.
        ServerLost: if the server went away meanwhile, however the stages ended.
    """
    current = Build(watcher, keep_going, graph or StageGraph({}), api_url=api_url, until=until)
    token = current_build.set(current)
    started = time.monotonic() if started is None else started
    try:
        # Nobody listens for heartbeats here, and each flow's end would wait for their thread for up to a second.
        with (
            temporary_settings({PREFECT_API_URL: api_url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),
            current.settings,
        ):
            state = build(keep_going, return_state=True)
            hand_over(current.flow_run, current.n_task_runs)
    except httpx.HTTPError as error:
        raise _lost(current, api_url) from error
    finally:
        current_build.reset(token)
        watcher.close()
    seconds = time.monotonic() - started
    took = duration(seconds)
    if current.stopped_by is not None:
        watcher.say(f"stopped after {took}: {current.headline()}; `lexveil run` continues here")
        return 128 + current.stopped_by
    if failed := current.failed:
        watcher.say(f"failed after {took}: {current.headline()}")
        raise StageFailed(failed, current.count("failed"))
    if not state.is_completed():
        outcome = state.result(raise_on_failure=False)
        if isinstance(outcome, LexveilError):
            raise outcome
        raise LexveilError(advised(f"the flow ended as {state.name}: {state.message}"))
    say_done(watcher, current.headline(), seconds)
    return 0


def _lost(build: Build, api_url: str) -> ServerLost:
    """Return the error that the server is gone, with how the stages ended; a failed stage comes first."""
    failed = build.failed
    error = ServerLost(
        f"{f'{failed.stage}: {failed.message}; and ' if failed else ''}Prefect's server at {api_url} went away during "
        f"the run and does not have its end. {build.headline()}: what is done stays done; `lexveil run` continues here"
    )
    if build.stopped_by is not None:
        error.exit_code = 128 + build.stopped_by
    elif failed:
        error.exit_code = failed.exit_code
    return error


class StageFailed(LexveilError):
    """A stage ended with an error; the message is its own."""

    def __init__(self, failed: StageResult, failures: int) -> None:
        more = f" (and {failures - 1} more stage{'s' * (failures != 2)} failed)" if failures > 1 else ""
        super().__init__(f"{failed.stage}: {failed.message}{more}")
        self.exit_code = failed.exit_code
