"""Files and folders as a file system has them: what was asked of it, and what may be there after a power cut.

Two models. ``Posix`` promises what fsync is documented to promise and nothing else: data that was not synced is there
or not, sector by sector, in any order; so is every name of a folder that was not synced; a file's sync says nothing of
its name; a rename within a folder is whole or did not happen, one between folders may be half done. ``Ext4`` (with
``data=ordered``) is what most machines have: names change in the order in which they were changed, every sync makes
all names before it durable, and a file never shows blocks that were not written.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

SECTOR, PAGE = 512, 4096
ROOT = 0  # the number of the recorded folder

Tree = dict[str, bytes | str | None]  # by relative path; None is a folder, a text where a link leads


@dataclass(frozen=True, slots=True)
class Born:
    """A file, folder or link that is new; without a name so far."""

    node: int
    is_folder: bool
    leads_to: str | None = None


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
    """Names that come, go (None) or get another file, as one operation: (folder, name, node) each."""

    entries: tuple[tuple[int, str, int | None], ...]


@dataclass(frozen=True, slots=True)
class Sync:
    """A file or folder was synced (None: everything), with all that was asked for before operation ``since``."""

    node: int | None
    since: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that the recorded process says, of what has left the machine for instance."""

    text: str


Operation = Born | Write | Truncate | Change | Sync | Mark


@dataclass(slots=True)
class Contents:
    """Files by number, folders as names to numbers, and links, which stay as they are."""

    files: dict[int, bytes] = field(default_factory=dict)
    folders: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})
    links: dict[int, str] = field(default_factory=dict)

    def tree(self) -> Tree:
        """What a process would find."""
        found: Tree = {}
        todo = [("", ROOT)]
        while todo:
            path, node = todo.pop()
            for name, child in self.folders[node].items():
                if child in self.folders:
                    found[path + name] = None
                    todo.append((f"{path}{name}/", child))
                else:
                    found[path + name] = self.links[child] if child in self.links else self.files[child]
        return found

    def do(self, operation: Operation) -> None:
        """Carry out one operation."""
        match operation:
            case Born(node, _, str(leads_to)):
                self.links[node] = leads_to
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
        """A copy whose folders can be changed."""
        return Contents(dict(self.files), {node: dict(names) for node, names in self.folders.items()}, self.links)


def snapshot(root: Path) -> Contents:
    """What is on the disk below a folder, numbered in the order of the paths; what links lead to is not looked at."""
    contents, numbers = Contents(), {root: ROOT}
    for number, path in enumerate(sorted(root.rglob("*")), 1):
        numbers[path] = number
        contents.folders[numbers[path.parent]][path.name] = number
        if path.is_symlink():
            contents.links[number] = str(path.readlink())
        elif path.is_dir():
            contents.folders[number] = {}
        else:
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


def mixed(versions: Sequence[bytes], unit: int, size: int, rng: random.Random) -> bytes:
    """A file of ``size`` bytes, each unit of which is of any of its versions; zeros where that one ends before."""
    new = bytearray(size)
    for start in range(0, size, unit):
        part = rng.choice(versions)[start : min(start + unit, size)]
        new[start : start + len(part)] = part
    return bytes(new)


