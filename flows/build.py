"""The flow: every stage of dvc.yaml as one Prefect task run, named and ordered as DVC does.

DVC alone decides what is stale; Prefect runs, shows and records.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import httpx
from prefect import State, allow_failure, flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import TERMINAL_STATES
from prefect.context import FlowRunContext, TaskRunContext
from prefect.events.worker import EventsWorker
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.futures import PrefectFuture
from prefect.logging.handlers import APILogWorker
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    temporary_settings,
)
from prefect.states import Cancelled, Completed, Crashed, Failed

from flows.data_bootstrap import DataUnreachable, ensure_data
from flows.display import duration
from flows.dvc_output import DvcOutputParser
from flows.notify import on_failure
from flows.prefect_server import ServerLost, answers_within
from flows.process import Command, stop_stages
from flows.recovery import forget_damaged, prune, repair, settle_lock
from flows.run_summary import metrics_page, stage_rows, table_rows
from flows.stage_progress import ProgressPage
from lexveil import paths
from lexveil.config import load_params
from lexveil.errors import LexveilError, advised
from lexveil.lineage import provenance
from lexveil.lineage.openlineage import Events
from lexveil.lineage.trace import code_state
from lexveil.runtime.dvc_graph import Graph, Stage, open_repo, read_graph, with_status
from lexveil.runtime.new_project import refresh_code
from lexveil.runtime.project import STATE, build_lock, end_leftovers, find_root, prepare, stage_environment
from lexveil.runtime.run_events import RunObserver, StageResult

FLOW_RUN = STATE / "flow-run"  # Prefect's id of the run that is under way
REPORT = paths.REPORT / "index.html"
HAND_OVER_SECONDS = 30
TIME_IS_UP = signal.SIGALRM  # what stops a run that takes longer than it may
PAGE = 200  # the most that the server gives at once


@dataclass
class Build:
    """One run: what it was asked, what has happened so far. Shared by the flow and the threads of its tasks."""

    watcher: RunObserver = field(default_factory=RunObserver)
    keep_going: bool = False
    graph: Graph = field(default_factory=lambda: Graph({}))
    results: dict[str, StageResult] = field(default_factory=dict)
    commands: dict[str, Command] = field(default_factory=dict)
    stopped_by: int | None = None  # the signal
    lock: threading.Lock = field(default_factory=threading.Lock)
    flow_run: UUID | None = None  # Prefect's id
    origin: provenance.Origin | None = None
    events: Events | None = None
    seconds: float = 0.0
    api_url: str | None = None  # of the server of `lexveil run`
    settings: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)  # Prefect's, for the rest of the run

    @property
    def failed(self) -> StageResult | None:
        """The first failure; it decides message and exit code."""
        return next((result for result in self.results.values() if result.state == "failed"), None)

    def count(self, state: str) -> int:
        """How many stages ended so."""
        return sum(result.state == state for result in self.results.values())

    def verdict(self, stage: Stage) -> tuple[str, str]:
        """Decide ("run" | "cached" | "not run", why) for a stage all of whose needs have ended."""
        for need in stage.needs:
            result = self.results[need]
            if result.state in ("failed", "stopped"):
                return "not run", f"needs {need}, which {result.state}"
            if result.state == "not run":
                return "not run", result.message
        if self.stopped_by is not None:
            return "not run", "the run was stopped"
        if self.failed is not None and not self.keep_going:
            return "not run", f"{self.failed.stage} failed"
        if stage.name in self.graph.stale:
            return "run", self.graph.stale[stage.name]
        changed = [need for need in stage.needs if self.results[need].state in ("ran", "restored")]
        return ("run", f"after {', '.join(changed)}") if changed else ("cached", "")

    def stop(self, number: int) -> None:
        """End every running stage; nothing new starts."""
        with self.lock:
            self.stopped_by = number
            running = list(self.commands.values())
        self.watcher.say("stopping")
        stop_stages(running)

    def reproduce(self, stage: Stage) -> StageResult:
        """Have DVC bring one stage up to date, in a process group of its own, and say how that went."""
        logger = get_run_logger()
        said = DvcOutputParser(stage.name)
        said.log.parent.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        # Without --wait-for-lock (before the subcommand) parallel stages fail, some after their command has run.
        argv = [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "--single-item", stage.name]
        with self.lock:
            if self.stopped_by is not None:
                return StageResult(stage.name, "stopped")
            command = self.commands[stage.name] = Command(argv, stage_environment())
        self.watcher.start(stage.name)
        progress = ProgressPage(stage.name)
        with said.log.open("w", encoding="utf-8") as file:
            for stream, line in command.lines():
                if said.hear(stream, line):
                    file.write(line + "\n")
                    file.flush()
                    logger.info(line)
                    self.watcher.output(stage.name, line)
                    progress.hear(line)
        code = command.wait()
        progress.close()
        seconds = time.monotonic() - started
        with self.lock:
            del self.commands[stage.name]
            stopped = self.stopped_by is not None
        if code == 0:
            if said.state == "restored" and (damaged := forget_damaged(stage)):
                self.watcher.say(f"{stage.name}: {damaged} damaged in DVC's cache; made again")
                return self.reproduce(stage)
            if said.state == "ran" and self.origin is not None:
                provenance.keep(stage.name, self.origin, _task_run())
            return StageResult(stage.name, said.state, seconds, rows=stage_rows(stage))
        if stopped:
            return StageResult(stage.name, "stopped", seconds, "the run was stopped")
        return StageResult(stage.name, "failed", seconds, said.error(code), said.exit_code)


def _task_run() -> str | None:
    context = TaskRunContext.get()
    return str(context.task_run.id) if context is not None else None


# The build that this process runs. A flow's parameters must be plain values that a server can store, so it stands here.
_current: ContextVar[Build | None] = ContextVar("build", default=None)


@task(name="stage", task_run_name="{stage}", cache_policy=NO_CACHE, persist_result=False, retries=0)
def reproduce(stage: str) -> State[Any]:
    """Bring one stage up to date, or say why that is not needed or not possible."""
    build = _current.get()
    assert build is not None
    what, why = build.verdict(build.graph.stages[stage])
    if what == "run":
        get_run_logger().info(f"stale: {why}")
        result = _announced(build, build.graph.stages[stage])
    else:
        result = StageResult(stage, what, message=why)
    build.results[stage] = result
    build.watcher.end(result)
    if result.state == "failed":
        return Failed(message=result.message)
    if result.state in ("not run", "stopped"):
        # Not a second failure: the first one is the news.
        return Cancelled(name="NotRun" if result.state == "not run" else "Stopped", message=result.message)
    if result.state == "cached":
        return Completed(name="Cached", message="DVC found it unchanged")
    if result.state == "restored":
        return Completed(
            name="Restored", message="same command and inputs as in an earlier run: taken from DVC's cache"
        )
    return Completed(message=f"{duration(result.seconds)}{', rows: ' + result.rows if result.rows else ''}")


def _announced(build: Build, stage: Stage) -> StageResult:
    run = _task_run()
    if build.events is None or run is None:
        return build.reproduce(stage)
    build.events.stage_begins(stage, run)
    result = build.reproduce(stage)
    build.events.stage_ends(stage, run, result)
    return result


def _may_pass(_task: object, _run: object, state: State[Any]) -> bool:
    return isinstance(state.result(raise_on_failure=False), DataUnreachable)


@task(
    name="data",
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[10, 60],
    retry_condition_fn=_may_pass,
)
def bring_data() -> None:
    """See to it that data/ is there. A remote that cannot be reached is tried again; nothing else gets better so."""
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
    asked = _current.get()
    if asked is not None:
        return _run(asked)
    # Started by a server, not by `lexveil run`.
    prepare(find_root(Path.cwd()))
    minutes = load_params().operation.timeout_minutes
    asked = Build(keep_going=keep_going)
    token = _current.set(asked)
    try:
        with build_lock(wait=True, say=get_run_logger().info), time_limit(minutes, partial(asked.stop, TIME_IS_UP)):
            bring_data()
            return _run(asked)
    finally:
        _current.reset(token)


@contextlib.contextmanager
def time_limit(minutes: float | None, stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop``, in a thread of its own, if the block takes longer; never if ``minutes`` is None."""
    if minutes is None:
        yield
        return
    timer = threading.Timer(minutes * 60, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def timed_out(minutes: float | None) -> State[Any]:
    """Return the state of a run that took longer than it may; it counts as a failure."""
    return Failed(
        name="TimedOut",
        message=f"stopped after {minutes} minutes (params.yaml: operation.timeout_minutes); the next one continues",
    )


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
    refresh_code(Path.cwd())
    build.graph = plan(say)
    if target := load_params().operation.openlineage:
        build.events = Events(target, str(build.flow_run), build.graph, say)
        build.events.begin()
    build.watcher.begin(len(build.graph.stages))
    logger.info(f"{len(build.graph.stages)} stages, {len(build.graph.stale)} stale")
    try:
        with _signals(build):
            _schedule(build, load_params().machine.workers)
    finally:
        with open_repo() as repo:
            settle_lock(repo, build.graph)
            provenance.settle()
        FLOW_RUN.unlink(missing_ok=True)
        build.seconds = time.monotonic() - started
        if build.events is not None:
            build.events.end(*_ended_as(build))
    if build.api_url is None or answers_within(build.api_url, _patience()):
        with published(logger):
            create_table_artifact(
                key="lexveil-build",
                table=table_rows(build.results.values()),
                description=f"Stages of one run, {duration(build.seconds)}: {headline(build)}",
            )
            if page := metrics_page():
                create_markdown_artifact(
                    key="lexveil-report", markdown=page, description="Headline figures of the report"
                )
    else:  # all is done, and DVC has recorded it: what is still to be told would each be tried for minutes
        build.settings.enter_context(temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}))
    if build.stopped_by == TIME_IS_UP:
        return timed_out(load_params().operation.timeout_minutes)
    if build.stopped_by is not None:
        return Cancelled(message="stopped; the next run continues here")
    if failed := build.failed:
        return Failed(message=f"{failed.stage}: {failed.message}")
    return Completed(message=headline(build))


