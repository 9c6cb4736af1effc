"""Which run made what: recorded by runs of the flow, true or absent afterwards, and of no influence on anything."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import numpy as np
import pytest
from scratch_project import Project, Silent

from flows import build
from lexveil.lineage.provenance import matching, stamp
from lexveil.lineage.rendering import as_text
from lexveil.lineage.trace import lineage
from lexveil.runtime.project import build_lock

pytestmark = pytest.mark.slow

PRIVATE = Path("artifacts/private/S1/1.0/documents.txt")


@pytest.fixture
def run(project: Project, prefect_server: str):
    def once() -> None:
        with build_lock():
            assert build.run(prefect_server, Silent()) == 0

    return once


def noted(project: Project) -> dict:
    return json.loads((project.root / ".provenance.json").read_text())


def made(artifact: Path = PRIVATE, at: str | None = None) -> dict:
    return {entry["stage"]: entry["made"] for entry in lineage(artifact, at)["chain"]}


def test_every_stage_of_a_run_tells_of_it_and_only_what_ran_changes(project: Project, run, built_template) -> None:
    first = project.commit()
    run()
    found = lineage(PRIVATE)
    origins = [entry["made"] for entry in found["chain"]]
    assert len(origins) == 4 and len({one["flow_run"] for one in origins}) == 1
    assert len({uuid.UUID(one["task_run"]) for one in origins}) == 4
    assert {(one["commit"], one["committed"]) for one in origins} == {(first, True)}
    (environment,) = found["environments"].values()
    assert environment["packages"]["numpy"] == np.__version__
    assert any("numpy==" in line for line in as_text(found))
    # It says nothing to DVC: bytes and lock are those of a serial `dvc repro`, and nothing is stale.
    assert project.lock() == Project(built_template).lock()
    assert project.artifacts() == Project(built_template).artifacts()
    before = (project.root / ".provenance.json").read_bytes()
    run()
    assert (project.root / ".provenance.json").read_bytes() == before

    project.commit()
    project.set_params("seed: 20261", "seed: 7")
    run()
    again = made()
    assert again["privatize@S1-1.0"]["flow_run"] != origins[0]["flow_run"]
    assert again["first"] == origins[-1]
    assert made(at="HEAD") == {entry["stage"]: entry["made"] for entry in found["chain"]}


def test_code_that_was_not_committed_is_said(project: Project, run) -> None:
    project.commit()
    project.set_params("seed: 20261", "seed: 7")
    (project.root / "stage.py").write_text((project.root / "stage.py").read_text() + "# changed\n")
    run()
    assert {one["committed"] for one in made().values()} == {False}
    assert any("with changes not committed" in line for line in as_text(lineage(PRIVATE)))


def test_changed_parameters_are_no_changed_code(project: Project, run) -> None:
    project.commit()
    project.set_params("seed: 20261", "seed: 7")
    run()
    assert {one["committed"] for one in made().values()} == {True}


def test_what_dvc_alone_made_is_not_given_to_a_run(project: Project, run) -> None:
    run()
    assert all(made().values())
    project.set_params("seed: 20261", "seed: 7")
    project.dvc("repro")
    assert made()["privatize@S1-1.0"] is None and made()["first"] is not None
    assert any("not recorded" in line for line in as_text(lineage(PRIVATE)))
    run()
    assert "privatize@S1-1.0" not in noted(project)["stages"]


def test_what_dvc_brings_back_is_given_to_the_run_that_made_it(project: Project, run) -> None:
    run()
    first = noted(project)
    project.set_params("seed: 20261", "seed: 7")
    run()
    assert noted(project)["stages"]["privatize@S1-1.0"] != first["stages"]["privatize@S1-1.0"]
    project.set_params("seed: 7", "seed: 20261")
    project.ran()
    run()
    assert project.ran() == [] and noted(project) == first


def test_an_entry_belongs_to_one_entry_of_the_lock_only() -> None:
    entry = {"cmd": "x", "outs": [{"path": "a", "md5": "1"}]}
    provenance = {"stages": {"s": {"entry": stamp(entry)}, "gone": {"entry": stamp(entry)}}}
    assert matching(provenance, {"s": dict(reversed(entry.items()))}) == {"s": {"entry": stamp(entry)}}
    assert matching(provenance, {"s": entry | {"cmd": "y"}}) == {}
    assert matching({}, {"s": entry}) == {}