class Posix:
    """A file system that promises no more than fsync does; ``durable`` is on the disk, the rest may be."""

    name = "POSIX"

    def __init__(self, before: Contents) -> None:
        self.durable = before.copy()
        self.changes: list[tuple[int, Change]] = []
        self.data: dict[int, list[tuple[int, Write | Truncate]]] = {}

    def do(self, number: int, operation: Operation) -> None:
        """Take operation ``number``, counted from 0."""
        match operation:
            case Born():
                self.durable.do(operation)
            case Write() | Truncate():
                self.data.setdefault(operation.node, []).append((number, operation))
            case Change():
                self.changes += [(number, part) for part in self._parts(operation)]
            case Sync(node, since):
                self._sync(node, since)

    def states(self, rng: random.Random, most: int) -> Iterator[Tree]:
        """Yield what may be found after a cut now: all of it where that is at most ``most``, else a choice."""
        files = [node for node in self.data if self._has_name(node)]
        n, few = len(self.changes), 3 ** len(files)
        if few << n <= most:
            masks = product((False, True), repeat=n)
            yield from (self._state(rng, m, v) for m, v in product(masks, product(range(3), repeat=len(files))))
            return
        singles = [[(place == one) != rest for place in range(n)] for one in range(n) for rest in (False, True)]
        plain = [[False] * n, [True] * n, *singles]
        choices = [(mask, [how] * len(files)) for mask in plain[:2] for how in range(3)]
        choices += [(mask, [rng.randrange(3) for _ in files]) for mask in rng.sample(singles, min(n, most // 4))]
        for _ in range(max(0, most - len(choices))):
            keep = rng.choice((0.1, 0.5, 0.9))
            choices.append(([rng.random() < keep for _ in range(n)], [rng.randrange(3) for _ in files]))
        yield from (self._state(rng, mask, how) for mask, how in choices[:most])

    def _parts(self, change: Change) -> list[Change]:
        """What of it happens by itself: the names of each folder."""
        folders = dict.fromkeys(folder for folder, _, _ in change.entries)
        return [Change(tuple(entry for entry in change.entries if entry[0] == folder)) for folder in folders]

    def _sync(self, node: int | None, since: int) -> None:
        def covers(number: int, nodes: set[int]) -> bool:
            return number < since and (node is None or node in nodes)

        for number, change in self.changes:
            if covers(number, {folder for folder, _, _ in change.entries}):
                self.durable.do(change)
        self.changes = [c for c in self.changes if not covers(c[0], {folder for folder, _, _ in c[1].entries})]
        for file in [node] if node is not None else list(self.data):
            pending = self.data.pop(file, [])
            done = [operation for number, operation in pending if number < since]
            if done:
                self.durable.files[file] = written(self.durable.files[file], done)
            if left := [one for one in pending if one[0] >= since]:
                self.data[file] = left

    def _has_name(self, node: int) -> bool:
        named = (node in names.values() for names in self.durable.folders.values())
        return any(named) or any(node == child for _, change in self.changes for _, _, child in change.entries)

    def _state(self, rng: random.Random, mask: Sequence[bool], how: Sequence[int]) -> Tree:
        state = self.durable.copy()
        for (_, change), there in zip(self.changes, mask, strict=True):
            if there:
                state.do(change)
        for node, way in zip([node for node in self.data if self._has_name(node)], how, strict=True):
            pending = [operation for _, operation in self.data[node]]
            if way == 1:
                state.files[node] = written(state.files[node], pending)
            elif way == 2:
                state.files[node] = self._torn(state.files[node], pending, rng)
        return state.tree()

    def _torn(self, durable: bytes, pending: Sequence[Write | Truncate], rng: random.Random) -> bytes:
        """Some of what was asked of a file, in any order and cut anywhere."""
        way = rng.randrange(4)
        if way == 0:
            return written(durable, pending[: rng.randrange(len(pending))])
        if way == 1:
            left_out = rng.randrange(len(pending))
            return written(durable, [one for place, one in enumerate(pending) if place != left_out])
        versions = [written(durable, pending[:n]) for n in range(len(pending) + 1)]
        size = len(rng.choice(versions))
        return mixed(versions[:1] if way == 3 else versions, rng.choice((SECTOR, PAGE)), size, rng)


class Ext4(Posix):
    """A file system with a journal of its names, ``data=ordered``."""

    name = "ext4"

    def _parts(self, change: Change) -> list[Change]:
        return [change]

    def _sync(self, node: int | None, since: int) -> None:
        # What is synced commits the journal, in which all names are.
        for number, change in self.changes:
            if number < since:
                self.durable.do(change)
        self.changes = [one for one in self.changes if one[0] >= since]
        super()._sync(node, since)

    def states(self, rng: random.Random, most: int) -> Iterator[Tree]:
        """Yield what may be found after a cut now: names up to any change, data as it may be."""
        files, n = [node for node in self.data if self._has_name(node)], len(self.changes)
        masks = [[place < end for place in range(n)] for end in range(n + 1)]
        choices = [(mask, [how] * len(files)) for mask in masks for how in range(3 if files else 1)]
        if len(choices) > most:
            choices = rng.sample(choices, most)
        yield from (self._state(rng, mask, how) for mask, how in choices)

    def _torn(self, durable: bytes, pending: Sequence[Write | Truncate], rng: random.Random) -> bytes:
        versions = [written(durable, pending[:n]) for n in range(len(pending) + 1)]
        new, old = versions[-1], len(durable)
        # Blocks that were there are overwritten in any order; those that are new come one after the other.
        end = min(len(new), old + PAGE * rng.randint(0, 1 + max(0, len(new) - old) // PAGE))
        return mixed(versions, PAGE, min(old, end), rng) + new[min(old, end) : end]