def _ended_as(build: Build) -> tuple[str, str]:
    """Return how the flow ended, in the words of a stage, and why."""
    if build.stopped_by is not None:
        return "stopped", ""
    if failed := build.failed:
        return "failed", f"{failed.stage}: {failed.message}"
    return "ran", ""


def _patience() -> float:
    """Return for how many seconds Prefect's client tries a request that is refused: 2 + 4 + 8 + ..."""
    return float(2 ** (PREFECT_CLIENT_MAX_RETRIES.value() + 1) - 2)


@contextlib.contextmanager
def published(logger: Any) -> Iterator[None]:
    """Write artifacts; a server that does not take them costs a warning and not the run."""
    try:
        yield
    except (httpx.HTTPError, PrefectException) as error:
        logger.warning(f"the run's pages could not be written to Prefect: {type(error).__name__}")


def note_run(say: Callable[[str], None]) -> UUID:
    """Note which flow run this is and return its id; one that was noted before and killed is ended in Prefect."""
    context = FlowRunContext.get()
    assert context is not None and context.flow_run is not None
    if killed := settle_killed_run():
        say(f"the run before this one ({killed}) was killed; this one continues there")
    FLOW_RUN.write_text(f"{context.flow_run.id}\n", encoding="utf-8")
    return context.flow_run.id


