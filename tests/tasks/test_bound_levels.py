"""The least recovery is found of the tokens that an embedding will have, before it is trained."""

import json

import pytest

from lexveil.base import paths
from lexveil.io.artifacts.embeddings import load_embedding
from lexveil.io.config import MachineParams, load_params
from lexveil.readers import counted_words
from tasks import bound_levels
from tests.conftest import run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("segmentation", ["word", "gst"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"plain_copy": True, "min_count": 2, "epochs": 1},
        {"base": "en", "base_tokens": 500, "dimensions": None, "epochs": 1},
    ],
    ids=["alone", "with plain copies", "with a base"],
)
def test_tokens_and_counts_are_those_that_training_finds(project, segmentation, settings):
    change_params(embeddings=settings)
    if settings:
        run_stage("train_embeddings", segmentation)
    trained = load_embedding(segmentation)
    foreseen = bound_levels.counted_tokens(segmentation, load_params(), MachineParams())
    expected = dict(zip(trained.tokens, trained.counts.tolist(), strict=True))
    assert dict(zip(foreseen.tokens, foreseen.counts.tolist(), strict=True)) == expected


def test_levels_below_are_said_by_strategy_and_others_are_not(project, monkeypatch, capsys):
    """Nothing that is trained is read."""
    monkeypatch.setattr(counted_words, "UNSEEN", 200)
    for name in ("embeddings", "bigrams", "neighborhoods"):
        (project / "artifacts" / name).rename(project / name)
    levels = ["r0.001", "r0.9", 5.0, "r0.002"]
    change_params(grid={"strategies": ["S1", "S3"], "epsilons": levels, "recovery_band": "all"})
    run_stage("bound_levels")
    least = json.loads(paths.LIMITS.read_text(encoding="utf-8"))
    assert least.keys() == {"S1", "S3"} and 0.002 < least["S1"]["all"] < 0.9
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("skipped: ")]
    starts = [line.partition(":")[2].split(" of ")[0].strip() for line in said]
    assert starts == ["S1 r0.001, r0.002", "S3 r0.001, r0.002"]


def test_without_levels_nothing_is_computed(project):
    change_params(grid={"epsilons": [5.0]})
    (project / "artifacts/segmented").rename(project / "segmented")
    run_stage("bound_levels")
    assert json.loads(paths.LIMITS.read_text(encoding="utf-8")) == {}
