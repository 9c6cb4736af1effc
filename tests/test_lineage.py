"""The graph is complete: DVC notices a change only in files that dvc.yaml names, so it must name them all."""

import re
from pathlib import Path

import grimp
import pytest
import yaml

ROOT = Path(__file__).parents[1]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
IMPORTS = grimp.build_graph("tasks")
QUERIES = {file.stem for file in (ROOT / "sql").glob("*.sql")}


# duck.run(con, "name"), duck.create(con, "table", "name"), duck.materialize(con, f"{name}_counts"), duck.text("name")
RUN = re.compile(r'\b(?:run|create|materialize|text)\(\s*(?:con,\s*)?(?:"\w+",\s*)?f?"([\w{}]+)"')
DUCK = Path("tasks/io/duck.py")
# They run queries, and are no stage.
COMMANDS = [
    Path("tasks/collocations.py"),
    *(Path("tasks/ledger") / f"{name}.py" for name in ("ledger", "release", "report", "verify")),
    *(Path("tasks/publish") / f"{name}.py" for name in ("folder", "gate", "run")),
]


def module_of(stage: str) -> str:
    return re.match(r"python -m ([\w.]+)", STAGES[stage]["cmd"])[1]


def source_of(module: str) -> Path:
    file = Path(*module.split("."))
    return file / "__init__.py" if (ROOT / file).is_dir() else file.with_suffix(".py")


def sources(stage: str) -> set[Path]:
    modules = {module_of(stage)} | IMPORTS.find_upstream_modules(module_of(stage))
    return {source_of(module) for module in modules - {"tasks"}}


def declared(stage: str) -> set[Path]:
    return {Path(dep) for dep in STAGES[stage]["deps"]}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_declares_every_module_it_imports(stage: str) -> None:
    missing = [str(source) for source in sorted(sources(stage)) if not declared(stage) & {source, *source.parents}]
    assert missing == []


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_declares_every_query_it_runs(stage: str) -> None:
    text = "".join((ROOT / source).read_text(encoding="utf-8") for source in sources(stage) - {DUCK})
    for name in RUN.findall(text):
        # A name put together at run time, as in f"{name}_counts", stands for at least one declared query.
        shape = re.sub(r"\\{\w+\\}", r"\\w+", re.escape(name))
        files = {Path("sql", f"{query}.sql") for query in QUERIES if re.fullmatch(shape, query)}
        assert files & declared(stage) if "{" in name else files <= declared(stage), name


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_declares_every_parameter_it_reads(stage: str) -> None:
    text = (ROOT / source_of(module_of(stage))).read_text(encoding="utf-8")
    if stage == "baseline":
        return  # the same module as privatize, of which it takes the branch that reads no parameter
    keys = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8")).keys()
    read = set(re.findall(r"\bparams\.(\w+)", text)) & keys
    named = {param.split(".")[0] for param in STAGES[stage].get("params", [])}
    # What the machine may use, and what a run tells whom, changes no result.
    assert read - {"machine", "operation", "release"} <= named


def test_every_query_belongs_to_a_stage_or_a_command() -> None:
    used = {dep.stem for stage in STAGES for dep in declared(stage) if dep.suffix == ".sql"}
    asked = {name for source in COMMANDS for name in RUN.findall((ROOT / source).read_text(encoding="utf-8"))}
    assert used | asked == QUERIES
    assert not used & asked


def test_no_stage_of_the_graph_is_without_a_module() -> None:
    for stage in STAGES:
        assert (ROOT / source_of(module_of(stage))).exists()
