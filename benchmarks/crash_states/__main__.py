"""Every state that a power cut may leave of a release, checked.

    python -m benchmarks.crash_states                    # what the ledger does, all states: minutes
    python -m benchmarks.crash_states --project DIR      # whole releases too, with the artifacts of a built project

Ends with exit code 1 if in one of them an output is not paid for, a subject is above its cap, a balance is not the sum
of what was spent, or there is no way on; or if a planted fault is not seen.
"""

from __future__ import annotations

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.crash_states import whole
from benchmarks.crash_states.exploring import Explored, Recording, explore, record_all, work_folder
from benchmarks.crash_states.scenarios import FAULTS, SCENARIOS
from benchmarks.table import print_table

NAMES = ("scenario", "operations", "syncs", "ext4", "POSIX", "refused", "violations")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=64, help="states of one model after one operation (default: 64)")
    parser.add_argument("--seed", type=int, default=0, help="of what is chosen where there are more (default: 0)")
    parser.add_argument("--project", type=Path, help="a project in which `lexveil run` made the artifacts")
    parser.add_argument("--whole", type=int, default=150, help="states of each whole release (default: 150)")
    options = parser.parse_args(arguments)
    began, n_violations = time.monotonic(), 0
    with work_folder() as work:
        recordings = record_all(list(SCENARIOS), Path(work))
        n_violations += _table(recordings, lambda one: explore(one, options.most, options.seed))
    unseen = _faults(options.most, options.seed)
    if options.project is not None:
        with work_folder() as work:
            recordings = record_all(list(whole.SCENARIOS), Path(work), options.project.absolute())
            n_violations += _table(
                recordings,
                lambda one: explore(one, options.most, options.seed, at_most=options.whole, checked=whole.check),
            )
    print(f"{n_violations:,} violations, {unseen:,} faults not seen, {time.monotonic() - began:.0f} s")
    return 1 if n_violations or unseen else 0


def _table(recordings: Sequence[Recording], explored: Callable[[Recording], Explored]) -> int:
    """Print what was found in each scenario; how many violations."""
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    for recording in recordings:
        found = explored(recording)
        rows.append(
            {"scenario": recording.name, "operations": found.operations, "syncs": found.syncs}
            | dict(found.states)
            | {"refused": found.refusals.total(), "violations": found.violations.total()}
        )
        lines += [f"{recording.name}, refused {n:,} times: {what}" for what, n in found.refusals.items()]
        lines += [f"{recording.name}, {model}, VIOLATED {n:,} times: {w}" for (model, w), n in found.violations.items()]
    print_table({name: name for name in NAMES}, rows)
    print(f"{sum(row.get(model, 0) for row in rows for model in ('ext4', 'POSIX')):,} states")
    print("\n".join(lines), flush=True)
    return sum(row["violations"] for row in rows)


def _faults(most: int, seed: int) -> int:
    """Print for each planted fault the first state in which it is seen; how many are not seen at all."""
    seen: dict[str, str] = {}
    with work_folder() as work:
        for recording in record_all(
            [f"{one}:{fault}" for fault in FAULTS for one in ("second", "aborted")], Path(work)
        ):
            scenario, _, fault = recording.name.partition(":")
            if fault not in seen:
                found = explore(recording, most, seed, until_violated=True)
                whats = [f"{model}: {what}" for model, what in found.violations] or list(found.refusals)
                if whats:
                    seen[fault] = f"after {found.states.total():,} states of {scenario!r}: {whats[0]}"
    for fault in FAULTS:
        print(f"fault: {fault}: {seen.get(fault, 'NOT SEEN')}", flush=True)
    return len(FAULTS) - len(seen)


if __name__ == "__main__":
    sys.exit(main())
