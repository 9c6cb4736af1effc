"""Creation of a new project folder that uses the installed library. The project has the same files
as the library's own repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from lexveil.base import paths
from lexveil.base.errors import LexveilError, RequestError

# The files of a project; the wheel has them in lexveil/_project (.ci/wheel.py).
FOLDERS = ("flows", "tasks", "sql")
DVC_FILES = (".dvc/.gitignore", ".dvc/config", ".dvcignore", "data.dvc", "dvc.yaml")
FILES = (*DVC_FILES, ".gitignore", "lexveil.toml", "params.yaml", "prefect.yaml")


def create(folder: Path) -> None:
    """Create a project in ``folder``, completely or not at all.

    Raises:
        RequestError: if the folder is not empty, its parent is missing, or git is not installed.
        LexveilError: if git cannot create a repository there.
    """
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(f"{folder} is not empty; name a new folder")
    if not folder.parent.is_dir():
        raise RequestError(f"{folder.parent} is not a folder; make it first")
    if shutil.which("git") is None:
        raise RequestError(
            "git is not installed; DVC keeps a project's versions in a git repository, so "
            "install git"
        )
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
        project = Path(scratch) / "project"
        unwanted = shutil.ignore_patterns("__pycache__", "*.pyc")
        for name in FOLDERS:
            shutil.copytree(paths.TEMPLATE / name, project / name, ignore=unwanted)
        for name in FILES:
            (project / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(paths.TEMPLATE / name, project / name)
        done = subprocess.run(
            ["git", "init", "--quiet"], cwd=project, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LexveilError(f"git init failed: {' '.join(done.stderr.split())}")
        if folder.exists():
            folder.rmdir()
        os.replace(project, folder)
