"""Folders that tests share: built once for all workers, and only read. A test that writes into one
of them fails."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

# Of each folder: relative path -> (size, time of the last change).
Fingerprint = dict[str, tuple[int, int]]
_shared: dict[Path, Fingerprint] = {}


def share(root: Path) -> None:
    """Mark a folder as shared: from now on every test that changes, adds or removes a file below
    ``root`` fails.
    """
    _shared[root] = _fingerprint(root)


def changes() -> list[str]:
    """Return the paths in shared folders that changed since the last call."""
    changed = []
    for root, before in _shared.items():
        after = _fingerprint(root)
        if after != before:
            names = sorted(
                name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
            )
            changed += [str(root / name) for name in names]
            _shared[root] = after  # so that only the culprit fails
    return changed


def build_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Path:
    """Build a folder once per run of the tests: the first worker builds it, and later ones wait.
    Nobody may write into it.
    """
    common = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        common = common.parent
    root = common / f"once-{name}"
    with FileLock(f"{root}.lock"):
        if not root.exists():
            partial = root.with_suffix(".partial")
            partial.mkdir()
            build(partial)
            partial.rename(root)
    return root


def stand_beside(shared: Path, root: Path, patch: pytest.MonkeyPatch) -> Path:
    """Make ``root`` a project, and the current folder, with the data and artifacts of a shared one.

    Its folders are its own and its files are links: they can be replaced and removed, but not
    written into.
    """
    for name in ("artifacts", "data"):
        shutil.copytree(shared / name, root / name, copy_function=os.symlink)
    for name in ("params.yaml", "lexveil.toml"):
        if (shared / name).exists():
            shutil.copy(shared / name, root)
    (root / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    patch.chdir(root)
    return root


def _fingerprint(root: Path) -> Fingerprint:
    found: Fingerprint = {}
    begin = len(str(root)) + 1
    folders = [str(root)]
    while folders:  # plain strings: this runs after every test
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                stat = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    found[entry.path[begin:]] = (0, stat.st_mtime_ns)
                else:
                    found[entry.path[begin:]] = (stat.st_size, stat.st_mtime_ns)
    return found
