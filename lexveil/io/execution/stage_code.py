"""Hashes of the library code that each stage of the DVC graph executes. The file code.json has one
hash per stage, and dvc.yaml depends on it.

A stage is stale if one of the library's files that it imports has changed, whether the import is
direct, indirect or lazy. dvc.yaml names one value per stage for that (``params: [code.json:
[STAGE]]``). The stage ``code`` writes these values. In projects of `lexveil init` the values are
the hashes of the installed library.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lexveil.base import paths
from lexveil.base.runtime.hashes import sha256

CODE = Path("code.json")

# Imports that determine no byte of an output, with the reason. They are not followed. A stage that
# needs modules behind them imports these modules itself.
_CUT = {
    (
        "lexveil.io.execution.pool",
        "lexveil.io.execution.dask_cluster",
    ): "results do not depend on which process computes them",
    **{
        # Only the values of parameters matter, and a stage declares them. The names, ranges and
        # defaults of parameters are only validated.
        (
            f"lexveil.io.config.{section}",
            f"lexveil.core.{registry}",
        ): "names and ranges of parameters determine no byte"
        for section, registry in (
            ("corpus", "association"),
            ("privacy", "mechanisms.registry"),
            ("privacy", "mechanisms.rank_remap"),
        )
    },
}
# this module imports all modules that register a mechanism
_REGISTRY = "lexveil.core.mechanisms.registry"
_REGISTERS = "@register"
# A stage that reads the base model of a training depends on the cards of the packaged models. The
# cards list the hashes of all other files.
_READS_BASE = "lexveil.io.artifacts.base_model"
_PUBLIC_NAMES = "lexveil"  # its public names are imported lazily, and no stage uses them
# name of a file next to the module that names it
_BESIDE = re.compile(r'"([\w.]+\.(?:css|csv|j2|js|txt))"')


def code_hashes() -> dict[str, str]:
    """Return one hash for each module of ``tasks``. The hash is over the names and contents of the
    library files that the stage runs.
    """
    tasks = find_spec("tasks")
    folder = Path(tasks.origin or "").parent if tasks else paths.TEMPLATE / "tasks"
    return {
        file.stem: _hash(files_of(file))
        for file in sorted(folder.glob("*.py"))
        if file.stem not in ("__init__", "code")
    }


def refresh_code() -> bool:
    """Update code.json of the project in the current folder from the library, and return whether
    the file changed.
    """
    content = json.dumps(code_hashes(), indent=2) + "\n"
    if CODE.exists() and CODE.read_text(encoding="utf-8") == content:
        return False
    partial = CODE.with_name(f".{CODE.name}.partial")
    partial.write_text(content, encoding="utf-8")
    os.replace(partial, CODE)
    return True


def modules_of(file: Path) -> set[str]:
    """Return the modules of the library that a file imports, directly or indirectly, with their
    parent packages.
    """
    modules: set[str] = set()
    waiting = list(_imports(file))
    while waiting:
        module = waiting.pop()
        if module in modules:
            continue
        modules.add(module)
        waiting += _imports(source_of(module)) - {
            cut for importer, cut in _CUT if importer == module
        }
        waiting += [module.rpartition(".")[0]] if "." in module else []
        if module == _REGISTRY:
            waiting += _registered()
    return modules - {_PUBLIC_NAMES}


@cache
def _registered() -> list[str]:
    """Return the names of the modules that register a mechanism."""
    folder = paths.LIBRARY / "core" / "mechanisms"
    files = [
        file
        for file in folder.glob("*.py")
        if _REGISTERS in file.read_text(encoding="utf-8").splitlines()
    ]
    return [f"lexveil.core.mechanisms.{file.stem}" for file in files]


@cache
def source_of(module: str) -> Path:
    """Return the file of a module of the library."""
    path = paths.LIBRARY.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def files_of(task: Path) -> set[Path]:
    """Return the library files that affect a stage: modules, files that these modules name and that
    lie next to them, and metadata cards of models.
    """
    files = {source_of(module) for module in modules_of(task)}
    cards = set(paths.MODELS.glob("*/model.json")) if _READS_BASE in _imports(task) else set()
    return files.union(*map(_beside, files)) | cards


@cache
def _beside(file: Path) -> frozenset[Path]:
    beside = (file.parent / name for name in _BESIDE.findall(file.read_text(encoding="utf-8")))
    return frozenset(file for file in beside if file.is_file())


def _hash(files: set[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(paths.LIBRARY).as_posix()}\0{_content(file)}\n".encode())
    return digest.hexdigest()[:32]


_content = cache(sha256)


@cache
def _imports(file: Path) -> frozenset[str]:
    """Return the modules of the library that a file imports, except in code for type checkers."""
    names: list[str] = []
    for statement in _statements(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            names += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            names += [f"{statement.module}.{alias.name}" for alias in statement.names]
    own = [name for name in names if name.partition(".")[0] == "lexveil"]
    return frozenset(name if source_of(name).is_file() else name.rpartition(".")[0] for name in own)


def _statements(block: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a syntax tree's block at any depth. Expressions are skipped, because
    they import nothing and make up most of a syntax tree.
    """
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        if name == "body" and getattr(getattr(block, "test", None), "id", None) == "TYPE_CHECKING":
            continue
        for statement in getattr(block, name, ()):
            yield statement
            yield from _statements(statement)
