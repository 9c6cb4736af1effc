"""A project outside the library's own repository: its files, and what its stages depend on in the installed library.

In the repository dvc.yaml names the files of the library that each stage runs. A project made by `lexveil init` has
none of them in its folder, so there each stage depends on its entry in code.json instead: one hash over the same files
where they are installed. A new version of the library makes stale what it changes, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lexveil import paths
from lexveil.errors import LexveilError, RequestError
from lexveil.runtime.stage_code import CODE_FILE, STAGE, code_hashes

CODE = Path("code.json")
# What a project consists of; the wheel has it in lexveil/_project (.ci/wheel.py).
FOLDERS = ("flows", "tasks", "sql")
FILES = (
    ".dvc/.gitignore",
    ".dvc/config",
    ".dvcignore",
    ".gitignore",
    "data.dvc",
    "dvc.yaml",
    "params.yaml",
    "prefect.yaml",
)

_KEY = re.compile(r"^    (\w+):")

_PLOT = re.compile(r"\blexveil/\S+\.json\b")


def create(folder: Path) -> None:
    """Make a project in ``folder``: all of it or nothing.

    Raises:
        RequestError: if something is in the folder already, the folder above it is missing, or git is not installed.
        LexveilError: if git cannot make a repository there.
    """
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(f"{folder} is not empty; name a new folder")
    if not folder.parent.is_dir():
        raise RequestError(f"{folder.parent} is no folder; make it first")
    if shutil.which("git") is None:
        raise RequestError("git is not installed; DVC keeps a project's versions in a git repository, so install git")
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
        project = Path(scratch) / "project"
        project.mkdir()
        _write(project)
        done = subprocess.run(["git", "init", "--quiet"], cwd=project, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LexveilError(f"git init failed: {' '.join(done.stderr.split())}")
        if folder.exists():
            folder.rmdir()
        os.replace(project, folder)


def _write(project: Path) -> None:
    for name in FOLDERS:
        shutil.copytree(paths.TEMPLATE / name, project / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    for name in FILES:
        (project / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(paths.TEMPLATE / name, project / name)
    graph = project / "dvc.yaml"
    text = with_code_parameters(graph.read_text(encoding="utf-8"))
    plots = project / ".dvc" / "plots"
    plots.mkdir()
    for name in set(_PLOT.findall(text)):
        shutil.copyfile(paths.LIBRARY.parent / name, plots / Path(name).name)
    graph.write_text(_PLOT.sub(lambda match: f".dvc/plots/{Path(match[0]).name}", text), encoding="utf-8")
    refresh_code(project, first=True)


def with_code_parameters(graph: str) -> str:
    """Return a dvc.yaml whose stages depend on their entries in code.json instead of on files of the library."""
    lines: list[str] = []
    stage, waiting = "", False  # whether the stage has dependencies, and no parameters yet
    for line in [*graph.splitlines(), "  :"]:
        key = _KEY.match(line)
        if waiting and line.strip() and not line.startswith(("      ", "    #")):
            lines += ["    params:", f"      - {CODE}: [{stage}]"]
            waiting = False
            if key and key[1] == "params":
                _, _, names = line.partition("[")
                lines += [f"      - {name.strip()}" for name in names.rstrip(" ]").split(",") if name]
                continue
        if match := STAGE.match(line):
            stage = match[1]
        elif key and key[1] == "deps":
            waiting = True
        if not CODE_FILE.match(line):
            lines.append(line)
    return "\n".join(lines[:-1]) + "\n"


def refresh_code(root: Path, *, first: bool = False) -> None:
    """Bring code.json in line with the installed library; nothing where a project names the library's files itself."""
    file = root / CODE
    if not first and not file.exists():
        return
    content = json.dumps(code_hashes(), indent=2) + "\n"
    if first or file.read_text(encoding="utf-8") != content:
        partial = file.with_name(f".{file.name}.partial")
        partial.write_text(content, encoding="utf-8")
        os.replace(partial, file)
