"""Checkpoints of long stages: finished parts survive an interruption, and disk space is checked in
advance.

DVC deletes the outputs of a stage before it runs it, so finished parts of an interrupted stage must
lie elsewhere: in ``machine.temp_directory``, in a folder named by a hash of all they depend on.
Another corpus, another parameter or other code therefore finds nothing there and starts from the
beginning.
"""

from __future__ import annotations

import hashlib
import importlib.util
import platform
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lexveil import paths
from lexveil.config import MachineParams
from lexveil.errors import RequestError
from lexveil.runtime.hashes import sha256

SHOWN = 30.0  # seconds in which shared storage shows a file everywhere


@contextmanager
def kept_work(
    machine: MachineParams,
    stage: str,
    code: Iterable[str],
    inputs: Iterable[Path],
    *settings: object,
) -> Iterator[Path]:
    """Give a folder for finished parts; it is removed when the block succeeds and kept when it does
    not.

    Folders of the same stage made from anything else are removed first.

    Args:
        machine: where temporary work lies.
        stage: name of the stage.
        code: what decides the content of the parts: modules (``tasks.count_ngrams``), packages
            (``lexveil.text``) and queries (``collocations/shard_totals``).
        inputs: files the parts are made from, hashed by content.
        settings: all other values that decide their content.
    """
    key = hashlib.sha256()
    for source in sorted(file for name in code for file in _sources(name)):
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
    """Give a folder beside the finished parts that no other process writes to; it is removed after
    the block.

    A part is written there and then renamed: several workers may try the same part, one of them
    after it was given up.
    """
    with tempfile.TemporaryDirectory(prefix=".own-", dir=parent) as folder:
        yield Path(folder)


def expect_file(file: Path, who: str) -> None:
    """Wait until ``who`` sees a file that exists: shared storage may show it late.

    Raises:
        RequestError: if it does not show within ``SHOWN`` seconds.
    """
    deadline = time.monotonic() + SHOWN
    while not file.exists():
        if time.monotonic() > deadline:
            raise RequestError(
                f"{file} cannot be seen by {who} on {platform.node()}; the project's folder "
                "and machine.temp_directory "
                "(params.yaml) must lie on storage that all workers share, under the same path"
            )
        with suppress(OSError):
            list(file.parent.iterdir())  # which makes some file systems look again
        time.sleep(0.1)


def _sources(name: str) -> list[Path]:
    """The files of a module, package or query, wherever the library is installed."""
    if "/" in name:
        return [paths.query(name)]
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None, name
    file = Path(spec.origin)
    return list(file.parent.glob("*.py")) if spec.submodule_search_locations else [file]


def check_disk(folder: Path, expected: float, most: float, what: str) -> None:
    """Print how much disk space some work takes; refuse it if it cannot fit.

    Args:
        folder: where the work lies; it exists.
        expected: bytes it will probably take.
        most: bytes it seldom exceeds; less than that free is worth a caution.
        what: the work, for the message.

    Raises:
        RequestError: if less than ``expected`` is free.
    """
    free = shutil.disk_usage(folder).free
    needs = (
        f"{what} takes about {size(expected)} in {folder} (seldom above {size(most)}); "
        f"{size(free)} are free"
    )
    if free < expected:
        raise RequestError(
            f"{needs}. Free some, point machine.temp_directory of params.yaml to a larger disk, "
            "or lower sample.max_documents"
        )
    print(f"caution: {needs}" if free < most else needs, flush=True)


def size(n_bytes: float) -> str:
    """Bytes as people read them: 1.5 GB."""
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.1f} GB"
