"""The graph is complete: DVC notices a change only in files that dvc.yaml names, so it must name what is run."""

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
QUERIES = {file.relative_to(ROOT) for file in (ROOT / "sql").rglob("*.sql")}

_spec = importlib.util.spec_from_file_location("deps", ROOT / ".ci" / "deps.py")
deps = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(deps)


@pytest.fixture(scope="module")
def imports():
    return deps.import_graph()


def module_of(stage: str) -> str:
    return re.match(r"python -m ([\w.]+)", STAGES[stage]["cmd"])[1]


def test_every_stage_declares_the_code_it_runs_and_no_more() -> None:
    _, changed = deps.rewritten((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    assert changed == [], "run `python .ci/deps.py --write`"


def test_a_missing_and_a_needless_dependency_are_both_found() -> None:
    text = (ROOT / "dvc.yaml").read_text(encoding="utf-8")
    line = "      - tasks/count_ngrams.py\n"
    assert deps.rewritten(text.replace(line, ""))[1] == ["count_ngrams"]
    assert deps.rewritten(text.replace(line, f"      - lexveil/cli/main.py\n{line}"))[1] == ["count_ngrams"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("room", ["cli", "ledger", "release", "lineage", "report"])
def test_no_training_stage_depends_on(room: str, stage: str) -> None:
    code = [path for path in STAGES[stage]["deps"] if path.startswith(f"lexveil/{room}")]
    assert code == [] or (room, stage) == ("report", "report")


@pytest.mark.parametrize("stage", STAGES)
def test_only_stages_that_run_mechanisms_depend_on_them(stage: str) -> None:
    """Every stage reads params.yaml, whose models know the ranges of mechanisms: no reason to be stale."""
    running = ("baseline", "calibrate", "privatize", "measure_deniability", "measure_recovery", "report")
    runs_them = stage.removesuffix("_at_level") in running
    assert ("lexveil/mechanisms/tem.py" in STAGES[stage]["deps"]) == runs_them
    assert ("lexveil/mechanisms/registry.py" in STAGES[stage]["deps"]) == runs_them


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_depends_on_who_computes_it(stage: str) -> None:
    assert "lexveil/runtime/dask_cluster.py" not in STAGES[stage]["deps"]
    assert "lexveil/runtime" not in STAGES[stage]["deps"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_declares_every_parameter_it_reads(stage: str) -> None:
    text = (ROOT / deps.source_of(module_of(stage))).read_text(encoding="utf-8")
    if stage == "baseline":
        return  # the same module as privatize, of which it takes the branch that reads no parameter
    keys = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8")).keys()
    read = set(re.findall(r"\bparams\.(\w+)", text)) & keys
    named = {param.split(".")[0] for param in STAGES[stage].get("params", [])}
    # What the machine may use, and what a run tells whom, changes no result.
    assert read - {"machine", "operation", "release"} <= named


def test_every_query_belongs_to_a_stage_or_a_command(imports) -> None:
    sources = {deps.source_of(module) for module in imports.modules} - {Path("tasks/__init__.py")}
    assert deps.queries_of(sources) == QUERIES


def test_no_stage_of_the_graph_is_without_a_module() -> None:
    for stage in STAGES:
        assert (ROOT / deps.source_of(module_of(stage))).exists()
