"""Files and folders as a file system has them: what was asked of it, and what may be there after a
power cut.

It promises what fsync is documented to promise and nothing else: data that was not synced is there
or not, sector by sector, in any order; so is every name of a folder that was not synced; a file's
sync says nothing of its name; a rename within a folder is whole or did not happen, one between
folders may be half done. Among the states that are looked at are those of most machines, where
names change in the order in which they were changed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
PAGE = 4096
ROOT = 0  # the number of the recorded folder

Tree = dict[str, bytes | None]  # by relative path; None is a folder


@dataclass(frozen=True, slots=True)
class Born:
    """A file or folder that is new; without a name so far."""

    node: int
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes written to a file."""

    node: int
    start: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    """A file cut to a size, or extended to it by zeros."""

    node: int
    size: int


@dataclass(frozen=True, slots=True)
class Change:
    """Names that come, go (None) or get another file, as one operation: (folder, name, node)
    each."""

    entries: tuple[tuple[int, str, int | None], ...]


@dataclass(frozen=True, slots=True)
class Sync:
    """A file or folder was synced."""

    node: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that the recorded process says, of what has left the machine for instance."""

    text: str


Operation = Born | Write | Truncate | Change | Sync | Mark


@dataclass(slots=True)
class Contents:
    """Files by number, and folders as names to numbers."""

    files: dict[int, bytes] = field(default_factory=dict)
    folders: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})

    def tree(self) -> Tree:
        """Return the files that a process would find, by path."""
        tree: Tree = {}
        todo = [("", ROOT)]
        while todo:
            path, node = todo.pop()
            for name, child in self.folders[node].items():
                tree[path + name] = self.files.get(child)
                if child in self.folders:
                    todo.append((f"{path}{name}/", child))
        return tree

    def do(self, operation: Operation) -> None:
        """Carry out one operation."""
        match operation:
            case Born(node, True):
                self.folders[node] = {}
            case Born(node, False):
                self.files[node] = b""
            case Write() | Truncate():
                self.files[operation.node] = written(self.files[operation.node], [operation])
            case Change(entries):
                for folder, name, target in entries:
                    if target is None:
                        self.folders[folder].pop(name, None)
                    else:
                        self.folders[folder][name] = target

    def copy(self) -> Contents:
        """A copy that can be changed."""
        return Contents(
            dict(self.files), {node: dict(names) for node, names in self.folders.items()}
        )


def snapshot(root: Path) -> Contents:
    """Return the contents of a folder on the disk, numbered in the order of paths."""
    contents = Contents()
    numbers = {root: ROOT}
    for number, path in enumerate(sorted(root.rglob("*")), 1):
        numbers[path] = number
        contents.folders[numbers[path.parent]][path.name] = number
        contents.do(Born(number, path.is_dir()))
        if path.is_file():
            contents.files[number] = path.read_bytes()
    return contents


def written(content: bytes, operations: Sequence[Write | Truncate]) -> bytes:
    """A file's content after some operations."""
    new = bytearray(content)
    for operation in operations:
        if isinstance(operation, Truncate):
            del new[operation.size :]
            new.extend(bytes(operation.size - len(new)))
        else:
            new.extend(bytes(max(0, operation.start - len(new))))
            new[operation.start : operation.start + len(operation.data)] = operation.data
    return bytes(new)


class Disk:
    """``durable`` is on the disk; the changes of names and the operations on files since may be."""

    def __init__(self, before: Contents) -> None:
        self.durable = before.copy()
        self.changes: list[Change] = []
        self.data: dict[int, list[Write | Truncate]] = {}

    def do(self, operation: Operation) -> None:
        """Take the next operation."""
        match operation:
            case Born():
                self.durable.do(operation)
            case Write() | Truncate():
                self.data.setdefault(operation.node, []).append(operation)
            case Change(entries):  # the names of each folder by themselves
                for folder in dict.fromkeys(folder for folder, _, _ in entries):
                    self.changes.append(
                        Change(tuple(entry for entry in entries if entry[0] == folder))
                    )
            case Sync(node):
                for change in self.changes:
                    if change.entries[0][0] == node:
                        self.durable.do(change)
                self.changes = [change for change in self.changes if change.entries[0][0] != node]
                for pending in self.data.pop(node, []):
                    self.durable.do(pending)

    def states(self, rng: random.Random, most: int) -> Iterator[Tree]:
        """Yield what may be found after a cut now: what is most telling first, then a choice by
        chance."""
        n = len(self.changes)
        files = list(self.data)
        in_order = [[place < end for place in range(n)] for end in {0, n, *range(n)}]
        singles = [
            [(place == one) != rest for place in range(n)]
            for one in range(n)
            for rest in (False, True)
        ]
        choices = [(mask, [how] * len(files)) for mask in in_order for how in range(3)]
        choices += [(mask, [rng.randrange(3) for _ in files]) for mask in singles]
        chosen = choices if len(choices) <= most // 2 else rng.sample(choices, most // 2)
        while len(chosen) < (most if n or files else 1):
            keep = rng.choice((0.1, 0.5, 0.9))
            chosen.append(
                ([rng.random() < keep for _ in range(n)], [rng.randrange(3) for _ in files])
            )
        yield from (
            self._state(rng, mask, dict(zip(files, how, strict=True))) for mask, how in chosen
        )

    def _state(self, rng: random.Random, mask: Sequence[bool], how: dict[int, int]) -> Tree:
        state = self.durable.copy()
        for change, is_done in zip(self.changes, mask, strict=True):
            if is_done:
                state.do(change)
        for node, way in how.items():  # 0: nothing of it
            if way == 1:
                state.files[node] = written(state.files[node], self.data[node])
            elif way == 2:
                state.files[node] = torn(state.files[node], self.data[node], rng)
        return state.tree()


def torn(durable: bytes, pending: Sequence[Write | Truncate], rng: random.Random) -> bytes:
    """Some of what was asked of a file: what came first, all but one, or each sector as any version
    has it."""
    way = rng.randrange(3)
    if way == 0:
        return written(durable, pending[: rng.randrange(len(pending))])
    if way == 1:
        left_out = rng.randrange(len(pending))
        return written(durable, [one for place, one in enumerate(pending) if place != left_out])
    versions = [written(durable, pending[:n]) for n in range(len(pending) + 1)]
    versions = versions[:1] + versions[-1:] if rng.random() < 0.5 else versions
    new = bytearray(len(rng.choice(versions)))
    unit = rng.choice((SECTOR, PAGE))
    for start in range(0, len(new), unit):
        part = rng.choice(versions)[start : min(start + unit, len(new))]
        new[start : start + len(part)] = part
    return bytes(new)
