"""Runs at levels of recovery: the epsilon that is found of public things, the plan, the run and
what is measured."""

import json

import pyarrow.parquet as pq
import pytest

from lexveil import MissingArtifactError
from lexveil.base import paths
from lexveil.base.levels import BaseEpsilon, RecoveryTarget
from lexveil.io.artifacts.levels import LevelCalibration, SkippedLevel, epsilon_of
from lexveil.io.config import load_params
from lexveil.readers import public_words
from tasks import plan_budgets
from tests.conftest import made_of, run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow

LEVELS = (RecoveryTarget(0.3), RecoveryTarget(0.7))
RUN = ("tem", "S3", LEVELS[0])


@pytest.fixture(scope="module")
def _made(_built, tmp_path_factory):
    """The built project with its runs at two levels, up to what is measured of them."""

    def make():
        change_params(
            grid={"mechanisms": ["tem"], "strategies": ["S3"], "epsilons": ["r0.3", "r0.7"]}
        )
        paths.private("madlib", "S1", BaseEpsilon(123.0)).mkdir(parents=True)  # of an earlier grid
        run_stage("train_language_model")
        run_stage("privatize", "none", "none", "0.0")
        run_stage("train_attackers")
        run_stage("bound_levels")
        run_stage("plan_budgets")
        run_stage("check_plans")
        run_stage("evaluate", "none", "none", "0.0")
        for level in map(str, LEVELS):
            for stage in ("privatize", "evaluate"):
                run_stage(stage, "tem", "S3", level)
        for stage in ("check_outputs", "check_evaluation"):
            run_stage(stage)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public_words, "WORDS_OF_A_BAND", 500)
        return made_of(_built, tmp_path_factory, make)


@pytest.fixture
def made(_made, monkeypatch):
    monkeypatch.chdir(_made)
    return _made


def calibration(level):
    return LevelCalibration.model_validate(read(paths.planned_epsilon("tem", "S3", level)))


def read(file):
    return json.loads(file.read_text(encoding="utf-8"))


def test_more_is_spent_where_more_may_come_back(made):
    low, high = map(calibration, LEVELS)
    assert low.epsilon < high.epsilon and (low.recovery, low.band) == (0.3, "content")
    bands = low.achieved.bands
    content = [bands[band] for band in ("frequent", "middle", "rare")]
    mean = sum(one.recovered * one.share_of_words for one in content) / sum(
        one.share_of_words for one in content
    )
    assert mean == pytest.approx(0.3, abs=0.1)  # two samples of 1,500 words, 6 deviations


def test_every_perturbed_token_gets_the_epsilon_however_long_its_text(made):
    epsilon = epsilon_of(*RUN)
    plan = pq.read_table(paths.plan(*RUN)).to_pandas()
    assert set(plan.epsilon_per_token[plan.n_perturbed > 0]) == {epsilon}
    assert plan.n_perturbed.max() > 2 * plan.n_perturbed.min()
    longest = plan.groupby("dataset").n_perturbed.transform("max")
    assert (plan.budget - epsilon * longest).abs().max() < 1e-9
    log = pq.read_table(paths.private(*RUN) / "tokens.parquet").to_pandas()
    assert set(log.epsilon[log.action == "perturbed"]) == {epsilon}
    record = read(paths.private(*RUN) / "record.json")
    assert (record["mode"], record["base_epsilon"]) == ("experiment", epsilon)


def test_the_checks_judge_runs_at_levels(made):
    runs = {"none/none/0.0", "tem/S3/r0.3", "tem/S3/r0.7"}
    assert read(paths.CHECKS / "outputs.json")["summary"]["runs"].keys() == runs
    scores = read(paths.CHECKS / "evaluation.json")["summary"]
    assert scores["n_runs"] == 3 and 0 < scores["n_scored"] < scores["n_cells"]
    assert read(paths.plan_check(*RUN))["suite"] == "plans/tem/S3/r0.3"


def test_an_unreachable_level_and_one_that_was_not_planned(made):
    """The most frequent word is a function word, so that of all words nobody can be kept from
    naming some."""
    params = load_params()
    params = params.model_copy(
        update={"grid": params.grid.model_copy(update={"recovery_band": "all"})}
    )
    planned = plan_budgets.calibrate("tem", "S3", RecoveryTarget(0.001), params)
    assert isinstance(planned, SkippedLevel) and 0.001 < planned.nearest < 0.2
    why = "out of reach: recovery 0.001 of all words: a reader who sees no output already names"
    assert planned.skipped.startswith(why)
    with pytest.raises(MissingArtifactError, match=r"stage plan_budgets"):
        epsilon_of("tem", "S3", RecoveryTarget(0.4))
