"""Whole releases, `lexveil privatize` from reading to publishing, killed at any moment, several at once.

    python -m benchmarks.release_kills --kills 1000      # in a project in which `lexveil run` made the artifacts

Each is a process with SIGKILL after a random time, of the same few subjects, whose cap lets only some of them out.
After each few the ledger recovers, and what is out is counted from the outputs themselves, not taken from the ledger.
Ends with exit code 1 if an output is not paid for, a subject is over its cap, or anything half-written is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks.kills import CAP, ROUNDS, SUBJECTS, Checked, fork
from benchmarks.table import print_table
from lexveil.ledger.ledger import Ledger
from lexveil.privatization.file_adapter import privatize_file

TEXT = "The government said that fire services in New South Wales were there, and so was Zorblax."
DATABASE_STATES = "select state, count(*) from releases group by state"


def make_project(folder: Path) -> None:
    """A project beside the current one with the same artifacts, a ledger of its own, and a cap."""
    params = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    params["release"] = params.get("release", {}) | {"cap": float(CAP), "ledger": str(folder / "ledger")}
    (folder / "artifacts").symlink_to(Path("artifacts").absolute())
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    (folder / "outputs").mkdir()


def subjects_of(output: Path) -> list[str]:
    """Whom the rows of an output are about."""
    return [json.loads(line)["who"] for line in output.read_text(encoding="utf-8").splitlines()]


def release(folder: Path, number: int, subjects: list[str]) -> None:
    """What a child does: one release, each row of which costs 1."""
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for the life of the process
    source = folder / f"{number}.jsonl"
    source.write_text("".join(json.dumps({"who": who, "text": TEXT}) + "\n" for who in subjects), encoding="utf-8")
    privatize_file(
        source,
        folder / "outputs" / f"{number}.jsonl",
        mechanism="madlib",
        strategy="S3",
        document_budget=1.0,
        subject_column="who",
        workers=1,
    )


def run(kills: int, folder: Path, seed: int) -> dict[str, Any]:
    """Kill that many releases and check what they leave."""
    rng = random.Random(seed)
    with Ledger.open(folder / "ledger"):
        pass
    checked = Checked(folder / "ledger", folder / "outputs", "*.jsonl", subjects_of)
    recovered: Counter[str] = Counter()
    for _ in range(2):  # the second is the measure: the first finds cold caches
        began = time.monotonic()
        os.waitpid(fork(partial(release, folder, 0, ["nobody"])), 0)
        takes = time.monotonic() - began
        for output in (folder / "outputs").iterdir():
            output.unlink()
    killed = finished = number = rounds = 0
    while killed < kills:
        cohort = [f"subject-{rounds // ROUNDS}-{n}" for n in range(SUBJECTS)]
        born = {}
        for _ in range(rng.choice((1, 2, 2, 3))):
            number += 1
            born[fork(partial(release, folder, number, rng.choices(cohort, k=rng.randint(1, 4))))] = number
        # Most of them late on their way, where outputs are written, paid and renamed.
        start = time.monotonic()
        slower = max(1.0, len(born) / (os.cpu_count() or 1))
        due = {pid: start + slower * takes * rng.triangular(0.3, 1.15, 0.9) for pid in born}
        for pid in sorted(born, key=due.__getitem__):
            time.sleep(max(0.0, due[pid] - time.monotonic()))
            os.kill(pid, signal.SIGKILL)
            status = os.waitpid(pid, 0)[1]
            if os.WIFSIGNALED(status):
                killed += 1
            elif status:
                checked.violations.append(f"child {born[pid]} ended with an error, and not by being killed")
            else:
                finished += 1
        recovered.update(checked.round(cohort))
        rounds += 1
        if rounds % 20 == 0:
            print(f"{killed:,} of {kills:,} killed, {finished:,} finished", file=sys.stderr, flush=True)
            checked.all()
    checked.all()
    with Ledger.open(folder / "ledger") as ledger:
        states = {str(state): int(n) for state, n in ledger.database.rows(DATABASE_STATES, ())}
    return {
        "kills": killed,
        "finished": finished,
        "releases": states,
        "recovered": dict(recovered),
        "outputs": len(checked.seen),
        "violations": checked.violations,
    }


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_project(folder)
        os.chdir(folder)
        found = run(arguments.kills, folder, arguments.seed)
        os.chdir("/")
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        rows = [{"what": "killed", "n": found["kills"]}, {"what": "finished", "n": found["finished"]}]
        rows += [{"what": f"release {state}", "n": n} for state, n in sorted(found["releases"].items())]
        rows += [{"what": f"recovered: {change}", "n": n} for change, n in sorted(found["recovered"].items())]
        rows += [{"what": "outputs", "n": found["outputs"]}, {"what": "violations", "n": len(found["violations"])}]
        print_table({"what": "", "n": ""}, rows)
        for violation in found["violations"]:
            print(violation)
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
