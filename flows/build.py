"""Prefect flow "build", which runs the stages of dvc.yaml as Prefect task runs, with DVC's names
and order.

DVC alone decides which stages are stale; Prefect runs, shows and records them.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
from prefect import State, flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture
from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.states import Cancelled, Completed, Failed

from flows.data_bootstrap import ensure_data
from flows.display import duration
from flows.notify import on_failure
from flows.planning import plan, say_done
from flows.prefect_records import FLOW_RUN, hand_over, note_run, show_table
from flows.prefect_server import ServerLostError
from flows.stages import TIME_IS_UP, Build
from flows.supervision import deadline, timed_out
from lexveil.base.errors import LexveilError, advised
from lexveil.base.runtime.project import build_lock, find_root, prepare
from lexveil.base.runtime.run_events import StageResult
from lexveil.io.config import load_configuration, load_params
from lexveil.lab.lineage import provenance
from lexveil.lab.lineage.openlineage import Events
from lexveil.lab.lineage.trace import code_state

# The build of this process. It cannot be a parameter of the flow, because a server must be able to
# store parameters.
current_build: ContextVar[Build | None] = ContextVar("build", default=None)


@task(
    name="data",
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[10, 60],
)
def bring_data() -> None:
    """Make sure that the folder data/ exists. Prefect retries later if a remote cannot be
    reached.
    """
    ensure_data(get_run_logger().info)


@task(name="stage", task_run_name="{stage}", cache_policy=NO_CACHE, persist_result=False, retries=0)
def reproduce(stage: str, why: str) -> State[Any]:
    """Bring one stage of the DVC pipeline up to date."""
    build = current_build.get()
    assert build is not None
    get_run_logger().info(f"stale: {why}")
    result = build.reproduce(build.graph.stages[stage])
    build.end(result)
    if result.state == "failed":
        return Failed(message=result.message)
    if result.state == "stopped":
        return Cancelled(name="Stopped", message=result.message)
    name = "Completed" if result.state == "ran" else result.state.capitalize()
    return Completed(name=name, message=duration(result.seconds))


# The flow has no retries: a failed stage would fail again, and Prefect's client repeats failed
# requests.
@flow(
    name="build", persist_result=False, retries=0, on_failure=[on_failure], on_crashed=[on_failure]
)
def build(keep_going: bool = False) -> State[Any]:
    """Bring all stages of the DVC pipeline up to date.

    Args:
        keep_going: after a failure, continue with the stages that do not depend on the failed one.
    """
    requested = current_build.get()
    if requested is not None:
        return _run(requested)
    # The run was started by a server, not by `lexveil run`.
    prepare(find_root(Path.cwd()))
    requested = Build(keep_going=keep_going)
    token = current_build.set(requested)
    try:
        with build_lock(wait=True, say=get_run_logger().info):
            requested.time_is_up = deadline()
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
    configuration = load_configuration()
    configuration.require_segmentation(load_params())
    build.workers = configuration.machine.workers
    if not build.graph.stages:
        build.graph = plan(say)
    if target := configuration.operation.openlineage:
        build.events = Events(target, str(build.flow_run), build.graph, say)
        build.events.begin()
    n_stages = len(build.graph.wanted(build.until))
    build.watcher.begin(n_stages)
    logger.info(f"{n_stages} stages, {len(build.graph.stale)} stale")
    try:
        with _signals(build):
            _schedule(build)
    finally:
        provenance.settle()
        FLOW_RUN.unlink(missing_ok=True)
        if build.events is not None:
            build.events.end(*build.outcome())
    rows = [
        {
            "stage": result.stage,
            "state": result.state,
            "seconds": round(result.seconds, 1),
            "why": result.message,
        }
        for result in build.results.values()
        if result.state != "cached"
    ]
    seconds = time.monotonic() - started
    show_table("lexveil-build", rows, f"Stages of one run, {duration(seconds)}: {build.headline()}")
    if build.stopped_by == TIME_IS_UP:
        raise timed_out()
    if build.stopped_by is not None:
        return Cancelled(message="stopped; the next run continues here")
    state, reason = build.outcome()
    return Failed(message=reason) if state == "failed" else Completed(message=build.headline())


def _note_end(build: Build, name: str, _: PrefectFuture[Any]) -> None:
    """Tell the flow that the Prefect task of a stage has ended."""
    build.ended.put(name)


def _schedule(build: Build) -> None:
    """Submit each stage as a Prefect task as soon as the stages that it needs have ended, at most
    ``build.workers`` at once, in DVC's order.

    Stages that are up to date or cannot run have no task runs. Each task run would cost Prefect a
    tenth of a second, and in a large graph these task runs would hide the others. The table of the
    run lists the stages that could not run.
    """
    waiting = build.graph.wanted(build.until)
    order = [stage.name for stage in waiting]
    sorter = TopologicalSorter({stage.name: stage.needs for stage in waiting})
    sorter.prepare()
    futures: dict[str, PrefectFuture[Any]] = {}
    ready: list[str] = []
    n_running = 0
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()], key=order.index)
        if not ready or n_running == build.workers:
            name = build.await_end()
            # The flow must not hang on a task that failed before it could report (because of a bug,
            # or because Prefect's server went away).
            build.results.setdefault(
                name,
                StageResult(
                    name, "failed", message="Prefect could not run the stage; see Prefect's log"
                ),
            )
            sorter.done(name)
            n_running -= 1
            continue
        stage = build.graph.stages[ready.pop(0)]
        verdict, why = build.verdict(stage)
        if verdict != "run":
            build.end(StageResult(stage.name, verdict, message=why))
            sorter.done(stage.name)
            continue
        after = [futures[need] for need in stage.needs if need in futures]
        future = futures[stage.name] = reproduce.submit(
            stage.name, why, return_state=False, wait_for=after
        )
        future.add_done_callback(partial(_note_end, build, stage.name))
        build.n_task_runs += 1
        n_running += 1


@contextlib.contextmanager
def _signals(build: Build) -> Iterator[None]:
    """Context manager that, on Ctrl-C and SIGTERM, ends the running stages and then lets the flow
    end cleanly; a second signal ends the flow at once.
    """

    def stop(number: int, _: FrameType | None) -> None:
        if build.stopped_by == number:
            raise KeyboardInterrupt
        build.stopped_by = number
        # A thread is used, because the main thread may be anywhere, even inside a lock or a print.
        threading.Thread(target=build.stop, args=(number,), daemon=True).start()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(api_url: str, current: Build, started: float) -> int:
    """Run the flow "build" for the command `lexveil run` and return its exit code; the caller holds
    the build lock.

    Args:
        api_url: address of a Prefect server that answers.
        current: the requested build.
        started: time.monotonic() at the start of the command, for the total time.

    Raises:
        LexveilError: if a stage failed, with the stage's message and exit code.
        ServerLostError: if the server went away during the run, however the stages ended.
    """
    token = current_build.set(current)
    try:
        # Heartbeats are off: nobody listens for them, and the end of the flow would wait up to a
        # second for their thread.
        with temporary_settings(
            {PREFECT_API_URL: api_url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
        ):
            state = build(current.keep_going, return_state=True)
            hand_over(current.flow_run, current.n_task_runs)
    except httpx.HTTPError as error:
        raise ServerLostError(api_url, current.headline(), _exit_error(current)) from error
    finally:
        current_build.reset(token)
        current.watcher.close()
    seconds = time.monotonic() - started
    took = duration(seconds)
    if current.stopped_by is not None:
        current.watcher.say(
            f"stopped after {took}: {current.headline()}; `lexveil run` continues here"
        )
        return 128 + current.stopped_by
    if failure := _exit_error(current):
        current.watcher.say(f"failed after {took}: {current.headline()}")
        raise failure
    if not state.is_completed():
        outcome = state.result(raise_on_failure=False)
        if isinstance(outcome, LexveilError):
            raise outcome
        raise LexveilError(advised(f"the flow ended as {state.name}: {state.message}"))
    wanted = current.graph.wanted(current.until)
    say_done(current.watcher.say, current.headline(), seconds, wanted)
    return 0


def _exit_error(build: Build) -> LexveilError | None:
    """Return the error of a run in which a stage failed, with the stage's message and exit code."""
    failed = build.failed
    if failed is None:
        return None
    failures = sum(result.state == "failed" for result in build.results.values())
    more = f" (and {failures - 1} more stage{'s' * (failures != 2)} failed)" if failures > 1 else ""
    error = LexveilError(f"{failed.stage}: {failed.message}{more}")
    error.exit_code = failed.exit_code
    return error
