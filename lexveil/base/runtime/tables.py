"""Readers and writers of small artifacts (Parquet and JSON). An atomic rename ensures that an
output is written completely or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base.errors import MissingArtifactError

# All writers use these options, so that the same rows give the same bytes.
PARQUET = {"compression": "zstd", "compression_level": 3}


def _partial(path: Path) -> Path:
    # Use a fixed name, so that the next run overwrites what a killed run left behind.
    return path.with_name(f".{path.name}.partial")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to. If the block succeeds, the file is renamed to ``path``,
    otherwise it is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial(path)
    try:
        yield partial
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory to fill. If the block succeeds, the directory replaces ``path``,
    otherwise it is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial(path)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        shutil.rmtree(path, ignore_errors=True)
        os.replace(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_table(table: pa.Table, path: Path) -> None:
    """Write one Parquet file."""
    with atomic_file(path) as partial:
        pq.write_table(table, partial, **PARQUET)


def read_table(path: Path, made_by: str, columns: list[str] | None = None) -> pa.Table:
    """Read a Parquet file.

    Args:
        made_by: the stage that writes the file, for the message if it is missing.
    """
    return pq.read_table(require(path, made_by), columns=columns)


def write_json(value: Any, path: Path) -> None:
    """Write JSON in one canonical form that people can read: sorted keys, indented by two spaces,
    with a final line feed. Equal values give equal bytes.
    """
    with atomic_file(path) as partial:
        partial.write_text(
            json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def read_json(path: Path, made_by: str) -> Any:
    """Read a JSON file.

    Args:
        made_by: the stage that writes the file, for the message if it is missing.
    """
    return json.loads(require(path, made_by).read_text(encoding="utf-8"))


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; return an empty mapping if the file does not exist or contains anything
    else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def require(path: Path, made_by: str) -> Path:
    """Return ``path`` if it exists.

    Raises:
        MissingArtifactError: naming the command that makes the file, if it does not exist.
    """
    if not path.exists():
        raise MissingArtifactError(
            f"{path} does not exist yet; `lexveil run` makes it (stage {made_by})"
        )
    return path
