"""The stages of dvc.yaml as Prefect task runs: one run's state, the task of one stage, and their schedule."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from prefect import State, allow_failure, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.context import TaskRunContext
from prefect.futures import PrefectFuture
from prefect.states import Cancelled, Completed, Failed

from flows.display import duration
from flows.dvc_output import DvcOutputParser
from flows.planning import repro
from flows.process import Command, stop_stages
from flows.recovery import forget_damaged
from flows.run_summary import stage_rows
from flows.supervision import follow
from lexveil.lineage import provenance
from lexveil.lineage.openlineage import Events
from lexveil.runtime.dvc_graph import Stage, StageGraph
from lexveil.runtime.project import stage_environment
from lexveil.runtime.run_events import RunObserver, StageResult

# Stages of a graph up to which those that are unchanged are task runs too. Each costs Prefect's client and server a
# tenth of a second, and in a larger graph they hide the others; the table of the run has them all.
ALL_SHOWN = 120


@dataclass
class Build:
    """State of one run, shared by the flow and the threads of its tasks."""

    watcher: RunObserver = field(default_factory=RunObserver)
    keep_going: bool = False
    graph: StageGraph = field(default_factory=lambda: StageGraph({}))
    results: dict[str, StageResult] = field(default_factory=dict)
    n_task_runs: int = 0
    commands: dict[str, Command] = field(default_factory=dict)
    stopped_by: int | None = None  # the signal
    lock: threading.Lock = field(default_factory=threading.Lock)
    flow_run: UUID | None = None  # Prefect's id
    origin: provenance.Origin | None = None
    events: Events | None = None
    seconds: float = 0.0
    at_once: int = 1  # stages side by side, at most
    until: str | None = None  # the stage that is wanted; None for all
    api_url: str | None = None  # of the server of `lexveil run`
    settings: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)  # Prefect's, for the rest of the run

    @property
    def failed(self) -> StageResult | None:
        """The first failure; it decides message and exit code."""
        return next((result for result in self.results.values() if result.state == "failed"), None)

    def wanted(self) -> list[Stage]:
        """The stages of this run, in DVC's order."""
        return self.graph.wanted(self.until)

    def count(self, state: str) -> int:
        """How many stages ended in ``state``."""
        return sum(result.state == state for result in self.results.values())

    def headline(self) -> str:
        """Count how the stages ended."""
        states = ("ran", "restored", "cached", "failed", "stopped", "not run")
        return ", ".join(f"{self.count(state)} {state}" for state in states if self.count(state)) or "no stages"

    def outcome(self) -> tuple[str, str]:
        """Return how the flow ended, in the words of a stage, and why."""
        if self.stopped_by is not None:
            return "stopped", ""
        if failed := self.failed:
            return "failed", f"{failed.stage}: {failed.message}"
        return "ran", ""

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
        """Have DVC bring one stage up to date, in a process group of its own, and return how that went."""
        logger = get_run_logger()
        parser = DvcOutputParser(stage.name)
        parser.log.parent.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        with self.lock:
            if self.stopped_by is not None:
                return StageResult(stage.name, "stopped")
            command = self.commands[stage.name] = Command(repro(stage.name), stage_environment(self.at_once))
        self.watcher.start(stage.name)
        with parser.log.open("w", encoding="utf-8") as log:

            def show(stream: str, line: str) -> None:
                if parser.read(stream, line):
                    log.write(line + "\n")
                    log.flush()
                    logger.info(line)
                    self.watcher.output(stage.name, line)

            ended = follow(command, stage.name, show)
        seconds = time.monotonic() - started
        with self.lock:
            del self.commands[stage.name]
            stopped = self.stopped_by is not None
        if ended.code == 0:
            if parser.state == "restored" and (damaged := forget_damaged(stage)):
                self.watcher.say(f"{stage.name}: {damaged} damaged in DVC's cache; made again")
                return self.reproduce(stage)
            if parser.state == "ran" and self.origin is not None:
                provenance.keep(stage.name, self.origin, _task_run())
            return StageResult(stage.name, parser.state, seconds, rows=stage_rows(stage))
        if stopped:
            return StageResult(stage.name, "stopped", seconds, "the run was stopped")
        message, exit_code = parser.failure(ended.code, ended.error)
        return StageResult(stage.name, "failed", seconds, message, exit_code)


def _task_run() -> str | None:
    context = TaskRunContext.get()
    return str(context.task_run.id) if context is not None else None


# The build that this process runs. A flow's parameters must be plain values that a server can store.
current_build: ContextVar[Build | None] = ContextVar("build", default=None)


@task(name="stage", task_run_name="{stage}", cache_policy=NO_CACHE, persist_result=False, retries=0)
def reproduce(stage: str) -> State[Any]:
    """Bring one stage up to date, or return why that is not needed or not possible."""
    build = current_build.get()
    assert build is not None
    verdict, reason = build.verdict(build.graph.stages[stage])
    if verdict == "run":
        get_run_logger().info(f"stale: {reason}")
        result = _announced(build, build.graph.stages[stage])
    else:
        result = StageResult(stage, verdict, message=reason)
    build.results[stage] = result
    build.watcher.end(result)
    if result.state == "failed":
        return Failed(message=result.message)
    if result.state in ("not run", "stopped"):
        # Report only the root failure.
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


def schedule(build: Build, workers: int) -> None:
    """Submit each stage when all it needs has ended, at most ``workers`` at a time, in DVC's order."""
    build.at_once = workers
    futures: dict[str, PrefectFuture[Any]] = {}
    running: set[str] = set()
    waiting = build.wanted()
    all_shown = len(waiting) <= ALL_SHOWN
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()
    while waiting or running:
        ready = next((stage for stage in waiting if all(need in build.results for need in stage.needs)), None)
        if ready is None or len(running) >= workers:
            running.discard(ended.get())
            continue
        waiting.remove(ready)
        if not all_shown and build.verdict(ready)[0] == "cached":
            build.results[ready.name] = unchanged = StageResult(ready.name, "cached")
            build.watcher.end(unchanged)
            continue
        running.add(ready.name)
        build.n_task_runs += 1
        # Failures are let through, so that the stage itself can report that it does not run. Prefect lets nothing wait
        # for a task run that was cancelled; those edges are left out.
        after = [
            allow_failure(futures[need]) if build.results[need].state == "failed" else futures[need]
            for need in ready.needs
            if need in futures and build.results[need].state not in ("not run", "stopped")
        ]
        future = futures[ready.name] = reproduce.submit(ready.name, return_state=False, wait_for=after)
        future.add_done_callback(partial(_ended, build, ended, ready.name))


def _ended(build: Build, ended: queue.SimpleQueue[str], name: str, _: object) -> None:
    # A task that broke before it could report (a bug, or Prefect's server went away) must not hang the flow.
    build.results.setdefault(name, StageResult(name, "failed", message="Prefect could not run this task; see its log"))
    ended.put(name)
