"""The verbs of a project: `lexveil init`, `run`, `report`, `schedule`, `release` and others."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from lexveil.base import paths
from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.logs import logger
from lexveil.base.runtime.graph_libraries import require
from lexveil.base.runtime.project import build_lock, find_root
from lexveil.faces.cli.main import fail
from lexveil.faces.cli.options import Count, Json, Port, Share, Stream, Wait, exclusive
from lexveil.faces.cli.output import anywhere, in_project, show
from lexveil.io.request import BandName

LOG = logger(__name__)


def init(
    folder: Annotated[Path | None, Parameter(name="DIR")] = None, /, *, upgrade: bool = False
) -> None:
    """Create a project: the graph, its stages and queries, its flows and its parameters.

    Writes dvc.yaml, params.yaml, lexveil.toml, prefect.yaml, tasks/, flows/ and sql/ and makes the
    folder a git repository, in which DVC keeps versions. These files are the project's own and can
    be changed. The library stays where it is installed, and a newer version makes stale only the
    stages whose code has changed.

        lexveil init demo && cd demo && lexveil run
        lexveil init --upgrade      in a project whose params.yaml is of an earlier version

    Args:
        folder: new or empty folder; with --upgrade, a project (default: the current folder)
        upgrade: move keys that no longer belong into params.yaml to lexveil.toml
    """
    from lexveil.base.runtime.new_project import create

    if upgrade:
        _upgrade(in_project() if folder is None else folder)
        return
    if folder is None:
        raise RequestError("DIR is missing: name a new folder, or add --upgrade in a project")
    create(folder)
    print(f"made a project in {folder}. Next:\n  cd {folder}")
    print("  lexveil run              makes the embedded default data and everything from it")
    print("  lexveil data use --help  takes your own data instead")
    print(
        "  git add .dvc .dvcignore .gitignore data.dvc dvc.yaml lexveil.toml params.yaml "
        "prefect.yaml flows sql tasks && git commit"
    )
    print(
        "After a run, also add dvc.lock and .provenance.json, so that lineage can name the "
        "commit of the run."
    )
    print("Never add files with private texts.")


def _upgrade(root: Path) -> None:
    """Move the keys of params.yaml that belong into lexveil.toml to that file, and print their
    names.
    """
    from lexveil.io.execution.project_upgrade import other_files, upgrade

    moved = upgrade(root)
    if not moved:
        print(f"{root / paths.PARAMS} has no key that belongs into {paths.CONFIGURATION}")
    else:
        print(f"moved to {root / paths.CONFIGURATION}: {', '.join(moved)}")
    if others := other_files(root):
        print(
            f"{len(others)} files of the project differ from the files of this version, "
            "which may be incompatible with them: "
            f"{', '.join(others[:5])}{(', …' if len(others) > 5 else '')}; `lexveil init "
            "DIR` writes the files of this version into a new folder"
        )


def run(
    stage: str | None = None,
    /,
    *,
    params: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    wait: Wait = False,
    keep_going: Annotated[bool, Parameter(alias="-k")] = False,
    verbose: Annotated[bool, Parameter(alias="-v")] = False,
    check: bool = False,
) -> int:
    """Run the stale stages of the graph: sample, count, train, privatize, check, report.

    Runs the graph in dvc.yaml as a Prefect flow. Only stages whose data, code or parameters changed
    run again; a run that was stopped or killed resumes. Creates the embedded default data if data/
    is absent.

        lexveil run                          with the existing params.yaml
        lexveil run --params bigger.yaml    checks bigger.yaml, replaces params.yaml by it, and runs
        lexveil run --check                  for a build server: exit code 1 if a stage is stale
        PREFECT_API_URL=http://host:4200/api lexveil run     shows the run in that Prefect server

    Args:
        stage: run only this stage and the stages that it needs
        params: replace params.yaml by FILE (after checking it) and run
        keep_going: after a failure, continue with stages that do not depend on the failed stage
        verbose: show what the stages print
        check: run nothing; name the stale stages, and end with exit code 1 if there are any
    """
    if check and params is not None:
        raise RequestError("--check runs nothing; remove --params")
    started = time.monotonic()
    params = params and params.resolve()
    in_project()
    require("prefect", "dvc")
    from lexveil.base.runtime.tables import atomic_file
    from lexveil.io.config import load_configuration, load_params
    from lexveil.io.execution.named_parameters import require_named_keys

    # check the parameters first, because a mistyped key must not cost a run
    chosen = load_params(params or paths.PARAMS, "give another file by --params")
    load_configuration().require_segmentation(chosen)
    require_named_keys(params or paths.PARAMS)
    from flows.prefect_server import ServerLostError

    try:
        with build_lock(wait, say=print):
            if check:
                from flows.planning import plan, say_stale

                return int(say_stale(print, plan(print), stage))
            if params:
                content = params.read_bytes()
                with atomic_file(paths.PARAMS) as partial:
                    partial.write_bytes(content)
            return bring_up_to_date(verbose, keep_going, started, stage)
    except ServerLostError as error:
        code = fail("lexveil run", error)
        os._exit(code)  # otherwise Prefect's threads would try for minutes to reach the server


def bring_up_to_date(
    verbose: bool, keep_going: bool, started: float, until: str | None = None
) -> int:
    """Run the stale stages of the pipeline in the current folder, and return the exit code. With
    ``until``, run only this stage and the stages that it needs. The caller holds the build lock.

    No Prefect run is started if no stage is stale and no running Prefect server would show the run.
    """
    from flows.data_bootstrap import ensure_data
    from flows.display import watcher
    from flows.planning import plan, say_done
    from flows.prefect_server import api, running_api
    from lexveil.base.runtime.run_events import StageResult
    from lexveil.io.config import load_configuration
    from lexveil.lab.lineage import provenance

    # Prefect's own log goes to its server; the console belongs to the display.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    # do not print a log line on the console if the server did not accept it
    logging.raiseExceptions = False
    view = watcher(verbose)
    try:
        ensure_data(view.say)
        url = running_api()
        graph = plan(view.say)
        wanted = graph.wanted(until)
        is_recorded = url is not None or load_configuration().operation.openlineage is not None
        if not is_recorded and graph.stale.keys().isdisjoint(stage.name for stage in wanted):
            view.begin(len(wanted))
            for stage in wanted:
                view.end(StageResult(stage.name, "cached"))
            provenance.settle()
            view.close()
            say_done(view.say, f"{len(wanted)} cached", time.monotonic() - started, wanted)
            return 0
        with api(url) as api_url:
            from flows.build import run as run_flow
            from flows.stages import Build

            return run_flow(api_url, Build(view, keep_going, graph, until), started)
    finally:
        view.close()


def report(*, json: bool = False, open: bool = False) -> int:
    """Print the path of the report of the last run, one self-contained page.

        lexveil report --open
        lexveil report --json      the figures of each run, as JSON

    Args:
        json: print the figures of each run
        open: open it in the browser
    """
    root = in_project()
    file = paths.RUNS if json else paths.REPORT / "index.html"
    if not file.exists():
        raise RequestError(f"{file} does not exist yet; `lexveil run` makes it")
    # A failed check removes its record and stops the later stages, so the report is from an earlier
    # run.
    checks = ("corpus", "collocations", "coverage", "outputs")
    if failed := ", ".join(name for name in checks if not (paths.CHECKS / f"{name}.json").exists()):
        LOG.warning(
            f"lexveil report: the report is from an earlier run; {failed} has failed its "
            "check since then"
        )
    if json:
        from lexveil.base.runtime.tables import read_json

        show(
            {run.stem: read_json(run, "report") for run in sorted(file.glob("*.json"))},
            as_json=True,
        )
        return 0
    print(root / file)
    if open:
        import webbrowser

        if not webbrowser.open((root / file).as_uri()):
            raise LexveilError(f"no browser could be opened; open {root / file} yourself")
    return 0


def ui(*, port: Port = 4200) -> int:
    """Show Prefect's pages with the runs of this project.

    Starts Prefect's server on 127.0.0.1, reachable from this machine only, and prints its address.
    The pages include runs from times when the server was off. Ctrl-C ends the server.

        lexveil ui --port 4201
    """
    in_project()
    require("prefect")
    from flows.prefect_server import pages

    try:
        with pages(port) as (_, server):
            print(
                f"http://127.0.0.1:{port}  (Ctrl-C ends the server, which shows the runs of "
                "`lexveil run`)",
                flush=True,
            )
            return server.process.wait()
    except KeyboardInterrupt:
        return 0  # Ctrl-C is the way to end the server


def schedule(*, port: Port = 4200) -> int:
    """Run build and audit on the schedules of prefect.yaml.

    Serves the deployments of prefect.yaml until Ctrl-C: their schedules start runs, and Prefect's
    pages can start runs too, with other parameters if needed. The command uses the server of
    PREFECT_API_URL or of a running `lexveil ui`. Otherwise it starts a server on 127.0.0.1,
    reachable from this machine only. docs/how-to/operation.md says how to keep the command running.

        lexveil schedule
        lexveil schedule --port 4201

    Args:
        port: port of the server, if the command starts one
    """
    in_project()
    from flows import deployments
    from flows.prefect_server import lasting_api

    served = deployments.read_deployments()  # check the deployments before anything is started
    with lasting_api(port) as (url, server):
        return deployments.serve(url, server, served)


def release(*, dry_run: bool = False, wait: Wait = False, json: Json = False) -> None:
    """Release the new documents of an inbox folder or a database.

    Reads the source that lexveil.toml: inbox names, releases new and changed documents, skips known
    documents, removes withdrawn documents, and archives a release only if its checks pass. It
    recognizes documents by salted hashes of their ids. docs/how-to/release.md says more.

        lexveil release --dry-run    what would be released, skipped and withdrawn, and its cost
        lexveil release

    Args:
        dry_run: only print what would be done and what it would cost
    """
    in_project()
    with build_lock(wait, say=print):
        report = import_module("flows.archive_release").release(dry_run)
    show(report.as_dict() if json else report, json, type(report).as_text)


def lineage(
    artifact: Annotated[str, Parameter(name="ARTIFACT")],
    /,
    *,
    verify: bool = False,
    at: Annotated[str | None, Parameter(metavar="REV")] = None,
    json: Json = False,
) -> int:
    """Trace an artifact to the data, code and parameters that made it.

    Prints the chain from an artifact back to the data files, as DVC recorded it: commands,
    parameters, hashes, and the runs, commits and libraries that made each. For a file that `lexveil
    privatize` wrote, it starts from the record next to it. docs/how-to/lineage.md says more.

        lexveil lineage artifacts/private/madlib/S3/10.0
        lexveil lineage letters.out.jsonl --verify
        lexveil lineage artifacts/report/index.html --at v1.2 --json

    Args:
        artifact: a file or folder that a stage makes, or a file inside one; or a file that `lexveil
            privatize` wrote
        verify: read and hash all files of the chain that are present; exit code 1 if one differs
            from the records
        at: read the records of a git commit, tag or branch; the work tree is not touched
    """
    # Do not use resolve(), which would follow a link into DVC's cache.
    asked = Path(os.path.abspath(artifact))  # noqa: PTH100
    root = anywhere()
    from lexveil.lab.lineage import release_lineage, rendering, trace
    from lexveil.lab.lineage import verify as verification

    record = release_lineage.record_beside(asked)
    if root is None and (
        record is None
        or not release_lineage.is_of_packaged_model(release_lineage.read_record(record))
    ):
        find_root(Path.cwd())  # the error names the remedy
    if record is None and root is not None:
        if not asked.is_relative_to(root):
            raise RequestError(
                f"{artifact} is outside the project {root}, and there is no record of "
                "`lexveil privatize` next to it"
            )
        asked = asked.relative_to(root)
    if verify:
        checked = (
            verification.verify(asked, at)
            if record is None
            else verification.verify_released(asked, record, at)
        )
        print("\n".join(rendering.as_json(checked) if json else verification.as_text(checked)))
        return 0 if checked["holds"] else 1
    chain = (
        trace.lineage(asked, at) if record is None else release_lineage.released(asked, record, at)
    )
    print("\n".join(rendering.as_json(chain) if json else rendering.as_text(chain)))
    return 0


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """Limits that a recommended run must meet.

    Attributes:
        min_utility: the smallest utility, macro F1
        max_attack: the largest success of the adaptive attacker, macro F1
        max_recovery: the largest share of replaced words that an adversary names, by the upper end
            of its confidence interval
        band: the words for which --max-recovery holds
        dataset: only this data set (default: all data sets that have both scores)
        setting: utility on rewritten texts or on clean texts
    """

    min_utility: Share | None = None
    max_attack: Share | None = None
    max_recovery: Share | None = None
    band: BandName | Literal["listed"] = "all"
    dataset: Annotated[str | None, Parameter(metavar="NAME")] = None
    setting: Literal["private", "clean"] = "private"


def recommend(*, limits: RunLimits = RunLimits(), json: Json = False) -> int:  # frozen
    """Recommend runs of the grid that meet limits of utility or attack.

    Lists the evaluated runs that meet the limits and that no other run beats in both utility and
    attack (macro F1), with their margins, and says which of them cannot be told apart. A run is
    never recommended if its attack score cannot be told from the attack score on clean texts. Exit
    code 1 if no run meets the limits. Needs the artifacts of `lexveil run` with documents that have
    a label and an attribute.

        lexveil recommend --min-utility 0.8
        lexveil recommend --min-utility 0.8 --max-recovery 0.1 --band rare
        lexveil recommend --max-attack 0.4 --dataset reviews --setting clean --json
    """
    in_project()
    from lexveil.lab.report import recommend as recommendation

    kept = recommendation.Limits(
        min_utility=limits.min_utility,
        max_attack=limits.max_attack,
        max_recovery=limits.max_recovery,
        band=limits.band,
    )
    result = recommendation.recommend(kept, dataset=limits.dataset, setting=limits.setting)
    show(result, json, recommendation.as_text)
    return 0 if any(found["fitting"] for found in result["datasets"].values()) else 1


QUESTION = exclusive(required=True)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filter and order of the collocations to show.

    Attributes:
        by: sort by count, pmi_bits (the default), or another measure in params.yaml:
            collocations.measures
        length: only pairs, or only triples of words
        min_count: only collocations that occur N times or more
        limit: number of collocations of --word (default: 30)
    """

    by: Annotated[str | None, Parameter(metavar="MEASURE")] = None
    length: Literal[2, 3] | None = None
    min_count: Count | None = None
    limit: Count | None = None


def collocations(
    text: Annotated[Stream | None, Parameter(name="TEXT", group=QUESTION)] = None,
    /,
    *,
    top: Annotated[Count | None, Parameter(group=QUESTION)] = None,
    word: Annotated[str | None, Parameter(metavar="W", group=QUESTION)] = None,
    filters: Filters = Filters(),  # frozen
    json: Json = False,
) -> None:
    """Look up collocations, and see how they cut a text.

    For a text, the command prints every collocation with its count and measures. It also prints the
    sentences of the text, cut by word, gst, mst and mst_exact with their total PMI, as the corpus
    is cut. With --top or --word it lists the best collocations, of all words or of one word. Needs
    the artifacts of `lexveil run`.

        lexveil collocations "New York City is in the United States"
        lexveil collocations --top 20 --by count --length 3
        lexveil collocations --word york --json

    Args:
        text: the text; - is standard input
        top: the N best collocations
        word: the collocations that contain W, best first
    """
    in_project()
    from lexveil.lab.collocations import lookup

    show(lookup.look_up(text, top, word, **asdict(filters)), json, lookup.as_text)
