"""State of one pipeline run (results of stages, and the next stages), and the execution of one
stage by DVC.
"""

from __future__ import annotations

import math
import queue
import signal
import threading
import time
from dataclasses import dataclass, field
from uuid import UUID

from prefect import get_run_logger
from prefect.context import TaskRunContext

from flows import repro
from flows.process import Command, interrupt
from lexveil.base.runtime.dvc_graph import Stage, StageGraph
from lexveil.base.runtime.project import stage_environment
from lexveil.base.runtime.run_events import RunObserver, StageResult
from lexveil.lab.lineage import provenance
from lexveil.lab.lineage.openlineage import Events

TIME_IS_UP = signal.SIGALRM  # represents the time limit, in the place of a signal that stops a run


@dataclass
class Build:
    """State of one pipeline run, shared by the flow and the threads of its tasks."""

    watcher: RunObserver = field(default_factory=RunObserver)
    keep_going: bool = False
    graph: StageGraph = field(default_factory=lambda: StageGraph({}))
    until: str | None = None  # last stage to run; None for all stages
    time_is_up: float = math.inf  # time limit on the monotonic clock
    workers: int = 1  # largest number of stages that run at once
    results: dict[str, StageResult] = field(default_factory=dict)
    commands: dict[str, Command] = field(default_factory=dict)
    ended: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)  # task runs
    n_task_runs: int = 0
    stopped_by: int | None = None  # number of the signal that stopped the run
    lock: threading.Lock = field(default_factory=threading.Lock)
    flow_run: UUID | None = None  # id of the flow run in Prefect
    origin: provenance.Origin | None = None
    events: Events | None = None

    @property
    def failed(self) -> StageResult | None:
        """The result of the first stage that failed, which decides message and exit code of the
        run; None if no stage failed.
        """
        return next((result for result in self.results.values() if result.state == "failed"), None)

    def headline(self) -> str:
        """Summarize the run as the number of stages in each state."""
        ends = [result.state for result in self.results.values()]
        states = ("ran", "restored", "cached", "failed", "stopped", "not run")
        return (
            ", ".join(f"{ends.count(state)} {state}" for state in states if state in ends)
            or "no stages"
        )

    def outcome(self) -> tuple[str, str]:
        """Return the final state of the flow, in the words for the state of a stage, and the
        reason.
        """
        if self.stopped_by is not None:
            return "stopped", ""
        if failed := self.failed:
            return "failed", f"{failed.stage}: {failed.message}"
        return "ran", ""

    def verdict(self, stage: Stage) -> tuple[str, str]:
        """Decide whether a stage runs, and return ("run" | "cached" | "not run", reason). All
        stages that it needs must have ended.
        """
        for need in stage.needs:
            result = self.results[need]
            if result.state in ("failed", "stopped"):
                return "not run", f"needs {need}, whose state is {result.state}"
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

    def end(self, result: StageResult) -> None:
        """Record the result of a stage that has ended, or that does not run."""
        self.results[result.stage] = result
        self.watcher.end(result)

    def await_end(self) -> str:
        """Wait for the next stage whose task run ends, and return its name; stop the run when its
        time is up.
        """
        left = self.time_is_up - time.monotonic()
        try:
            return self.ended.get(timeout=max(0.0, left) if math.isfinite(left) else None)
        except queue.Empty:
            self.time_is_up = math.inf
            self.stop(TIME_IS_UP)
            return self.ended.get()

    def stop(self, number: int) -> None:
        """End every running stage by a signal; start no further stage."""
        with self.lock:
            self.stopped_by = number
            running = list(self.commands.values())
        self.watcher.say("stopping")
        interrupt(running)

    def reproduce(self, stage: Stage) -> StageResult:
        """Bring one stage up to date with DVC, and return the result. OpenLineage events about the
        start and the end are sent if lexveil.toml enables them.
        """
        context = TaskRunContext.get()
        run = "" if context is None else str(context.task_run.id)
        if self.events is not None:
            self.events.stage_begins(stage, run)
        result = self._repro(stage.name)
        if result.state == "ran" and self.origin is not None:
            provenance.keep(stage.name, self.origin, run)
        if self.events is not None:
            self.events.stage_ends(stage, run, result)
        return result

    def _repro(self, stage: str) -> StageResult:
        logger = get_run_logger()
        started = time.monotonic()
        line = ""
        with self.lock:
            if self.stopped_by is not None:
                return StageResult(stage, "stopped")
            command = Command(repro.command(stage), stage_environment(self.workers))
            self.commands[stage] = command
        self.watcher.start(stage)
        try:
            with repro.log_of(stage).open("w", encoding="utf-8", buffering=1) as log:
                for line in command.lines():
                    log.write(line + "\n")
                    logger.info(line)
                    self.watcher.output(stage, line)
        finally:
            command.signal(signal.SIGKILL)  # only reached if an exception left the loop
            command.wait()
            with self.lock:
                del self.commands[stage]
        seconds = time.monotonic() - started
        outcome = repro.outcome(stage)
        if outcome.state != "failed":
            return StageResult(stage, outcome.state, seconds)
        if self.stopped_by is not None:
            return StageResult(stage, "stopped", seconds, "the run was stopped")
        return StageResult(stage, "failed", seconds, *outcome.failure(line, stage))
