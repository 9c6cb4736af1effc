"""Checkpoints of long stages, so that finished parts survive an interruption, and a check of disk
space in advance.

DVC deletes the outputs of a stage before it runs the stage, so finished parts of an interrupted
stage must be stored elsewhere. They are in ``machine.temp_directory``, in a folder that is named by
a hash of all their inputs. With another corpus, parameter or code, a stage therefore has no
finished parts and starts from the beginning.
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

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.logs import logger
from lexveil.base.runtime.hashes import sha256
from lexveil.io.config import MachineParams

LOG = logger(__name__)

SHOWN = 30.0  # seconds within which shared storage must show a file on every machine


@contextmanager
def kept_work(
    machine: MachineParams,
    stage: str,
    code: Iterable[str],
    inputs: Iterable[Path],
    *settings: object,
) -> Iterator[Path]:
    """Yield a folder in which a stage keeps finished parts of its work. The folder is removed if
    the block succeeds, and stays if the block fails.

    Folders of the same stage with other inputs are removed first.

    Args:
        machine: settings with the folder of temporary work.
        stage: name of the stage.
        code: code that determines the content of the parts: modules (``tasks.count_ngrams``),
            packages (``lexveil.core.text``) and queries (``collocations/shard_totals``).
        inputs: input files of the parts, hashed by content.
        settings: all other values that determine the content of the parts.
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
    """Yield a temporary folder for this process alone, next to the finished parts of a stage. The
    folder is removed after the block.

    A part is written in this folder and then renamed, because several workers may compute the same
    part, for example after one of them was considered lost.
    """
    with tempfile.TemporaryDirectory(prefix=".own-", dir=parent) as folder:
        yield Path(folder)


def expect_file(file: Path, who: str) -> None:
    """Wait until an existing file is visible on this machine, because shared storage may show it
    late.

    Args:
        file: the file.
        who: name of this process in the message, for example "this worker".

    Raises:
        RequestError: if the file is not visible within ``SHOWN`` seconds.
    """
    deadline = time.monotonic() + SHOWN
    while not file.exists():
        if time.monotonic() > deadline:
            raise RequestError(
                f"{file} is not visible to {who} on {platform.node()}; the project's folder "
                "and machine.temp_directory (lexveil.toml) must lie on storage that all "
                "workers share, under the same path"
            )
        with suppress(OSError):
            list(file.parent.iterdir())  # listing a folder refreshes the cache of some file systems
        time.sleep(0.1)


def _sources(name: str) -> list[Path]:
    """Return the source files of a module, package or query in the installed library."""
    if "/" in name:
        return [paths.query(name)]
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None, name
    file = Path(spec.origin)
    return list(file.parent.glob("*.py")) if spec.submodule_search_locations else [file]


def check_disk(folder: Path, expected: float, most: float, what: str) -> None:
    """Print the disk space that some work needs. If there is too little, raise an error.

    Args:
        folder: existing folder of the work.
        expected: bytes that the work will probably take.
        most: bytes that the work rarely exceeds; if less is free, a warning is printed.
        what: description of the work, for the message.

    Raises:
        RequestError: if less than ``expected`` is free.
    """
    free = shutil.disk_usage(folder).free
    needs = (
        f"{what} takes about {size(expected)} in {folder} (rarely more than {size(most)}), "
        f"and {size(free)} are free"
    )
    if free < expected:
        raise RequestError(
            f"{needs}; free some space, set machine.temp_directory of lexveil.toml to a "
            "folder on a larger disk, or lower sample.max_documents"
        )
    LOG.info(f"caution: {needs}" if free < most else needs)


def size(n_bytes: float) -> str:
    """Format bytes for people: 1.5 GB."""
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.1f} GB"
