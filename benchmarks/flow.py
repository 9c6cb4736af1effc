"""What the flow costs beside plain `dvc repro`: a graph of many small stages, run anew and with nothing changed.

Wall time and processor seconds of whole commands, one after another; Prefect's server for the run is included.
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
from pathlib import Path
from typing import Any

from benchmarks.table import print_table

ROOT = Path(__file__).parents[1]
DVC = [sys.executable, "-m", "dvc", "repro", "-q"]
FLOW = [sys.executable, "-m", "lexveil.cli", "run"]

STAGE = """
import sys, time
end = time.process_time() + float(sys.argv[2])
while time.process_time() < end:
    pass
open(f"artifacts/{sys.argv[1]}.txt", "w").write(sys.argv[1])
"""


def make_project(root: Path, entries: int, seconds: float, workers: int) -> None:
    """Write a project whose graph is one stage in a matrix of ``entries``, each ``seconds`` of one processor's work."""
    (root / "artifacts").mkdir(parents=True)
    (root / "data").mkdir()
    (root / "data/any.txt").touch()
    (root / "stage.py").write_text(STAGE)
    numbers = ", ".join(map(str, range(entries)))
    (root / "dvc.yaml").write_text(
        f"stages:\n  work:\n    matrix:\n      number: [{numbers}]\n"
        f"    cmd: python stage.py ${{item.number}} {seconds}\n    deps: [stage.py]\n    params: [seed]\n"
        "    outs: ['artifacts/${item.number}.txt']\n"
    )
    (root / ".gitignore").write_text("/artifacts/\n/data/\n/.lexveil/\n")
    params = (ROOT / "params.yaml").read_text(encoding="utf-8")
    (root / "params.yaml").write_text(params.replace("  workers: 2 ", f"  workers: {workers} ", 1))
    shutil.copytree(ROOT / ".dvc", root / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp"))
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)


def measure(argv: list[str], root: Path) -> tuple[float, float]:
    """Run one command; return its wall time and the processor seconds of it and all that it started."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    path = os.pathsep.join((str(Path(sys.executable).parent), environment.get("PATH", "")))
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        argv,
        cwd=root,
        env=environment | {"PYTHONPATH": str(ROOT), "PATH": path},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(entries: int, seconds: float, workers: int) -> list[dict[str, Any]]:
    """Measure `dvc repro` and `lexveil run` on two copies of one project: all stages, then none."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        roots = {"dvc repro": Path(folder, "plain"), "lexveil run": Path(folder, "flow")}
        for root in roots.values():
            make_project(root, entries, seconds, workers)
        for what in ("all stages", "nothing changed"):
            walls = {}
            for name, argv in (("dvc repro", DVC), ("lexveil run", FLOW)):
                walls[name], cpu = measure(argv, roots[name])
                over = walls[name] - walls["dvc repro"]
                rows.append({"what": what, "command": name, "wall": walls[name], "cpu": cpu, "over": over})
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100, help="stages of the matrix (default: 100)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one processor, each stage (default: 2)")
    parser.add_argument("--workers", type=int, default=1, help="stages side by side; `dvc repro` has one (default: 1)")
    parser.add_argument("--json", type=Path, help="write the rows here too")
    arguments = parser.parse_args()
    rows = compare(arguments.entries, arguments.seconds, arguments.workers)
    columns = {
        "what": "what",
        "command": "command",
        "wall": "wall s",
        "cpu": "processor s",
        "over": "wall s over dvc repro",
    }
    print_table(columns, rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
