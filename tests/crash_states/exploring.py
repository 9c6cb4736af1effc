"""Goes through the states that a recording allows, and checks what must hold after any power cut.

Nothing is out that is not paid for, nobody is above the cap, and there is a way on.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexveil.release.ledger.amounts import NANO
from lexveil.release.ledger.ledger import Ledger
from lexveil.release.ledger.verification import verify
from tests.crash_states.disk import ROOT, Contents, Disk, Mark, Operation, Tree
from tests.crash_states.recording import record
from tests.crash_states.scenarios import (
    CAP,
    LEDGER,
    OUTPUTS,
    folder_of,
    open_ledger,
    release,
    sha256,
)


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded scenario: its folder, the files before it, its messages, and its operations."""

    folder: Path
    before: Contents
    said: Sequence[dict[str, Any]]
    operations: Sequence[Operation]


def record_all(names: Sequence[str], work: Path) -> dict[str, Recording]:
    """Record scenarios in one process, after another has done what is before them."""
    root = work / "root"
    marks = work / "marks"
    root.mkdir()
    command = [sys.executable, "-m", "tests.crash_states.scenarios", str(root), str(marks)]
    subprocess.run([*command, "before", *names], check=True)
    earlier = [json.loads(line) for line in marks.read_text(encoding="utf-8").splitlines()]
    contents, operations = record([*command, "during", *names], root, marks)
    shutil.rmtree(root)
    recordings = {}
    remaining = iter(operations)
    for name in names:
        own = folder_of(name)
        before = contents.copy()
        recorded = list[Operation]()
        before.folders[ROOT] = {own: before.folders[ROOT][own]}
        for operation in remaining:
            if isinstance(operation, Mark) and json.loads(operation.text) == {"end": name}:
                break
            contents.do(operation)
            recorded.append(operation)
        said = [one for one in earlier if one["of"] == name]
        recordings[name] = Recording(root / own, before, said, recorded)
    return recordings


def states(
    recording: Recording, most: int, seed: int
) -> Iterator[tuple[Tree, list[dict[str, Any]]]]:
    """Yield distinct states after a power cut: what is there, and what had been said by then."""
    disk = Disk(recording.before)
    said = [*recording.said]
    seen = set[int]()
    for number, operation in enumerate(recording.operations):
        if isinstance(operation, Mark):
            said.append(json.loads(operation.text))
            continue
        disk.do(operation)
        for tree in disk.states(random.Random(f"{seed} {number}"), most):
            key = hash((frozenset(tree.items()), len(said)))
            if key not in seen:
                seen.add(key)
                yield tree, [*said]


def explore(
    recording: Recording, most: int, at_most: int | None = None, until: bool = False
) -> tuple[int, Counter[str]]:
    """Check the states of a recording, each in the folder where it was recorded: the ledger knows
    its outputs by path.

    Args:
        most: states after each operation.
        at_most: states that are checked, chosen at random; None for all.
        until: stop at the first state in which something does not hold or is refused.

    Returns:
        How many states were checked, and what did not hold or was refused, how often.
    """
    chosen = [*states(recording, most, seed=0)]
    random.Random(0).shuffle(chosen)
    problems: Counter[str] = Counter()
    n_checked = 0
    for n_checked, (tree, said) in enumerate(chosen[:at_most], 1):  # noqa: B007
        lay(recording.folder.parent, tree)
        problems.update(set(check(recording.folder, said)))
        if until and problems:
            break
    shutil.rmtree(recording.folder.parent, ignore_errors=True)
    return n_checked, problems


def lay(root: Path, tree: Tree) -> None:
    """Make a folder hold this and nothing else."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path, content in sorted(tree.items()):
        if content is None:
            (root / path).mkdir(mode=0o700)
        else:
            (root / path).write_bytes(content)


def work_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder, in memory if there is such a folder, because syncs of a disk take
    most of the time.
    """
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None)


def check(folder: Path, said: Sequence[Mapping[str, Any]]) -> list[str]:
    """Open the ledger of a folder as the next release does, look at what is out, and make a
    release.

    Args:
        said: what the recorded process had said before the power cut.

    Returns:
        What does not hold, and what the ledger refused to do, in its words.
    """
    found: list[str] = []
    wrote = {one["wrote"]: one["sha256"] for one in said if "wrote" in one}
    left = {
        one.get("left", one.get("published")): Counter(one["subjects"])
        for one in said
        if "subjects" in one
    }
    try:
        out = _visible(folder, wrote, found)
        with open_ledger(folder) as ledger:
            _paid(ledger, left | out | _visible(folder, wrote, found), found)
        for name in (one["published"] for one in said if "published" in one):
            if not (folder / OUTPUTS / f"{name}.txt").exists():
                found.append("an output is gone that had been published")
        found += [f"left: {path.name}" for path in (folder / OUTPUTS).glob(".*")]
        _verified(folder, found)
        release(folder, lambda _: None, "next", ["ana", "ben", "cyn"] * CAP)
        with open_ledger(folder) as ledger:
            _paid(ledger, left | _visible(folder, wrote, found), found, is_full=True)
        _verified(folder, found)
    except Exception as error:  # a refusal, or a fault
        found.append(f"{type(error).__name__}: {error}".replace(str(folder), "FOLDER"))
    return found


def _visible(folder: Path, wrote: Mapping[str, str], found: list[str]) -> dict[str, Counter[str]]:
    """The subjects of each output that has its name. One that is not whole, or has no record, is a
    fault."""
    out = {}
    for path in (folder / OUTPUTS).glob("[!.]*.txt"):
        out[path.stem] = Counter(path.read_text().split())
        if sha256(path) != wrote.get(path.stem, sha256(path)):
            found.append("an output is not whole")
        if not path.with_name(f"{path.name}.record.json").exists():
            found.append("an output has no record")
    return out


def _paid(
    ledger: Ledger, out: Mapping[str, Counter[str]], found: list[str], is_full: bool = False
) -> None:
    spent: Counter[str] = Counter()
    for subjects in out.values():
        spent.update(subjects)
    for subject in ("ana", "ben", "cyn"):
        rows = ledger.database.rows(
            "select nano from balances where subject = ?", (ledger.hasher.one(subject),)
        )
        balance = rows[0][0] / NANO if rows else 0
        if spent[subject] > balance:
            found.append(f"{spent[subject] - balance:g} of {subject} is out and not paid for")
        if spent[subject] > CAP or balance > CAP:
            found.append(f"{subject} is above the cap")
        if is_full and balance != CAP:
            found.append(f"{subject} could not spend what was left")


def _verified(folder: Path, found: list[str]) -> None:
    records = list((folder / OUTPUTS).glob("[!.]*.record.json"))
    found += [f"verify: {problem.what}" for problem in verify(folder / LEDGER, records).problems]
