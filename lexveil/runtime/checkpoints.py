"""Work under way: parts that are finished outlive an interruption, and the disk is looked at before it fills.

DVC deletes the outputs of a stage before it runs it, so what an interrupted stage has finished must lie elsewhere: in
``machine.temp_directory``, in a folder named by a hash of all it depends on. Another corpus, another parameter or
other code therefore finds nothing there, and starts afresh.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lexveil.config import MachineParams
from lexveil.errors import RequestError
from lexveil.runtime.hashes import sha256

SHOWN = 30.0  # seconds in which shared storage shows a file everywhere

CODE = Path(__file__).resolve().parents[2]


@contextmanager
def kept_work(
    machine: MachineParams, stage: str, code: Iterable[str], inputs: Iterable[Path], *settings: object
) -> Iterator[Path]:
    """Give a folder for finished parts; it is removed when the block succeeds and kept when it does not.

    Folders of the same stage made from anything else are removed first.

    Args:
        machine: where temporary work lies.
        stage: name of the stage.
        code: modules and rooms that decide the content of the parts, as paths from the root of the code.
        inputs: files the parts are made from, hashed by content.
        settings: whatever else decides their content.
    """
    key = hashlib.sha256()
    for source in sorted(file for name in code for file in _sources(CODE / name)):
        key.update(source.read_bytes())
    for file in inputs:
        key.update(sha256(file).encode())
    key.update(repr(settings).encode())
    parent = Path(machine.temp_directory) / stage
    folder = parent / key.hexdigest()[:16]
    if parent.exists():
        for other in parent.iterdir():
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    shutil.rmtree(parent, ignore_errors=True)


@contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    """Give a folder beside the finished parts that no other process writes to; it is removed after the block.

    A part is made in it and then renamed. Several workers may try the same part, and one of them after it was given up.
    """
    with tempfile.TemporaryDirectory(prefix=".own-", dir=parent) as folder:
        yield Path(folder)


def expect_file(file: Path, who: str) -> None:
    """Wait until ``who`` sees a file that exists, for storage that is shared may be late in showing it.

    Raises:
        RequestError: if it does not show within ``SHOWN`` seconds.
    """
    deadline = time.monotonic() + SHOWN
    while not file.exists():
        if time.monotonic() > deadline:
            raise RequestError(
                f"{file} cannot be seen by {who} on {platform.node()}; the project's folder and machine.temp_directory "
                "(params.yaml) must lie on storage that all workers share, under the same path"
            )
        with suppress(OSError):
            list(file.parent.iterdir())  # which makes some file systems look again
        time.sleep(0.1)


def _sources(path: Path) -> list[Path]:
    return list(path.glob("*.py")) if path.is_dir() else [path]


def check_disk(folder: Path, expected: float, most: float, what: str) -> None:
    """Say how much disk some work takes, and refuse it where it cannot fit.

    Args:
        folder: where the work lies; it exists.
        expected: bytes it will probably take.
        most: bytes it seldom exceeds; less than that free is worth a caution.
        what: the work, for the message.

    Raises:
        RequestError: if less than ``expected`` is free.
    """
    free = shutil.disk_usage(folder).free
    said = f"{what} takes about {size(expected)} in {folder} (seldom above {size(most)}); {size(free)} are free"
    if free < expected:
        raise RequestError(
            f"{said}. Free some, point machine.temp_directory of params.yaml to a larger disk, "
            "or lower sample.max_documents"
        )
    print(f"caution: {said}" if free < most else said, flush=True)


def size(n_bytes: float) -> str:
    """Bytes as people read them: 1.5 GB."""
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.1f} GB"
