"""Write the code that each stage runs into dvc.yaml, as the import graph and the queries in sql/ have it.

    python .ci/deps.py --write    replace the code dependencies of every stage
    python .ci/deps.py --check    exit 1 and name the stages whose code dependencies are not what they should be

A stage is stale when one of these files changes, so each is named by itself and nothing else is: a room of which a
stage uses two modules is two lines. Data dependencies are written by hand and left alone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "dvc.yaml"
ROOTS = ("lexveil", "tasks")

# Imports that decide no byte of an output, cut with the reason. What a stage needs behind them it imports itself.
CUT = {
    ("lexveil.runtime.pool", "lexveil.runtime.dask_cluster"): "results do not depend on who computes them",
    ("lexveil.runtime.stage", "lexveil.runtime.events"): "a report of progress or of an error is no output",
    ("lexveil.artifacts.training_checkpoints", "lexveil.runtime.events"): "a report of progress is no output",
    **{
        # Parameters decide by their values, which a stage declares; their names, ranges and defaults are only checked.
        ("lexveil.config." + section, "lexveil." + registry): "names and ranges of parameters decide no byte"
        for section, registry in (
            ("corpus", "association"),
            ("corpus", "association.measure"),
            ("corpus", "association.pmi"),
            ("privacy", "mechanisms.registry"),
            ("privacy", "mechanisms.rank_remap"),
        )
    },
}

# Modules that find others by listing their folder: those of them that register something.
DISCOVERED = {"lexveil.mechanisms.registry": "@register"}

# A stage that reads the base of a training depends on the cards of the models that ship: they have all other hashes.
READS_BASE = "lexveil.artifacts.base_model"
CARDS = "lexveil/models/*/model.json"

PUBLIC_NAMES = Path("lexveil/__init__.py")  # names of the public API, each imported when it is used; none in a stage

STAGE = re.compile(r"^  (\w+):$")
CODE = re.compile(r"^      - (?:(?:tasks|lexveil|sql)/\S*)$")
COMMAND = re.compile(r"^    cmd: python -m ([\w.]+)")


def import_graph() -> grimp.ImportGraph:
    """The imports of the library and the stages, lazy ones too, without those in ``CUT``, with ``DISCOVERED``."""
    graph = grimp.build_graph(*ROOTS, cache_dir=None)
    for importer, mark in DISCOVERED.items():
        for module in graph.find_children(importer.rpartition(".")[0]):
            if mark in (ROOT / source_of(module)).read_text(encoding="utf-8").splitlines():
                graph.add_import(importer=importer, imported=module)
    for importer, imported in CUT:
        graph.remove_import(importer=importer, imported=imported)
    return graph


def source_of(module: str) -> Path:
    """The file of a module, relative to the project."""
    path = Path(*module.split("."))
    return path / "__init__.py" if (ROOT / path).is_dir() else path.with_suffix(".py")


def modules_of(graph: grimp.ImportGraph, module: str) -> set[str]:
    """A module, everything it imports, and the packages that are thereby imported."""
    found = {module} | graph.find_upstream_modules(module)
    packages = {name.rsplit(".", depth)[0] for name in found for depth in range(1, name.count(".") + 1)}
    return (found | packages) - {"tasks"}


def queries_of(files: set[Path]) -> set[Path]:
    """The queries that some files name, by their path below sql/ without its ending, f-strings included."""
    known = {str(file.relative_to(ROOT / "sql").with_suffix("")): file for file in (ROOT / "sql").rglob("*.sql")}
    rooms = "|".join(sorted({name.split("/")[0] for name in known}))
    named = re.compile(rf'"((?:{rooms})/[\w{{}}]+)"')
    found: set[Path] = set()
    for file in files:
        for name in named.findall((ROOT / file).read_text(encoding="utf-8")):
            shape = re.sub(r"\\{\w+\\}", r"\\w+", re.escape(name))
            matching = [path for query, path in known.items() if re.fullmatch(shape, query)]
            if not matching and "{" not in name:
                raise SystemExit(f"{file}: there is no query sql/{name}.sql")
            found |= {path.relative_to(ROOT) for path in matching}
    return found


def data_of(files: set[Path]) -> set[Path]:
    """The files beside some modules that these name: templates, styles, tables."""
    named = re.compile(r'"([\w.]+\.(?:css|csv|j2|js|txt))"')
    beside = {file.parent / name for file in files for name in named.findall((ROOT / file).read_text(encoding="utf-8"))}
    return {file for file in beside if (ROOT / file).is_file()}


def cards() -> set[Path]:
    """The cards of the models that ship, as git has them: a model that someone tries out is not one of them."""
    listed = subprocess.run(["git", "ls-files", CARDS], cwd=ROOT, check=True, capture_output=True, text=True)
    return {Path(line) for line in listed.stdout.splitlines()}


def code_of(graph: grimp.ImportGraph, module: str) -> list[str]:
    """The code dependencies of the stage that runs ``module``, sorted; a package of which all is used is one entry."""
    files = {source_of(name) for name in modules_of(graph, module)} - {PUBLIC_NAMES}
    files |= queries_of(files) | data_of(files)
    if READS_BASE in graph.find_modules_directly_imported_by(module):
        files |= cards()
    for folder in sorted({file.parent for file in files}, key=lambda path: -len(path.parts)):
        every = {file.relative_to(ROOT) for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".sql")}
        if folder.parts[0] == "lexveil" and len(folder.parts) > 1 and every and every <= files:
            files = files - every | {folder}
    return sorted(map(str, files))


def rewritten(text: str) -> tuple[str, list[str]]:
    """dvc.yaml with the code dependencies of now, and the stages whose had to change."""
    graph = import_graph()
    lines, out, changed = text.splitlines(), list[str](), list[str]()
    stage, module, position, old = "", "", -1, list[str]()

    def settle() -> None:
        if module and position >= 0:
            new = [f"      - {name}" for name in code_of(graph, module)]
            if new != old:
                changed.append(stage)
            out[position:position] = new

    for line in lines:
        if found := STAGE.match(line):
            settle()
            stage, module, position, old = found[1], "", -1, []
        if found := COMMAND.match(line):
            module = found[1]
        if stage and CODE.match(line) and position >= 0:
            old.append(line)
            continue
        in_deps = position >= 0 and position == len(out)
        out.append(line)
        if line == "    deps:" or (in_deps and line.startswith("      - ")):
            position = len(out)
    settle()
    return "\n".join(out) + "\n", changed


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    text, changed = rewritten(FILE.read_text(encoding="utf-8"))
    if parser.parse_args().write:
        FILE.write_text(text, encoding="utf-8")
        return 0
    for stage in changed:
        print(f"dvc.yaml: the code dependencies of {stage} are out of date; run python .ci/deps.py --write")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