def settle_killed_run() -> str | None:
    """End in Prefect the run that was noted and killed, and return its name; else it would run there for ever.

    Only the holder of the build lock may call this: then no run that was noted is alive.
    """
    with contextlib.suppress(OSError, ValueError, ObjectNotFound), get_client(sync_client=True) as client:
        killed = client.read_flow_run(UUID(FLOW_RUN.read_text(encoding="utf-8").strip()))
        if killed.state is not None and not killed.state.is_final():
            client.set_flow_run_state(killed.id, Crashed(message="the process was killed"), force=True)
            return killed.name
    return None


def headline(build: Build) -> str:
    """Count how the stages ended."""
    states = ("ran", "restored", "cached", "failed", "stopped", "not run")
    return ", ".join(f"{build.count(state)} {state}" for state in states if build.count(state)) or "no stages"


def plan(say: Callable[[str], None]) -> Graph:
    """Clear away what is left of earlier runs, then ask DVC for the graph and for what is stale in it."""
    from dvc.repo import lock_repo

    if ended := end_leftovers():
        say(f"ended {ended} process{'es' * (ended != 1)} that a killed run had left")
    with open_repo() as repo, lock_repo(repo):  # one lock around all: DVC then reads its files once
        repair(repo, say)
        graph = read_graph(repo)
        prune(graph, say)
        for name in settle_lock(repo, graph):
            say(f"dropped {name} from dvc.lock: dvc.yaml has no such stage")
        return with_status(repo, graph)


def _schedule(build: Build, workers: int) -> None:
    """Submit each stage when all it needs has ended, at most ``workers`` at a time, in DVC's order."""
    futures: dict[str, PrefectFuture[Any]] = {}
    running: set[str] = set()
    waiting = list(build.graph.stages.values())
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()
    while waiting or running:
        ready = next((stage for stage in waiting if all(need in build.results for need in stage.needs)), None)
        if ready is None or len(running) >= workers:
            running.discard(ended.get())
            continue
        waiting.remove(ready)
        running.add(ready.name)
        # What failed is let through, so that the stage itself can say that it does not run. Prefect lets nothing wait
        # for a stage that was cancelled; those edges are left out.
        after = [
            allow_failure(futures[need]) if build.results[need].state == "failed" else futures[need]
            for need in ready.needs
            if build.results[need].state not in ("not run", "stopped")
        ]
        future = futures[ready.name] = reproduce.submit(ready.name, return_state=False, wait_for=after)
        future.add_done_callback(partial(_ended, build, ended, ready.name))


