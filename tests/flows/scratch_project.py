"""A tiny project in the shape of the real graph: seven stages, made in a moment."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from dvc import cli as dvc_cli

from lexveil.base.errors import LexveilError
from lexveil.base.runtime.project import build_lock
from lexveil.base.runtime.run_events import RunObserver, StageResult
from tests.tasks.changing import configure

ROOT = Path(__file__).parents[2]

# Each stage joins what it reads, writes that in two steps and notes when it ran. behaviour.txt,
# which no stage declares, can make one fail ("count@a fail 2"), die ("count@a die"), wait between
# its steps ("count@a wait 5") or wait for another to begin ("count@a meet count@b").
STAGE = """
import os, sys, time
from pathlib import Path

out, source = Path(sys.argv[1]), Path(sys.argv[2])
name = os.environ["DVC_STAGE"]
with open("ran.log", "a") as log:
    log.write(f"{name} start {time.monotonic()}\\n")
print(f"{name} speaks", flush=True)
asked = dict(line.split(" ", 1) for line in Path("behaviour.txt").read_text().splitlines())
what = asked.get(name, "").split()
files = [source]
if source.is_dir():
    files = sorted(file for file in source.rglob("*") if file.is_file())
text = "".join(file.read_text() for file in files)
out.parent.mkdir(parents=True, exist_ok=True)
partial = out.with_name(f".{out.name}.partial")
partial.write_text(text)
if what[:1] == ["fail"]:
    message = f"{name} does not hold; the limit is 3"
    print(f"CheckFailedError: {message}", file=sys.stderr)
    sys.exit(int(what[1]))
if what[:1] == ["die"]:
    os.kill(os.getpid(), 9)
if what[:1] == ["wait"]:
    Path(f"waiting-{os.getpid()}").touch()
    time.sleep(float(what[1]))
if what[:1] == ["meet"]:
    until = time.monotonic() + 1800
    while f"{what[1]} start " not in Path("ran.log").read_text() and time.monotonic() < until:
        time.sleep(0.05)
with partial.open("a") as file:
    file.write(name + "\\n")
partial.rename(out)
with open("ran.log", "a") as log:
    log.write(f"{name} end {time.monotonic()}\\n")
"""


ORDER = ["first", "count@a", "count@b", "privatize@S1-1.0", "privatize@S2-1.0", "check", "report"]


@dataclass
class Notes(RunObserver):
    """A watcher that writes everything down."""

    said: list[str] = field(default_factory=list)
    results: dict[str, StageResult] = field(default_factory=dict)
    lines: list[tuple[str, str]] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.said.append(text)

    def output(self, stage: str, line: str) -> None:
        self.lines.append((stage, line))

    def end(self, result: StageResult) -> None:
        self.results[result.stage] = result


@dataclass
class Run:
    """A run of the flow: its exit code, its line on standard error, and the
    notes of its observer."""

    code: int
    error: str
    notes: Notes

    @property
    def states(self) -> dict[str, str]:
        results = self.notes.results
        return {name: results[name].state for name in sorted(results, key=ORDER.index)}


def run_flow(prefect_server: str, keep_going: bool = False) -> Run:
    """Run the flow in the current folder as `lexveil run` does."""
    from flows import build
    from flows.stages import Build

    notes = Notes()
    with build_lock():
        try:
            return Run(
                build.run(prefect_server, Build(notes, keep_going), time.monotonic()), "", notes
            )
        except LexveilError as error:
            return Run(error.exit_code, str(error), notes)


def task_runs(n: int) -> dict[str, Any]:
    """The n task runs of the last flow run, by name, as the server knows them; the flow run itself
    as ""."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.sorting import FlowRunSort

    with get_client(sync_client=True) as client:
        (last,) = client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=1)
        # the server has the states, and writes them to its database in its own time
        for _ in range(36_000):
            runs = client.read_task_runs(flow_run_filter=FlowRunFilter(id={"any_": [last.id]}))
            if len(runs) >= n and all(
                run.state is not None and run.state.is_final() for run in runs
            ):
                break
            time.sleep(0.05)
    return {"": last} | {run.name: run for run in runs}


class Project:
    """The scratch project's folder and what a test does with it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def take(self, root: Path) -> Project:
        """Take the content of another project."""
        shutil.copytree(root, self.root, symlinks=True, dirs_exist_ok=True)
        return self

    def behave(self, *lines: str) -> None:
        """Tell stages to fail or wait; nothing becomes stale by it."""
        (self.root / "behaviour.txt").write_text("".join(line + "\n" for line in lines))

    def ran(self) -> list[str]:
        """The stages that were begun since the last call, in order."""
        log = self.root / "ran.log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line.split()[0] for line in lines if " start " in line]

    def times(self) -> dict[tuple[str, str], float]:
        """Return start and end of each stage: (stage, "start" | "end") -> seconds on a monotonic
        clock.
        """
        lines = (line.split() for line in (self.root / "ran.log").read_text().splitlines())
        return {(stage, what): float(when) for stage, what, when in lines}

    def dvc(self, *arguments: str) -> None:
        """Run DVC in this process, which spares a second of imports; the project is the current
        folder."""
        assert Path.cwd() == self.root
        with contextlib.redirect_stdout(io.StringIO()):
            assert dvc_cli.main([*arguments, "--quiet"]) == 0

    def git(self, *arguments: str) -> str:
        identity = (
            "-c",
            "user.name=Tester",
            "-c",
            "user.email=tester@example.org",
            "-c",
            "commit.gpgsign=false",
        )
        argv = ["git", *identity, *arguments]
        return subprocess.run(
            argv, cwd=self.root, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self) -> str:
        """Commit everything and return the commit."""
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", "state")
        return self.git("rev-parse", "HEAD")

    def artifacts(self) -> dict[str, bytes]:
        files = (path for path in (self.root / "artifacts").rglob("*") if path.is_file())
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in files}

    def lock(self) -> str:
        return (self.root / "dvc.lock").read_text()

    def entries(self) -> dict[str, Any]:
        """Return the entries of dvc.lock by stage."""
        return dict(yaml.safe_load(self.lock())["stages"])

    def configure(self, **sections: dict[str, Any]) -> None:
        """Change settings of lexveil.toml."""
        configure(self.root, **sections)

    def set_params(self, before: str, after: str) -> None:
        file = self.root / "params.yaml"
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after))


def make_template(root: Path) -> None:
    """Write the project into ``root``; nothing has run in it."""
    root.mkdir()
    shutil.copy(Path(__file__).with_name("scratch_dvc.yaml"), root / "dvc.yaml")
    (root / "stage.py").write_text(STAGE)
    (root / "src.txt").write_text("source\n")
    (root / "behaviour.txt").write_text("")
    (root / ".gitignore").write_text("/artifacts/\n/data/\n/.lexveil/\n")
    params = (ROOT / "params.yaml").read_text()
    for before, after in (
        ("[madlib, tem, diffractor_geometric]", "[madlib]"),
        ("[S1, S3]", "[S1, S2]"),
        ("[r0.2, r0.5, 10.0]", "[1.0]"),
    ):
        assert before in params
        params = params.replace(before, after)
    (root / "params.yaml").write_text(params)
    shutil.copytree(ROOT / ".dvc", root / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp"))
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
