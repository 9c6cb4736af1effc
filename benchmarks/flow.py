"""Cost of the flow in comparison with plain `dvc repro`: a graph of many small stages, run from
nothing and without changes.

The figures are wall time and CPU seconds of whole commands, one after another; they include
Prefect's server for the run. With --epsilons the graph is the grid of dvc.yaml: `privatize` and
`evaluate` for 8 mechanisms, 4 strategies and the given number of ε, with the code files and
parameters on which those stages depend in this repository, and with commands that cost nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.table import print_table
from lexveil.core.mechanisms import mechanism_names

ROOT = Path(__file__).parents[1]
DVC = [sys.executable, "-m", "dvc", "repro", "-q"]
FLOW = [sys.executable, "-m", "lexveil.faces.cli", "run"]

STAGE = """
import sys, time
end = time.process_time() + float(sys.argv[2])
while time.process_time() < end:
    pass
open(f"artifacts/{sys.argv[1]}.txt", "w").write(sys.argv[1])
"""


def make_project(root: Path, entries: int, seconds: float, workers: int) -> None:
    """Write a project whose graph is one stage in a matrix of ``entries``; each entry keeps one
    processor busy for ``seconds``.
    """
    (root / "artifacts").mkdir(parents=True)
    (root / "data").mkdir()
    (root / "data/any.txt").touch()
    (root / "stage.py").write_text(STAGE)
    numbers = ", ".join(map(str, range(entries)))
    (root / "dvc.yaml").write_text(
        f"stages:\n  work:\n    matrix:\n      number: [{numbers}]\n"
        f"    cmd: python stage.py ${{item.number}} {seconds}\n    deps: [stage.py]\n    "
        "params: [seed]\n"
        "    outs: ['artifacts/${item.number}.txt']\n"
    )
    finish(root, workers)


def make_grid(root: Path, epsilons: int, workers: int) -> None:
    """Write a project whose graph is the grid of dvc.yaml with empty commands: 64 stages for each
    ε, and `code`.
    """
    from dvc.utils.serialize import dumps_yaml, loads_yaml

    here = loads_yaml((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    matrix = {"mechanism": mechanism_names(), "strategy": ["S1", "S2", "S3", "S4"]}
    matrix["epsilon"] = [f"{i + 1}.0" for i in range(epsilons)]
    cell = "${item.mechanism}/${item.strategy}/${item.epsilon}"
    places = {"privatize": f"artifacts/private/{cell}", "evaluate": f"artifacts/evaluations/{cell}"}
    stages: dict[str, Any] = {"code": here["code"]}
    for name, place in places.items():
        deps = [dep for dep in here[name]["deps"] if not dep.startswith(("artifacts/", "data/"))]
        given = [
            f"data/{Path(dep).name}"
            for dep in here[name]["deps"]
            if dep.startswith("artifacts/") and "$" not in dep
        ]
        for file in given:
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(file, encoding="utf-8")
        for dep in deps:
            (root / dep).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / dep).is_dir() else shutil.copy)(ROOT / dep, root / dep)
        stages[name] = {
            "matrix": matrix,
            "cmd": f"mkdir -p {place} && printf {cell} > {place}/documents.txt",
            "deps": [
                *given,
                *([f"{places['privatize']}/documents.txt"] if name == "evaluate" else []),
                *deps,
            ],
            "params": here[name]["params"],
            "outs": [place],
        }
    (root / "dvc.yaml").write_text(dumps_yaml({"stages": stages}), encoding="utf-8")
    finish(root, workers)


def finish(root: Path, workers: int) -> None:
    """Write the other files of a project beside its graph."""
    (root / ".gitignore").write_text("/artifacts/\n/data/\n/.lexveil/\n", encoding="utf-8")
    shutil.copy(ROOT / "params.yaml", root)
    (root / "lexveil.toml").write_text(f"[machine]\nworkers = {workers}\n", encoding="utf-8")
    shutil.copytree(ROOT / ".dvc", root / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp"))
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)


def measure(argv: list[str], root: Path) -> tuple[float, float]:
    """Run one command; return its wall time and the CPU seconds of the command and its child
    processes.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")
    }
    path = os.pathsep.join((str(Path(sys.executable).parent), environment.get("PATH", "")))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(
        argv,
        cwd=root,
        env=environment | {"PYTHONPATH": str(ROOT), "PATH": path},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def require_equal(roots: Sequence[Path]) -> None:
    """Check that projects have the same dvc.lock and the same outputs, byte for byte."""
    made = [
        {
            str(file.relative_to(root)): file.read_bytes()
            for file in (root / "dvc.lock", *(root / "artifacts").rglob("*"))
            # .gitignore lists outputs in the order in which they were made
            if file.is_file() and file.name != ".gitignore"
        }
        for root in roots
    ]
    if any(files != made[0] for files in made):
        raise SystemExit("the commands left different locks or outputs")


def compare(
    make: Callable[[Path], None], commands: Mapping[str, list[str]]
) -> list[dict[str, Any]]:
    """Measure commands on copies of one project: first all stages run, then none. The locks and
    outputs of the copies must be the same.
    """
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        roots = {name: Path(folder, name.replace(" ", "-")) for name in commands}
        for root in roots.values():
            make(root)
        for what in ("all stages", "nothing changed"):
            for name, argv in commands.items():
                wall, cpu = measure(argv, roots[name])
                rows.append({"what": what, "command": name, "wall": wall, "cpu": cpu})
                print(rows[-1], file=sys.stderr, flush=True)
        require_equal(list(roots.values()))
    return rows


def main() -> None:
    """Measure the flow and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--entries", type=int, default=100, help="stages of the matrix (default: 100)"
    )
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="CPU seconds of each stage (default: 2)"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        help="number of stages that run at once; `dvc repro` runs one (default: 1)",
    )
    parser.add_argument(
        "--epsilons",
        type=int,
        help="use the grid of dvc.yaml with this number of ε: 64 stages each",
    )
    parser.add_argument(
        "--ours", action="store_true", help="without the comparison with `dvc repro`"
    )
    parser.add_argument("--json", type=Path, help="write the rows here too")
    arguments = parser.parse_args()
    if arguments.epsilons:
        make = partial(make_grid, epsilons=arguments.epsilons, workers=arguments.workers)
    else:
        make = partial(
            make_project,
            entries=arguments.entries,
            seconds=arguments.seconds,
            workers=arguments.workers,
        )
    commands = {"lexveil run": FLOW} if arguments.ours else {"dvc repro": DVC, "lexveil run": FLOW}
    rows = compare(make, commands)
    print_table(
        {"what": "what", "command": "command", "wall": "wall s", "cpu": "processor s"}, rows
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