def _ended(build: Build, ended: queue.SimpleQueue[str], name: str, _: object) -> None:
    # A task that broke before it could report (a bug of ours, or Prefect's server went away) must not hang the flow.
    build.results.setdefault(name, StageResult(name, "failed", message="Prefect could not run this task; see its log"))
    ended.put(name)


@contextlib.contextmanager
def _signals(build: Build) -> Iterator[None]:
    """On Ctrl-C and SIGTERM end the stages, then let the flow end in its own way; the same one again ends it now."""
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


def run(api_url: str, watcher: RunObserver, keep_going: bool = False, started: float | None = None) -> int:
    """Run the flow for `lexveil run` and return its exit code; the caller holds the build lock.

    Args:
        api_url: of a Prefect server that answers.
        watcher: is told what happens.
        keep_going: after a failure, go on with what does not depend on it.
        started: time.monotonic() when the command began, for the total.

    Raises:
        LexveilError: with the message and the exit code of the stage that failed.
        ServerLost: if the server went away meanwhile, however the stages ended.
    """
    current = Build(watcher, keep_going=keep_going, api_url=api_url)
    token = _current.set(current)
    started = time.monotonic() if started is None else started
    try:
        # Nobody listens for heartbeats here, and each flow's end would wait for their thread for up to a second.
        with (
            temporary_settings({PREFECT_API_URL: api_url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),
            current.settings,
        ):
            state = build(keep_going, return_state=True)
            hand_over(current)
    except httpx.HTTPError as error:
        raise _lost(current, api_url) from error
    finally:
        _current.reset(token)
        watcher.close()
    took = duration(time.monotonic() - started)
    if current.stopped_by is not None:
        watcher.say(f"stopped after {took}: {headline(current)}; `lexveil run` continues here")
        return 128 + current.stopped_by
    if failed := current.failed:
        watcher.say(f"failed after {took}: {headline(current)}")
        raise StageFailed(failed, current.count("failed"))
    if not state.is_completed():
        outcome = state.result(raise_on_failure=False)
        if isinstance(outcome, LexveilError):
            raise outcome
        raise LexveilError(advised(f"the flow ended as {state.name}: {state.message}"))
    watcher.say(f"done in {took}: {headline(current)}")
    if REPORT.exists():
        watcher.say(f"report: {REPORT}")
    return 0


def _lost(build: Build, api_url: str) -> ServerLost:
    """Say that the server is gone, and how the stages ended; a stage that failed is said first."""
    failed = build.failed
    error = ServerLost(
        f"{f'{failed.stage}: {failed.message}; and ' if failed else ''}Prefect's server at {api_url} went away during "
        f"the run and does not have its end. {headline(build)}: what is done stays done; `lexveil run` continues here"
    )
    if build.stopped_by is not None:
        error.exit_code = 128 + build.stopped_by
    elif failed:
        error.exit_code = failed.exit_code
    return error


def hand_over(build: Build) -> None:
    """Wait until log lines and states are in the server's database.

    Prefect sends them in the background, and where the server is gone by then it tries for a minute, after the end. The
    server in turn writes states in batches, and forgets those that it has not written when it ends.
    """
    EventsWorker.drain_all(timeout=HAND_OVER_SECONDS)
    APILogWorker.drain_all(timeout=HAND_OVER_SECONDS)
    if build.flow_run is None:
        return
    deadline = time.monotonic() + HAND_OVER_SECONDS
    with contextlib.suppress(httpx.HTTPError), get_client(sync_client=True) as client:
        while _recorded(client, build.flow_run) < len(build.results) and time.monotonic() < deadline:
            time.sleep(0.1)


def _recorded(client: SyncPrefectClient, flow_run: UUID) -> int:
    """Count the task runs of a flow run that have ended, as far as the server has written it down."""
    ended = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=list(TERMINAL_STATES))))
    count, page = 0, None
    while page is None or len(page) == PAGE:
        page = client.read_task_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run])),
            task_run_filter=ended,
            limit=PAGE,
            offset=count,
        )
        count += len(page)
    return count


class StageFailed(LexveilError):
    """A stage ended with an error; the message is its own."""

    def __init__(self, failed: StageResult, failures: int) -> None:
        more = f" (and {failures - 1} more stage{'s' * (failures != 2)} failed)" if failures > 1 else ""
        super().__init__(f"{failed.stage}: {failed.message}{more}")
        self.exit_code = failed.exit_code
