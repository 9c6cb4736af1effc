"""Recording of a process's system calls on the files of a folder, by strace.

strace sees the writes of every library, including SQLite's journal, and needs no change of the code
that it watches. A check ensures that nothing was missed (a written mapped file, an unknown call): a
recording that is replayed completely must give the contents of the disk.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from tests.crash_states.disk import (
    ROOT,
    Born,
    Change,
    Contents,
    Mark,
    Operation,
    Sync,
    Truncate,
    Write,
    snapshot,
)

CALLS = (
    "open openat creat lseek write pwrite64 truncate ftruncate rename renameat renameat2 "
    "link linkat "
    "symlink symlinkat unlink unlinkat mkdir mkdirat rmdir fsync fdatasync"
).split()
LONGEST = 1 << 22  # bytes of one write
LINE = re.compile(r"(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)(.*)")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
PATH = re.compile(r"<((?:\\x[0-9a-f]{2})*)>")


@cache
def is_available() -> bool:
    """Return whether strace is installed and may watch a process."""
    strace = shutil.which("strace")
    return (
        strace is not None
        and subprocess.run([strace, "true"], capture_output=True, check=False).returncode == 0
    )


def record(command: Sequence[str], root: Path, marks: Path) -> tuple[Contents, list[Operation]]:
    """Run a command, of one process, and record what it does below ``root``.

    Args:
        marks: a file outside of ``root``; what is written to it stands as ``Mark`` among the
            operations.

    Returns:
        The folder before, and the operations.

    Raises:
        RuntimeError: if the command failed, or the recording is not complete.
    """
    before = snapshot(root)
    trace = marks.with_name(f"{marks.name}.strace")
    strace = ["strace", "-f", "-qq", "-y", "-xx", "-s", str(LONGEST), "-o", str(trace)]
    calls = "trace=" + ",".join(f"?{call}" for call in CALLS)
    done = subprocess.run(
        [*strace, "-e", calls, *command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    reader = Reader(root, marks, before.copy())
    with trace.open(encoding="ascii") as lines:
        reader.read(lines)
    if reader.contents.tree() != snapshot(root).tree():
        raise RuntimeError(
            "the recording is not complete: replayed, it does not give what is on the disk"
        )
    return before, reader.operations


def unescaped(text: str) -> bytes:
    """The bytes of a string as ``-xx`` writes them."""
    return bytes.fromhex(text.replace("\\x", ""))


class Reader:
    """Turns the lines of strace into operations on ``contents``, which follows them."""

    def __init__(self, root: Path, marks: Path, contents: Contents) -> None:
        self.root = root
        self.marks = marks
        self.contents = contents
        self.operations: list[Operation] = []
        # the file of a descriptor, and whether it is added to
        self.opened: dict[int, tuple[int | None, bool]] = {}
        self.places: dict[int, int] = {}  # where the next write goes
        self.number = max([*contents.files, *contents.folders])

    def read(self, lines: Iterable[str]) -> None:
        """Read all lines; of calls that failed nothing follows."""
        for line in lines:
            call = LINE.fullmatch(line.rstrip())
            if call and int(call[3]) >= 0:
                self._call(call[1], call[2], int(call[3]), call[4])

    def _call(self, name: str, arguments: str, result: int, behind: str) -> None:
        first, *others = arguments.split(", ")  # no string of -xx holds a comma
        descriptor = int(first.partition("<")[0]) if first[:1].isdigit() else -1
        node, appends = self.opened.get(descriptor, (None, False))
        match name:
            case "open" | "openat" | "creat":
                self._open(
                    Path(unescaped(PATH.findall(behind)[0]).decode()), name + arguments, result
                )
            case "lseek":
                self.places[descriptor] = result
            case "write" | "pwrite64" if descriptor in self.opened:
                data = unescaped(STRING.findall(arguments)[0])[:result]
                if node is None:
                    self.operations.append(Mark(data.decode()))
                    return
                start = (
                    len(self.contents.files[node]) if appends else self.places.get(descriptor, 0)
                )
                if name == "pwrite64":
                    start = int(others[-1])
                else:
                    self.places[descriptor] = start + result
                self._do(Write(node, start, data))
            case "ftruncate" if node is not None:
                self._do(Truncate(node, int(others[-1])))
            case "fsync" | "fdatasync" if node is not None:
                self.operations.append(Sync(node))
            case "write" | "pwrite64" | "ftruncate" | "fsync" | "fdatasync":
                pass
            case _:
                self._names(name, arguments)

    def _open(self, path: Path, flags: str, descriptor: int) -> None:
        self.opened.pop(descriptor, None)
        self.places.pop(descriptor, None)
        if path == self.marks:
            self.opened[descriptor] = (None, True)
        elif self.root in (path, *path.parents):
            node = self._find(path)
            if node is None:
                if "O_CREAT" not in flags:  # a name that is gone
                    return
                node = self._born(path, is_folder=False)
            elif "O_TRUNC" in flags and self.contents.files[node]:
                self._do(Truncate(node, 0))
            self.opened[descriptor] = (node, "O_APPEND" in flags)

    def _names(self, name: str, arguments: str) -> None:
        given = [unescaped(text).decode() for text in STRING.findall(arguments)]
        folders = [unescaped(text).decode() for text in PATH.findall(arguments)] or ["/"]
        paths = [
            Path(folders[min(place, len(folders) - 1)], path) for place, path in enumerate(given)
        ]
        if not any(self.root in path.parents for path in paths):
            return
        match name:
            case "mkdir" | "mkdirat":
                self._born(paths[0], is_folder=True)
            case "unlink" | "unlinkat" | "rmdir":
                self._do(Change((self._entry(paths[0], None),)))
            case "link" | "linkat":
                self._do(Change((self._entry(paths[1], self._find(paths[0])),)))
            case "rename" | "renameat" | "renameat2":
                self._do(
                    Change(
                        (self._entry(paths[1], self._find(paths[0])), self._entry(paths[0], None))
                    )
                )
            case _:
                raise RuntimeError(f"{name}: not known here")

    def _find(self, path: Path) -> int | None:
        node: int | None = ROOT
        for name in path.relative_to(self.root).parts:
            node = self.contents.folders.get(node, {}).get(name) if node is not None else None
        return node

    def _entry(self, path: Path, node: int | None) -> tuple[int, str, int | None]:
        folder = self._find(path.parent)
        assert folder is not None, path
        return folder, path.name, node

    def _born(self, path: Path, is_folder: bool) -> int:
        self.number += 1
        self._do(Born(self.number, is_folder))
        self._do(Change((self._entry(path, self.number),)))
        return self.number

    def _do(self, operation: Operation) -> None:
        self.contents.do(operation)
        self.operations.append(operation)
