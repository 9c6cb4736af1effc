"""The graph is complete: a stage is stale when what it uses has changed; and rooms import as their
contracts say."""

import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
import yaml

from lexveil.base import paths
from lexveil.io.execution import stage_code

ROOT = Path(__file__).parents[1]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
WORKING = [stage for stage in STAGES if stage != "code"]
QUERIES = {f"sql/{file.relative_to(ROOT / 'sql')}" for file in (ROOT / "sql").rglob("*.sql")}
QUERY = re.compile(
    rf'"((?:{"|".join(sorted({name.split("/")[1] for name in QUERIES}))})/[\w{{}}]+)"'
)


def task_of(stage):
    return ROOT / "tasks" / f"{re.match(r'python -m tasks.([a-z_]+)', STAGES[stage]['cmd'])[1]}.py"


def declared(stage):
    """Parameters by file."""
    return {file: keys for entry in STAGES[stage].get("params", []) for file, keys in entry.items()}


def queries_in(files):
    named = {name for file in files for name in QUERY.findall(file.read_text(encoding="utf-8"))}
    shapes = [re.sub(r"\\{\w+\\}", r"\\w+", re.escape(f"sql/{name}.sql")) for name in named]
    return {query for query in QUERIES if any(re.fullmatch(shape, query) for shape in shapes)}


@pytest.fixture(scope="module")
def imports():
    packages = ("lexveil", "tasks")
    # A stage does not run what is imported for types alone.
    graph = grimp.build_graph(*packages, cache_dir=None, exclude_type_checking_imports=True)
    for module in graph.find_children("lexveil.core.mechanisms"):
        if "@register" in stage_code.source_of(module).read_text(encoding="utf-8").splitlines():
            graph.add_import(importer="lexveil.core.mechanisms.registry", imported=module)
    for importer, imported in stage_code._CUT:
        graph.remove_import(importer=importer, imported=imported)
    for module in graph.modules:  # Python runs the packages that a module is in, too
        package = module.rpartition(".")[0]
        if package not in ("", "lexveil", "tasks"):
            graph.add_import(importer=module, imported=package)
    return graph


@pytest.mark.parametrize("stage", WORKING)
def test_code_value_follows_every_module_the_stage_imports(stage, imports):
    """DVC notices a change of code by this value alone; another library finds the same imports."""
    task = task_of(stage)
    upstream = imports.find_upstream_modules(f"tasks.{task.stem}") - {"tasks", "lexveil"}
    packages = {
        name.rsplit(".", depth)[0] for name in upstream for depth in range(1, name.count(".") + 1)
    }
    assert stage_code.modules_of(task) == (upstream | packages) - {"lexveil"}
    assert {stage_code.source_of(module) for module in upstream} <= stage_code.files_of(task)


def test_a_change_of_one_module_changes_the_values_of_those_that_import_it(tmp_path, monkeypatch):
    before = stage_code.code_hashes()
    changed = paths.LIBRARY / "lab" / "report" / "page.py"
    content = stage_code._content
    monkeypatch.setattr(
        stage_code, "_content", lambda file: "another" if file == changed else content(file)
    )
    after = stage_code.code_hashes()
    assert before.keys() == after.keys() == {task_of(stage).stem for stage in WORKING}
    assert {name for name in before if before[name] != after[name]} == {"report"}


@pytest.mark.parametrize("stage", WORKING)
def test_a_stage_declares_its_code_its_queries_and_its_own_file(stage):
    task = task_of(stage)
    deps = STAGES[stage]["deps"]
    assert declared(stage)["code.json"] == [task.stem]
    assert f"tasks/{task.name}" in deps and not [dep for dep in deps if dep.startswith("lexveil")]
    assert {dep for dep in deps if dep.startswith("sql/")} == queries_in(
        {task, *stage_code.files_of(task)}
    )


@pytest.mark.parametrize("stage", WORKING)
def test_no_stage_depends_on_what_its_result_does_not(stage):
    """Every stage reads params.yaml, whose models know the ranges of mechanisms: no reason to be
    stale."""
    task = task_of(stage).stem
    modules = stage_code.modules_of(task_of(stage))
    rooms = {
        "faces",
        "release.ledger",
        "release.inbox",
        "lab.lineage",
        "lab.report",
        "io.execution.dask_cluster",
    } - {f"lab.{task}"}
    assert not [
        module
        for module in modules
        for room in rooms
        if f"{module}.".startswith(f"lexveil.{room}.")
    ]
    runs_them = task in (
        *("privatize", "plan_budgets", "measure_deniability", "evaluate", "report"),
        "embed_sentences",
    )
    assert (
        ("lexveil.core.mechanisms.tem" in modules)
        == runs_them
        == ("lexveil.core.mechanisms.registry" in modules)
    )


@pytest.mark.parametrize("stage", WORKING)
def test_a_stage_declares_every_parameter_it_reads(stage):
    if stage in ("baseline", "evaluate_baseline"):
        # the same module as another stage, of which it takes the branch that reads fewer parameters
        return
    text = task_of(stage).read_text(encoding="utf-8")
    keys = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8")).keys()
    read = set(re.findall(r"\bparams\.(\w+)", text)) & keys
    named = {param.split(".")[0] for param in declared(stage).get("params.yaml", [])}
    assert read <= named


def test_every_parameter_makes_a_stage_stale():
    """Settings that change no result are in lexveil.toml, and not in params.yaml."""
    keys = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8")).keys()
    named = {name for stage in STAGES for name in declared(stage).get("params.yaml", [])}
    assert keys == {name.split(".")[0] for name in named}


def test_no_stage_depends_on_what_changes_no_result():
    assert "lexveil.toml" not in (ROOT / "dvc.yaml").read_text(encoding="utf-8")


def test_every_query_belongs_to_a_stage_or_a_command():
    sources = {file for room in ("lexveil", "tasks") for file in (ROOT / room).rglob("*.py")}
    assert queries_in(sources) == QUERIES


def test_import_contracts():
    # In a process of its own, since it switches off every logger that there is.
    command = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    linted = subprocess.run(
        [sys.executable, "-c", command],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert linted.returncode == 0, linted.stdout


def test_there_are_no_circles():
    """Inside rooms neither, where no contract looks; imports inside functions and for types count
    too."""
    graph = grimp.build_graph("lexveil", "tasks", "flows", cache_dir=None)
    TopologicalSorter(
        {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    ).prepare()
