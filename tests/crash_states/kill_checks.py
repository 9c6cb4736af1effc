"""What must hold of a project after releases of it were killed, counted from the outputs themselves."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lexveil.errors import LexveilError


@dataclass(frozen=True, slots=True)
class Expected:
    """What to inspect.

    Attributes:
        folder: of the project.
        cap: nano-epsilon of one subject.
        n_killed: runs that were killed since the last inspection.
    """

    folder: Path
    cap: int | None
    n_killed: int


@dataclass(slots=True)
class Found:
    """What was found.

    Attributes:
        recovered: states before and after, of what the next process put right.
        refusals: what was refused, in its words.
        visible: outputs of the project.
        outputs: of all projects.
        lost: releases that were spent and have no output.
        dearest: nano-epsilon of the dearest document.
    """

    violations: list[str] = field(default_factory=list)
    recovered: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    visible: set[str] = field(default_factory=set)
    outputs: int = 0
    lost: int = 0
    dearest: int = 0

    def add(self, new: Mapping[str, Any]) -> None:
        """Add what an inspection found."""
        self.violations += new["violations"]
        self.recovered.update(new["recovered"])
        self.refusals.update(new["refusals"])
        self.outputs += len(set(new["visible"]) - self.visible)
        self.visible = set(new["visible"])
        self.lost += new["lost"]
        self.dearest = max(self.dearest, new["dearest"])


def inspect(expected: Expected) -> dict[str, Any]:
    """Inspect in a child, so that no library starts threads here."""
    reads, writes = os.pipe()
    if os.fork() == 0:
        found = Found()
        try:
            os.chdir(expected.folder)
            inspect_here(expected, found)
        except LexveilError as error:
            found.refusals[str(error).replace(str(expected.folder), "FOLDER")] += 1
        except BaseException as error:
            found.violations.append(f"{type(error).__name__}: {error}")
        finally:
            with os.fdopen(writes, "w") as out:
                out.write(json.dumps({one.name: _plain(getattr(found, one.name)) for one in fields(found)}))
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as said:
        result: dict[str, Any] = json.loads(said.read())
    os.wait()
    return result


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, set) else value


def outputs_of(folder: Path) -> dict[str, tuple[Path, Counter[str]]]:
    """All outputs that have their names: the record of each, and how many documents of each subject it has."""
    import pyarrow.parquet as pq

    found = {}
    for path in (folder / "outputs").glob("[!.]*.jsonl"):
        rows = [json.loads(line)["also"] for line in path.read_text(encoding="utf-8").splitlines()]
        found[f"outputs/{path.name}"] = (path.with_name(f"{path.name}.record.json"), Counter(rows))
    for path in (folder / "releases").glob("*/documents.parquet"):
        table = pq.read_table(path, columns=["also"])
        record = path.with_name(f"{path.name}.record.json")
        found[f"releases/{path.parent.name}"] = (record, Counter(table.column("also").to_pylist()))
    return found


def as_released(record: Path) -> Path:
    """The record whose hash the ledger has: another one once documents were withdrawn."""
    before = record.with_name("record.as_released.json")
    return before if before.exists() else record


def inspect_here(expected: Expected, found: Found) -> None:
    """Inspect the project of the current folder; what the ledger refuses is raised."""
    from lexveil.ledger.ledger import Ledger
    from lexveil.ledger.verification import verify

    before = outputs_of(expected.folder)
    with Ledger.open(".lexveil/ledger", anchor=".ledger-anchor.json") as ledger:
        if ledger.refusal is not None:
            found.refusals[ledger.refusal.replace(str(expected.folder), "FOLDER")] += 1
        found.recovered.update(f"{one.was}, {one.now}" for one in ledger.recovered)
        found.violations += [f"not put right: {one}" for one in ledger.recovered if one.notes]
        out = outputs_of(expected.folder)
        found.visible = set(out)
        if lost := [name for name in before if name not in out]:
            found.violations.append(f"gone after the ledger was opened: {lost}")
        states = dict(ledger.database.rows("select id, state from releases"))
        spends: dict[str, dict[bytes, int]] = {}
        for name, subject, nano in ledger.database.rows(
            "select releases.id, subject, nano from spends inner join releases on releases.number = spends.release"
        ):
            spends.setdefault(name, {})[subject] = nano
        found.violations += _unpaid(out, states, spends, ledger.hasher.one, found)
        balances = dict(ledger.database.rows("select subject, nano from balances"))
    found.lost = sum(one.now == "failed" for one in ledger.recovered)
    if found.lost > expected.n_killed:
        found.violations.append(f"{found.lost} releases are spent and not published, {expected.n_killed} were killed")
    if expected.cap is not None and any(nano > expected.cap for nano in balances.values()):
        found.violations.append("a subject is above the cap")
    for subject, nano in balances.items():
        if nano != sum(paid.get(subject, 0) for paid in spends.values()):
            found.violations.append("a balance is not the sum of what was spent")
    left = [*Path("outputs").glob(".*"), *Path("releases").glob("*/.partial-*")]
    found.violations += [f"left: {path}" for path in left]
    records = sorted(as_released(record) for record, _ in out.values() if record.exists())
    found.violations += [f"verify: {one.where}: {one.what}" for one in verify(".lexveil/ledger", records).problems]


def _unpaid(out: Any, states: Mapping[str, str], spends: Any, hashed: Any, found: Found) -> list[str]:
    """Each output has its record, is committed, and pays the same for each document; nothing else is."""
    problems, known = [], set()
    for name, (record, subjects) in out.items():
        if not record.exists():
            problems.append(f"{name}: has no record")
            continue
        release = json.loads(record.read_text(encoding="utf-8"))["release"]["id"]
        known.add(release)
        paid = spends.get(release, {})
        cost = sum(paid.values()) // max(1, subjects.total())
        pays = paid == {hashed(key): n * cost for key, n in subjects.items()}
        if as_released(record) != record:  # documents were withdrawn since, and stay paid
            pays = all(paid.get(hashed(key), 0) > 0 for key in subjects)
        else:
            found.dearest = max(found.dearest, cost)
        if states.get(release) != "committed" or not pays:
            problems.append(f"{name}: its release is {states.get(release)} and does not pay for it")
    # An output may hold no row at all: then it costs nothing.
    problems += [
        f"release {release}: is {states[release]}, costs something, and has no output"
        for release in spends
        if release not in known and states[release] not in ("failed", "aborted")
    ]
    return problems
