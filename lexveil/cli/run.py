"""`lexveil run`: bring everything up to date."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path
from typing import Annotated

from lexveil import paths
from lexveil.cli.main import fail
from lexveil.cli.options import Wait, option
from lexveil.cli.output import in_project
from lexveil.runtime.graph_libraries import require
from lexveil.runtime.project import build_lock


def run(
    *,
    params: Annotated[Path | None, option("replace params.yaml by FILE (after checking it) and run", "FILE")] = None,
    wait: Annotated[Wait, option("if another run is at work here, wait for its end")] = False,
    keep_going: Annotated[bool, option("after a failure go on with what does not depend on it", alias="-k")] = False,
    verbose: Annotated[bool, option("show what the stages print", alias="-v")] = False,
) -> int:
    """Bring everything up to date: sample, count, train, privatize, check, report.

    Runs the graph in dvc.yaml as a Prefect flow. Only what changed data, code or parameters make stale is run
    again; a run that was stopped or killed continues where it was. Makes the embedded default data if data/ is
    absent.

      lexveil run                          with params.yaml as it is
      lexveil run --params bigger.yaml     checks bigger.yaml, puts it in the place of params.yaml, and runs
      PREFECT_API_URL=http://host:4200/api lexveil run     shows the run in that Prefect server
    """
    started = time.monotonic()
    params = params and params.resolve()
    in_project()
    require("prefect", "dvc")
    from lexveil.config import load_params

    if params is None:
        _write_points(paths.PARAMS)
    load_params(params or paths.PARAMS)  # before anything else: a mistyped key must not cost a run
    from flows.prefect_server import ServerLost

    try:
        with build_lock(wait):
            if params:
                _replace(paths.PARAMS, params.read_bytes())
            return bring_up_to_date(verbose, keep_going, started)
    except ServerLost as error:
        code = fail("lexveil run", error)
        os._exit(code)  # else Prefect's threads would try for minutes to reach it


def bring_up_to_date(verbose: bool, keep_going: bool, started: float, until: str | None = None) -> int:
    """Run the graph of the project here, or stage ``until`` and what it needs; the caller holds the build lock.

    Where nothing is stale and no Prefect server is at work that would show the run, none is started.
    """
    from flows.data_bootstrap import ensure_data
    from flows.display import watcher
    from flows.planning import plan, say_done
    from flows.prefect_server import api, running_api
    from lexveil.config import load_params
    from lexveil.lineage import provenance
    from lexveil.runtime.run_events import StageResult

    # Prefect's own log goes to its server; the console belongs to the display.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    logging.raiseExceptions = False  # a line that the server did not take is no line for the console either
    view = watcher(verbose)
    try:
        ensure_data(view.say)
        url = running_api()
        graph = plan(view.say)
        wanted = graph.wanted(until)
        is_recorded = url is not None or load_params().operation.openlineage is not None
        if not is_recorded and graph.stale.keys().isdisjoint(stage.name for stage in wanted):
            view.begin(len(wanted))
            for stage in wanted:
                view.end(StageResult(stage.name, "cached"))
            provenance.settle()
            view.close()
            say_done(view.say, f"{len(wanted)} cached", time.monotonic() - started)
            return 0
        with api(url) as api_url:
            from flows.build import run as run_flow
            from flows.stages import Build

            return run_flow(api_url, Build(view, keep_going, graph, until), started)
    finally:
        view.close()


def _write_points(path: Path) -> None:
    """Write whole numbers among the grid's epsilons as 5.0 for 5: dvc.yaml makes a folder name of what stands there."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return  # whoever loads it says what is wrong
    for key in ("grid", "epsilons"):
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for name, value in pairs if name.value == key), None)
    found = node.value if isinstance(node, yaml.SequenceNode) else []
    ends = [one.end_mark.index for one in found if one.tag.endswith(":int")]
    for end in reversed(ends):
        text = f"{text[:end]}.0{text[end:]}"
    if ends:
        _replace(path, text.encode("utf-8"))
        print(f"{path}: grid.epsilons: whole numbers are written with a decimal point from now on", file=sys.stderr)


def _replace(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        partial = path.with_name(f".{path.name}.partial")
        partial.write_bytes(content)
        os.replace(partial, path)
