"""What processes ask the kernel to do with the files of a folder, recorded by strace.

strace sees what any library of any process of the run writes, SQLite's journal and Parquet's C++ included, and asks
nothing of the code it watches. A shim by LD_PRELOAD would need a C compiler, a file system in user space rights that
containers seldom give, and a recording VFS another SQLite than the one that Python brings. That nothing was missed (a
mapped file that was written, a call not known here) is checked: replayed in full, a recording must give what is on the
disk.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.crash_states.disk import ROOT, Born, Change, Contents, Mark, Operation, Sync, Truncate, Write, snapshot

CALLS = (
    "open openat creat dup dup2 dup3 fcntl lseek write pwrite64 writev pwritev pwritev2 truncate ftruncate fallocate "
    "rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat mkdir mkdirat rmdir fsync fdatasync sync "
    "syncfs copy_file_range sendfile splice chdir fchdir clone clone3 fork vfork"
).split()
LONGEST = 1 << 22  # bytes of one write
LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+|\?)(.*)")
UNFINISHED = re.compile(r"(\d+) +(\w+)\((.*) <unfinished \.\.\.>")
RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
PATH = re.compile(r"<((?:\\x[0-9a-f]{2})*)>")


@cache
def is_available() -> bool:
    """Whether there is an strace, and it may watch a process."""
    strace = shutil.which("strace")
    return strace is not None and subprocess.run([strace, "true"], capture_output=True, check=False).returncode == 0


def record(
    command: Sequence[str], root: Path, marks: Path, environment: Mapping[str, str] | None = None
) -> tuple[Contents, list[Operation]]:
    """Run a command and record what it and its children do below ``root``.

    Args:
        marks: a file outside of ``root``; what is written to it stands as ``Mark`` among the operations.

    Returns:
        The folder before, and the operations in the order in which they ended.

    Raises:
        RuntimeError: if the command failed, or the recording is not complete.
    """
    before, trace = snapshot(root), marks.with_name(f"{marks.name}.strace")
    calls = ",".join(f"?{call}" for call in CALLS)
    strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-s", str(LONGEST), "-o", str(trace)]
    done = subprocess.run(
        [*strace, "-e", f"trace={calls}", *command], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    reader = Reader(root, marks, before.copy())
    with trace.open(encoding="ascii") as lines:
        reader.read(lines)
    if reader.contents.tree() != snapshot(root).tree():
        raise RuntimeError("the recording is not complete: replayed, it does not give what is on the disk")
    trace.unlink()
    return before, reader.operations


def unescaped(text: str) -> bytes:
    """The bytes of a string as ``-xx`` writes them."""
    return bytes.fromhex(text.replace("\\x", ""))


@dataclass(slots=True)
class Opened:
    """What descriptors that were duplicated or inherited share: a file, and where the next write goes."""

    node: int | None
    appends: bool = False
    place: int = 0


@dataclass(slots=True)
class Process:
    """What the threads of a process share: its descriptors and its current folder."""

    opened: dict[int, Opened]
    folder: Path


@dataclass(slots=True)
class Call:
    """One call: its arguments, what strace says behind its result, and how many operations ended before it began."""

    name: str
    arguments: str
    result: int
    behind: str
    since: int

    @property
    def paths(self) -> list[str]:
        """Paths and bytes given as strings."""
        return [unescaped(text).decode() for text, _ in STRING.findall(self.arguments)]

    @property
    def data(self) -> bytes:
        """What was written."""
        found = STRING.findall(self.arguments)
        if any(more for _, more in found):
            raise RuntimeError(f"a write of more than {LONGEST:,} bytes")
        return b"".join(unescaped(text) for text, _ in found)[: self.result]

    @property
    def numbers(self) -> list[str]:
        """The arguments, split; no string of ``-xx`` holds a comma."""
        return self.arguments.split(", ")

    def descriptor(self, place: int = 0) -> int:
        """A descriptor among the arguments."""
        return int(self.numbers[place].split("<")[0])


@dataclass(slots=True)
class Reader:
    """Turns the lines of strace into operations on ``contents``, which follows them."""

    root: Path
    marks: Path
    contents: Contents
    operations: list[Operation] = field(default_factory=list)
    processes: dict[str, Process] = field(default_factory=dict)
    waiting: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    number: int = 0

    def read(self, lines: Iterable[str]) -> None:
        """Read all lines.

        Raises:
            RuntimeError: if one is not understood.
        """
        self.number = max([*self.contents.files, *self.contents.folders])
        for raw in lines:
            line = raw.rstrip()
            if found := UNFINISHED.fullmatch(line):
                self.waiting[found[1]] = (found[2], found[3], len(self.operations))
                continue
            since, whole = len(self.operations), line
            if found := RESUMED.fullmatch(line):
                name, begun, since = self.waiting.pop(found[1])
                whole = f"{found[1]} {name}({begun}{found[3]}"
            if found := LINE.fullmatch(whole):
                if found[4] != "?" and int(found[4]) >= 0:
                    self._call(found[1], Call(found[2], found[3], int(found[4]), found[5], since))
            elif " --- " not in line and " +++ " not in line:
                raise RuntimeError(f"not understood: {line[:200]}")

    def _call(self, number: str, call: Call) -> None:
        process = self._process(number)
        match call.name:
            case "open" | "openat" | "creat":
                self._open(call, process)
            case "dup" | "dup2" | "dup3":
                self._duplicate(call, process)
            case "fcntl" if "F_DUPFD" in call.arguments:
                self._duplicate(call, process)
            case "clone" | "clone3" | "fork" | "vfork":
                self._fork(str(call.result), process, "CLONE_FILES" in call.arguments)
            case "lseek":
                if call.descriptor() in process.opened:
                    process.opened[call.descriptor()].place = call.result
            case "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2":
                self._write(call, process)
            case "truncate" | "ftruncate" | "fallocate":
                self._size(call, process)
            case "copy_file_range" | "sendfile" | "splice":
                self._copy(call, process)
            case "fsync" | "fdatasync":
                self._sync(call, process)
            case "sync" | "syncfs":
                self.operations.append(Sync(None, call.since))
            case "chdir":
                process.folder = process.folder / call.paths[0]
            case "fchdir":
                process.folder = Path(unescaped(PATH.findall(call.arguments)[0]).decode())
            case "fcntl":
                pass
            case _:
                self._names(call, process)

    def _process(self, number: str) -> Process:
        if number not in self.processes:
            # A child may be heard before its parent is told its number.
            for parent, (name, arguments, _) in self.waiting.items():
                if name in ("clone", "clone3", "fork", "vfork") and parent in self.processes:
                    return self._fork(number, self.processes[parent], "CLONE_FILES" in arguments)
            self.processes[number] = Process({}, Path.cwd())
        return self.processes[number]

    def _fork(self, child: str, process: Process, shared: bool) -> Process:
        if child not in self.processes:
            self.processes[child] = process if shared else Process(dict(process.opened), process.folder)
        return self.processes[child]

    def _duplicate(self, call: Call, process: Process) -> None:
        process.opened.pop(call.result, None)
        if call.descriptor() in process.opened:
            process.opened[call.result] = process.opened[call.descriptor()]

    def _open(self, call: Call, process: Process) -> None:
        process.opened.pop(call.result, None)
        found = PATH.search(call.behind)
        path = Path(unescaped(found[1]).decode()) if found else Path()
        if path == self.marks:
            process.opened[call.result] = Opened(None)
        elif self.root in path.parents or path == self.root:
            flags = "O_WRONLY|O_CREAT|O_TRUNC" if call.name == "creat" else call.arguments
            node = self._find(path)
            if node is None:
                if "O_CREAT" not in flags:  # O_TMPFILE, or a name that is gone
                    return
                node = self._born(path, is_folder=False)
            elif "O_TRUNC" in flags and self.contents.files[node]:
                self._do(Truncate(node, 0))
            process.opened[call.result] = Opened(node, "O_APPEND" in flags)

    def _write(self, call: Call, process: Process) -> None:
        opened = process.opened.get(call.descriptor())
        if opened is None or not call.result:
            return
        if opened.node is None:
            self.operations.append(Mark(call.data.decode()))
            return
        if call.name.startswith("p"):
            place = int(call.numbers[-1 if call.name != "pwritev2" else -2])
        else:
            place = len(self.contents.files[opened.node]) if opened.appends else opened.place
            opened.place = place + call.result
        self._do(Write(opened.node, place, call.data))

    def _size(self, call: Call, process: Process) -> None:
        if call.name == "truncate":
            node = self._find(process.folder / call.paths[0])
        else:
            opened = process.opened.get(call.descriptor())
            node = opened.node if opened else None
        if node is not None:
            size = int(call.numbers[-1])
            if call.name == "fallocate":
                size = max(size + int(call.numbers[-2]), len(self.contents.files[node]))
            self._do(Truncate(node, size))

    def _copy(self, call: Call, process: Process) -> None:
        """From a file of the folder to another; where it was in the first is known if it was copied from its start."""
        target, source = call.descriptor(0), call.descriptor(1)
        if call.name != "sendfile":
            target, source = call.descriptor(2), call.descriptor(0)
        opened, origin = process.opened.get(target), process.opened.get(source)
        if opened is None or opened.node is None or not call.result:
            return
        if origin is None or origin.node is None:
            raise RuntimeError(f"{call.name} from a file that is not in the folder")
        data = self.contents.files[origin.node][opened.place : opened.place + call.result]
        self._do(Write(opened.node, opened.place, data))
        opened.place += call.result

    def _sync(self, call: Call, process: Process) -> None:
        opened = process.opened.get(call.descriptor())
        if opened is not None and opened.node is not None:
            self.operations.append(Sync(opened.node, call.since))

    def _names(self, call: Call, process: Process) -> None:
        paths = [self._absolute(call, process, place, path) for place, path in enumerate(call.paths)]
        if not any(self.root in path.parents for path in paths):
            return
        match call.name:
            case "mkdir" | "mkdirat":
                self._born(paths[0], is_folder=True)
            case "symlink" | "symlinkat":
                self._born(paths[1], is_folder=False, leads_to=call.paths[0])
            case "unlink" | "unlinkat" | "rmdir":
                self._do(Change((self._entry(paths[0], None),)))
            case "link" | "linkat":
                self._do(Change((self._entry(paths[1], self._find(paths[0])),)))
            case "rename" | "renameat" | "renameat2" if "RENAME_EXCHANGE" not in call.arguments:
                self._do(Change((self._entry(paths[1], self._find(paths[0])), self._entry(paths[0], None))))
            case _:
                raise RuntimeError(f"{call.name}: not known here")

    def _absolute(self, call: Call, process: Process, place: int, path: str) -> Path:
        folders = [unescaped(found).decode() for found in PATH.findall(call.arguments)]
        folder = folders[min(place, len(folders) - 1)] if folders else process.folder
        return Path(folder, path)

    def _find(self, path: Path) -> int | None:
        node = ROOT
        for name in path.relative_to(self.root).parts:
            child = self.contents.folders.get(node, {}).get(name)
            if child is None:
                return None
            node = child
        return node

    def _entry(self, path: Path, node: int | None) -> tuple[int, str, int | None]:
        folder = self._find(path.parent)
        assert folder is not None, path
        return folder, path.name, node

    def _born(self, path: Path, is_folder: bool, leads_to: str | None = None) -> int:
        self.number += 1
        self._do(Born(self.number, is_folder, leads_to))
        self._do(Change((self._entry(path, self.number),)))
        return self.number

    def _do(self, operation: Operation) -> None:
        self.contents.do(operation)
        self.operations.append(operation)
