"""Plan of a pipeline run: the stages with those that are stale (not up to date). This module does
not import Prefect, which is not needed if no stage is stale.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from flows import repro
from flows.display import duration
from flows.recovery import forget_removed, prune, repair
from lexveil.base import paths
from lexveil.base.errors import LexveilError
from lexveil.base.runtime.dvc_graph import (
    CODE_STAGE,
    DVC_YAML,
    Stage,
    StageGraph,
    open_repo,
    read_graph,
    with_status,
)
from lexveil.base.runtime.project import stage_environment
from lexveil.base.runtime.run_events import SKIPPED_LINE
from lexveil.io.artifacts.levels import skipped_run
from lexveil.io.config import load_params
from lexveil.io.execution.stage_code import CODE, refresh_code
from lexveil.lab.lineage.file_hashes import file_md5
from lexveil.lab.lineage.provenance import own_entries

REPORT = paths.REPORT / "index.html"
SHOWN = 3  # largest number of stages named in the reason of a stage that follows from others


def plan(say: Callable[[str], None]) -> StageGraph:
    """Clean up after earlier runs, then get the pipeline's stages from DVC, and which of them are
    stale (not up to date).
    """
    from dvc.repo import lock_repo

    with open_repo() as repo:
        repair(repo, say)
    if CODE.name in DVC_YAML.read_text(encoding="utf-8") and (refresh_code() or _is_new_code()):
        _reproduce_code()
    with (
        open_repo() as repo,
        lock_repo(repo),
    ):  # take DVC's lock once, so that DVC reads its files once
        graph = read_graph(repo)
        prune(graph, say)
        for name in forget_removed(repo, graph):
            say(f"dropped {name} from dvc.lock: dvc.yaml has no such stage")
        return with_status(repo, graph)


def _is_new_code() -> bool:
    """Return whether the present code.json, which holds hashes of the code, differs from its hash
    in dvc.lock.
    """
    outs = own_entries().get(CODE_STAGE, {}).get("outs", [])
    return [out["md5"] for out in outs] != [file_md5(CODE)]


def _reproduce_code() -> None:
    """Run the stage that writes code.json, through DVC.

    Raises:
        LexveilError: if the stage fails.
    """
    done = subprocess.run(
        repro.command(CODE_STAGE),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=stage_environment(),
    )
    outcome = repro.outcome(CODE_STAGE)
    if outcome.state == "failed":
        last_line = done.stdout.strip().rpartition("\n")[2]
        raise LexveilError(f"{CODE_STAGE}: {outcome.failure(last_line, CODE_STAGE)[0]}")


def say_done(
    say: Callable[[str], None], headline: str, seconds: float, wanted: Sequence[Stage]
) -> None:
    """Log that a run of the pipeline succeeded, which runs of the grid it skipped, and the path of
    the report if this run wrote it.

    Args:
        wanted: the stages that are up to date after the run.
    """
    say(f"done in {duration(seconds)}: {headline}")
    made = [out for one in wanted for out in one.outs]
    if paths.PLANS in made and (names := skipped_names()):
        say(
            f"{SKIPPED_LINE}{', '.join(names)}: out of reach, so skipped; the report states "
            "the reason"
        )
    if REPORT.exists() and any(paths.REPORT in out.parents for out in made):
        say(f"report: {REPORT}")


def skipped_names() -> list[str]:
    """Return the names of the runs of the grid that were skipped."""
    grid = load_params().grid
    runs = [*grid.runs(), *grid.sentence_runs()]
    return [skipped.name for run in runs if (skipped := skipped_run(*run)) is not None]


def say_stale(say: Callable[[str], None], graph: StageGraph, until: str | None) -> bool:
    """Log the stale stages that a run would execute, each with its reason, and their number; return
    whether there are any.

    Args:
        until: last stage to run, as in ``StageGraph.wanted``.
    """
    wanted = graph.wanted(until)
    reached = graph.reached()
    stale = [stage.name for stage in wanted if stage.name in reached]
    for name in stale:
        say(f"stale: {name}: {graph.own.get(name) or _follows(reached[name])}")
    n_own = sum(name in graph.own for name in stale)
    of_all = f"{len(stale)} of {len(wanted)} stages are stale"
    if not stale:
        say(f"up to date: {len(wanted)} stages")
    elif n_own == len(stale):
        say(f"{of_all}; `lexveil run` runs them")
    else:
        say(
            f"{of_all}: {n_own} because of own changes, and {len(stale) - n_own} that depend on "
            "them; `lexveil run` runs them, except stages whose inputs turn out unchanged"
        )
    return bool(stale)


def _follows(roots: Sequence[str]) -> str:
    """Return the message for a stage that is stale only because of other stages."""
    more = len(roots) - SHOWN
    return f"follows from {', '.join(roots[:SHOWN])}{f' and {more} more' if more > 0 else ''}"
