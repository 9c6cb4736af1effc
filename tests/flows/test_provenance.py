"""Which run made what: recorded by runs of the flow, true or absent afterwards, and of no influence on anything."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import numpy as np
import pytest
from scratch_project import Project, RunFlow

from lexveil.lineage.rendering import as_text
from lexveil.lineage.trace import lineage

pytestmark = pytest.mark.slow

CHECKED = Path("artifacts/checks/outputs.json")


def noted(project: Project) -> dict:
    return json.loads((project.root / ".provenance.json").read_text())


def made(at: str | None = None) -> dict:
    return {entry["stage"]: entry["made"] for entry in lineage(CHECKED, at)["chain"]}


def make_stale(project: Project, to: float) -> None:
    """Let `check` run again."""
    params = project.root / "params.yaml"
    params.write_text(re.sub(r"min_coverage: 0\.\d", f"min_coverage: {to}", params.read_text()))


def test_every_stage_tells_of_the_run_that_made_it_or_of_none(project: Project, run: RunFlow) -> None:
    first = project.commit()
    run()
    traced = lineage(CHECKED)
    origins = {entry["stage"]: entry["made"] for entry in traced["chain"]}
    assert len(origins) == 6 and len({origin["flow_run"] for origin in origins.values()}) == 1
    assert len({uuid.UUID(origin["task_run"]) for origin in origins.values()}) == 6
    assert {(origin["commit"], origin["committed"]) for origin in origins.values()} == {(first, True)}
    (environment,) = traced["environments"].values()
    assert environment["packages"]["numpy"] == np.__version__
    # It says nothing to DVC: nothing is stale.
    before = noted(project)
    run()
    assert noted(project) == before

    second = project.commit()
    make_stale(project, 0.6)  # changed parameters are no changed code
    run()
    again = noted(project)
    assert (made()["check"]["commit"], made()["check"]["committed"]) == (second, True)
    assert made()["check"]["flow_run"] != origins["check"]["flow_run"]
    assert made() | {"check": origins["check"]} == origins == made(at="HEAD")

    make_stale(project, 0.7)
    project.behave("first wait 0")  # any file that is committed
    run()
    assert [name for name, origin in made().items() if not origin["committed"]] == ["check"]
    assert any("with changes not committed" in line for line in as_text(lineage(CHECKED)))

    # What DVC alone made is given to no run, and what it brings back to the run that made it.
    make_stale(project, 0.8)
    project.dvc("repro")
    assert made()["check"] is None and made()["first"] is not None
    assert any("not recorded" in line for line in as_text(lineage(CHECKED)))
    run()
    assert "check" not in noted(project)["stages"]
    make_stale(project, 0.6)
    project.ran()
    run()
    assert project.ran() == [] and noted(project)["stages"]["check"] == again["stages"]["check"]
