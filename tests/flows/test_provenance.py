"""Which run made what: recorded by runs of the flow, true or absent afterwards, and of no influence on anything."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import numpy as np
import pytest
from scratch_project import Project

from lexveil.lineage.rendering import as_text
from lexveil.lineage.trace import lineage

pytestmark = pytest.mark.slow

CHECKED = Path("artifacts/checks/outputs.json")


def noted(project: Project) -> dict:
    return json.loads((project.root / ".provenance.json").read_text())


def made(at: str | None = None) -> dict:
    return {entry["stage"]: entry["made"] for entry in lineage(CHECKED, at)["chain"]}


def make_stale(project: Project, to: float = 0.6) -> None:
    """Let `check` run again."""
    params = project.root / "params.yaml"
    params.write_text(re.sub(r"min_coverage: 0\.\d", f"min_coverage: {to}", params.read_text()))


def test_every_stage_of_a_run_tells_of_it_and_only_what_ran_changes(ran: Project, run) -> None:
    first = ran.git("rev-parse", "HEAD")
    traced = lineage(CHECKED)
    origins = {entry["stage"]: entry["made"] for entry in traced["chain"]}
    assert len(origins) == 6 and len({origin["flow_run"] for origin in origins.values()}) == 1
    assert len({uuid.UUID(origin["task_run"]) for origin in origins.values()}) == 6
    assert {(origin["commit"], origin["committed"]) for origin in origins.values()} == {(first, True)}
    (environment,) = traced["environments"].values()
    assert environment["packages"]["numpy"] == np.__version__
    assert any("numpy==" in line for line in as_text(traced))
    # It says nothing to DVC: nothing is stale.
    before = (ran.root / ".provenance.json").read_bytes()
    run()
    assert (ran.root / ".provenance.json").read_bytes() == before

    second = ran.commit()
    make_stale(ran)  # changed parameters are no changed code
    run()
    again = made()
    assert again.pop("check")["flow_run"] != origins["check"]["flow_run"]
    assert again == {name: origin for name, origin in origins.items() if name != "check"}
    assert (made()["check"]["commit"], made()["check"]["committed"]) == (second, True)
    assert made(at="HEAD") == origins

    make_stale(ran, to=0.7)
    ran.behave("first wait 0")  # any file that is committed
    run()
    assert [name for name, origin in made().items() if not origin["committed"]] == ["check"]
    assert any("with changes not committed" in line for line in as_text(lineage(CHECKED)))


def test_what_dvc_alone_made_is_not_given_to_a_run(ran: Project, run) -> None:
    assert all(made().values())
    make_stale(ran)
    ran.dvc("repro")
    assert made()["check"] is None and made()["first"] is not None
    assert any("not recorded" in line for line in as_text(lineage(CHECKED)))
    run()
    assert "check" not in noted(ran)["stages"]


def test_what_dvc_brings_back_is_given_to_the_run_that_made_it(ran: Project, run) -> None:
    first = noted(ran)
    make_stale(ran)
    run()
    assert noted(ran)["stages"]["check"] != first["stages"]["check"]
    make_stale(ran, to=0.5)
    ran.ran()
    run()
    assert ran.ran() == [] and noted(ran) == first
