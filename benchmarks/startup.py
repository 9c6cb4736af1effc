"""What starting costs: the import of the library, its help, and one line through `lexveil privatize` outside a project.

    uv run python -m benchmarks.startup [--runs N] [--model NAME]

Each is a process of its own, in an empty folder with an own data folder for the ledger; the first run of each kind is
not counted, so that files are in memory and modules are compiled. Medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LINE = '{"text": "Please send the invoice for the refund to my landlord in New York before Friday."}\n'


@dataclass(frozen=True, slots=True)
class Start:
    """One process: seconds from start to end, seconds of processor time, and its largest resident memory."""

    wall: float
    cpu: float
    resident_mb: float


def started(arguments: list[str], folder: Path) -> Start:
    """Run Python with arguments in a folder.

    Raises:
        RuntimeError: if it fails.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, *arguments],
        environment | {"LEXVEIL_HOME": str(folder / "home"), "PWD": str(folder)},
        file_actions=[(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_WRONLY, 0) for descriptor in (1, 2)],
    )
    _, status, usage = os.wait4(process, 0)
    wall = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(arguments)}: ended with {os.waitstatus_to_exitcode(status)}")
    return Start(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each kind")
    parser.add_argument("--model", default="en", help="the model of the line")
    options = parser.parse_args()
    command = ["-m", "lexveil.cli.main"]
    print("| start | wall s | CPU s | MB resident |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        (folder / "in.jsonl").write_text(LINE, encoding="utf-8")
        kinds: dict[str, list[str]] = {
            "Python alone": ["-c", ""],
            "`import lexveil`": ["-c", "import lexveil"],
            "`lexveil --help`": [*command, "--help"],
            "imports of `privatize`": [
                "-c",
                "import lexveil.privatization.adapters.files",
            ],
        }
        for mechanism in ("tem", "madlib"):
            kinds[f"one line, {mechanism} S3"] = [
                *command, "privatize", "in.jsonl", "-o", "OUT", "--mechanism", mechanism, "--strategy", "S3",
                "--epsilon", "10", "--model", options.model,
            ]  # fmt: skip
        for kind, arguments in kinds.items():
            runs = [
                started([f"{number}-{len(kind)}.jsonl" if word == "OUT" else word for word in arguments], folder)
                for number in range(options.runs + 1)
            ][1:]
            wall, cpu, resident = (
                statistics.median(getattr(run, field) for run in runs) for field in ("wall", "cpu", "resident_mb")
            )
            print(f"| {kind} | {wall:.2f} | {cpu:.2f} | {resident:.0f} |")


if __name__ == "__main__":
    main()
