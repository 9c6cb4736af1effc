"""The whole table of faults and who catches each: `python -m tests.mutations OUT.md [--samples N]`; an hour or two."""

from __future__ import annotations

import argparse
import inspect
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lexveil.runtime.hashes import code_hash
from tests.mutations.catchers import complaints, fails
from tests.mutations.faults import FAULTS
from tests.mutations.planting import Fault, test_named

HEAD = """# Who catches which planted fault

{n} faults, planted one at a time. *Audit*: `lexveil audit` of the mechanism at its defaults ({samples:,} samples, S1,
release mode, two processes), on a toy project. *With options*: with the strategy, parameters or mode that the fault
needs. *Few samples*: as in the tests of every change (`tests/mutations`). *Tests*: named ones. Made by
`python -m tests.mutations`, {made}, code {code}.

| fault | kind | audit | with options | few samples | tests |
| --- | --- | --- | --- | --- | --- |
"""


def column(fault: Fault, samples: int) -> list[str]:
    """What each catcher says of a fault."""
    default: dict[str, Any] = {
        key: value for key, value in (fault.audit or {}).items() if key in ("mechanism", "epsilon")
    }
    default |= {"samples": samples, "workers": 2, "words": 300}
    options = {**default, **(fault.audit or {}), "samples": samples, "workers": 2}
    cells = []
    if fault.audit:
        cells.append(said(complaints(**default)))
        cells.append("as before" if options == default else said(complaints(**options)))
        cells.append(said(complaints(**fault.audit)))
    else:
        cells += ["-", "-", "-"]
    tests = []
    for named, values in fault.tests:
        test = test_named(named)
        alone = hasattr(test, "hypothesis") or not set(inspect.signature(test).parameters) - values.keys() - {
            "mechanism"
        }
        caught = fails(named, values, lambda name: None) if alone else True  # with fixtures: as the suite runs it
        tests.append(f"{'yes' if caught else '**no**'}: {named.rpartition('::')[2]}")
    return [*cells, "; ".join(tests) or "-"]


def said(found: list[str]) -> str:
    """In a cell: caught, by how many findings, and which was the first."""
    return f"yes ({len(found)}: {found[0].split(': ')[-1].split(': ')[0][:60]})".replace("|", "/") if found else "no"


def main() -> None:
    """Make the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--samples", type=int, default=20_000)
    options = parser.parse_args()
    head = HEAD.format(
        n=len(FAULTS), samples=options.samples, made=f"{datetime.now(UTC):%Y-%m-%d}", code=code_hash()[:12]
    )
    options.out.write_text(head, encoding="utf-8")
    counts = [0, 0, 0, 0]
    for fault in FAULTS:
        with pytest.MonkeyPatch.context() as patch:
            fault.plant(patch)
            cells = column(fault, options.samples)
        cells = [cells[0] if cell == "as before" else cell for cell in cells]
        counts = [count + cell.startswith("yes") for count, cell in zip(counts, cells, strict=True)]
        with options.out.open("a", encoding="utf-8") as file:
            file.write(f"| {fault.name} | {fault.kind} | {' | '.join(cells)} |\n")
        print(fault.name, cells, flush=True)
    with options.out.open("a", encoding="utf-8") as file:
        file.write(f"| **caught** | of {len(FAULTS)} | {' | '.join(map(str, counts))} |\n")


if __name__ == "__main__":
    main()
