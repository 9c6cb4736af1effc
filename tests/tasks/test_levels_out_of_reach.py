"""Runs whose level of recovery is out of reach: said, skipped, and left out; all others are made.

In this project a reader who sees no output names 7 % of the content words, because S1 keeps the
stop words beside them; Vickrey that always takes the second word leaves no word as it is.
"""

import json
import shutil

import pytest

from lexveil import RequestError
from lexveil.base import paths
from lexveil.base.levels import RecoveryTarget
from lexveil.io.artifacts.levels import SkippedLevel, epsilon_of, made_runs, skipped_run
from lexveil.io.config import load_params
from lexveil.readers import public_words
from tests.conftest import made_of, run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow

GRID = {
    "mechanisms": ["tem", "vickrey-t1"],
    "strategies": ["S1", "S3"],
    "epsilons": ["r0.02", "r0.95"],
}
SKIPPED = [
    ("tem", "S1", RecoveryTarget(0.02)),
    ("vickrey-t1", "S1", RecoveryTarget(0.02)),
    ("vickrey-t1", "S1", RecoveryTarget(0.95)),
    ("vickrey-t1", "S3", RecoveryTarget(0.95)),
]


@pytest.fixture(scope="module")
def _planned(_built, tmp_path_factory):
    """The built project with the plans of a grid; and everything of the runs that are skipped."""

    def make():
        change_params(grid=GRID)
        for stage in ("bound_levels", "plan_budgets", "check_plans"):
            run_stage(stage)
        for mechanism, strategy, level in SKIPPED:
            run_stage("privatize", mechanism, strategy, str(level))
            run_stage("evaluate", mechanism, strategy, str(level))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public_words, "WORDS_OF_A_BAND", 200)
        return made_of(_built, tmp_path_factory, make)


@pytest.fixture
def planned(_planned, monkeypatch):
    monkeypatch.chdir(_planned)
    return _planned


def test_all_others_are_planned(planned):
    runs = load_params().grid.runs()
    assert [run for run in runs if skipped_run(*run)] == SKIPPED
    for run in made_runs(runs):
        assert epsilon_of(*run) > 0 and paths.plan(*run).is_file()


@pytest.mark.parametrize("run", SKIPPED, ids=str)
def test_in_place_of_texts_and_figures_there_is_the_reason_alone(planned, run):
    name = "/".join(map(str, run))
    places = [f"plans/{name}/planned.json", f"private/{name}/skipped.json"]
    places += [f"{room}/{name}.json" for room in ("checks/plans", "evaluation", "recovery")]
    records = [json.loads((paths.ARTIFACTS / one).read_text(encoding="utf-8")) for one in places]
    assert all(record == records[0] for record in records)
    skipped = SkippedLevel.model_validate(records[0])
    assert skipped.skipped.startswith("out of reach: ") and "ask for" in skipped.skipped
    assert (skipped.nearest > run[2].share) == (run[2].share == 0.02)
    for folder in (paths.plan(*run).parent, paths.private(*run)):
        assert len(list(folder.iterdir())) == 1


def test_what_asks_for_its_epsilon_is_told(planned):
    with pytest.raises(RequestError, match=r"tem S1 r0\.02 is skipped: out of reach: a reader"):
        epsilon_of(*SKIPPED[0])


@pytest.fixture
def copied(_planned, tmp_path, monkeypatch):
    """A copy of the planned project, as current folder, to change at will."""
    root = tmp_path / "project"
    shutil.copytree(_planned, root)
    monkeypatch.chdir(root)
    return root


@pytest.mark.usefixtures("copied")
def test_the_checks_judge_the_runs_that_are_made():
    """In this grid every run is out of reach, and the checks hold."""
    change_params(grid=GRID | {"strategies": ["S1"], "epsilons": ["r0.02"]})
    run_stage("train_language_model")
    run_stage("privatize", "none", "none", "0.0")
    run_stage("train_attackers")
    run_stage("evaluate", "none", "none", "0.0")
    for stage in ("check_outputs", "check_evaluation"):
        run_stage(stage)
    outputs = json.loads((paths.CHECKS / "outputs.json").read_text(encoding="utf-8"))
    assert outputs["summary"]["runs"].keys() == {"none/none/0.0"}
    scores = json.loads((paths.CHECKS / "evaluation.json").read_text(encoding="utf-8"))
    assert scores["summary"]["n_runs"] == 1
