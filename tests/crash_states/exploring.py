"""Goes through the states that a recording allows, and checks each."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash_states.disk import ROOT, Contents, Ext4, Mark, Operation, Posix, Sync, Tree
from tests.crash_states.invariants import Finding, check
from tests.crash_states.recording import record
from tests.crash_states.scenarios import folder_of

MODELS = (Ext4, Posix)


@dataclass(slots=True)
class Explored:
    """What was found in the states of one scenario.

    Attributes:
        states: distinct ones, by model; one that both allow counts for the first.
        refusals: what the ledger said, how often.
        violations: what does not hold, by model, how often.
    """

    operations: int = 0
    syncs: int = 0
    states: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    violations: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Recording:
    """One scenario: where it was, what was there before, what it had said, and its operations by number."""

    name: str
    folder: Path
    before: Contents
    said: Sequence[dict[str, Any]]
    operations: Sequence[tuple[int, Operation]]


def record_all(names: Sequence[str], work: Path, built: Path | None = None) -> list[Recording]:
    """Record scenarios, in one process: of ``whole`` if there is a built project, else of ``scenarios``."""
    module = "tests.crash_states." + ("whole" if built else "scenarios")
    given = [str(built)] if built else []
    root, marks = work / "root", work / "marks"
    root.mkdir()
    command = [sys.executable, "-m", module, str(root), str(marks), *given, *names]
    before, operations = record(command, root, marks, {**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    shutil.rmtree(root)
    return list(_each(names, root, before, operations))


def _each(names: Sequence[str], root: Path, contents: Contents, operations: Sequence[Operation]) -> Iterator[Recording]:
    """Cut a recording into its scenarios; what was there before one began is on the disk."""
    numbered = iter(enumerate(operations))
    for name in names:
        said = []
        for _, operation in numbered:
            contents.do(operation)
            if isinstance(operation, Mark):
                if (what := json.loads(operation.text)) == {"begin": name}:
                    break
                said.append(what)
        before, recorded = contents.copy(), list[tuple[int, Operation]]()
        own = folder_of(name)
        before.folders[ROOT] = {own: before.folders[ROOT][own]}
        for number, operation in numbered:
            if isinstance(operation, Mark) and json.loads(operation.text) == {"end": name}:
                break
            contents.do(operation)
            recorded.append((number, operation))
        yield Recording(name, root / own, before, said, recorded)


def states(recording: Recording, most: int, seed: int) -> Iterator[tuple[str, Tree, list[dict[str, Any]]]]:
    """Yield distinct states after a power cut: the model that allows it, what is there, what had been said by then.

    Args:
        most: states of one model after one operation.
    """
    rng, said, seen = random.Random(seed), [*recording.said], set[int]()
    machines = [model(recording.before) for model in MODELS]
    for number, operation in (None, None), *recording.operations:
        if isinstance(operation, Mark):
            said.append(json.loads(operation.text))
        for machine in machines:
            if number is not None and operation is not None:
                machine.do(number, operation)
            for tree in machine.states(rng, most):
                key = hash((len(said), frozenset(tree.items())))
                if key not in seen:
                    seen.add(key)
                    yield machine.name, tree, [*said]


def explore(
    recording: Recording,
    most: int,
    seed: int = 0,
    at_most: int | None = None,
    until_violated: bool = False,
    checked: Callable[[Path, Sequence[Mapping[str, Any]]], Finding] = check,
) -> Explored:
    """Check the states of a recording, each in the folder where it was recorded: the ledger knows its outputs by path.

    Args:
        at_most: states that are checked, chosen at random; None for all.
        until_violated: stop at the first state in which something does not hold or is refused; in random order.
    """
    found = Explored(len(recording.operations), sum(isinstance(one, Sync) for _, one in recording.operations))
    every = states(recording, most, seed)
    if at_most is not None or until_violated:
        chosen = [*every]
        random.Random(seed).shuffle(chosen)
        every = iter(chosen[:at_most])
    for model, tree, said in every:
        _lay(recording.folder.parent, tree)
        finding = checked(recording.folder, said)
        found.states[model] += 1
        found.violations.update((model, violation) for violation in set(finding.violations))
        if finding.refusal is not None:
            found.refusals[finding.refusal.replace(str(recording.folder), "FOLDER")] += 1
        if until_violated and (finding.violations or finding.refusal):
            break
    shutil.rmtree(recording.folder.parent, ignore_errors=True)
    return found


def _lay(root: Path, tree: Tree) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path in sorted(tree):
        content = tree[path]
        if content is None:
            (root / path).mkdir(mode=0o700)
        elif isinstance(content, str):
            (root / path).symlink_to(content)
        else:
            (root / path).write_bytes(content)


def work_folder() -> tempfile.TemporaryDirectory[str]:
    """Where to work: in memory where there is such a folder, because a disk's syncs take most of the time."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None)
