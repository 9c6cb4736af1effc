"""Estimates of stages are printed before the stages begin, from a minute on; a stage above the
limit is refused.
"""

import pytest

from lexveil.base.errors import RequestError
from lexveil.io.config import MachineParams
from lexveil.io.execution import effort
from lexveil.io.execution.effort import RATES, Rate, foresee
from tests.conftest import run_stage


def test_minutes_memory_and_the_way_out(capsys):
    """90,000 s of one core are 1,500 minutes; 0.5 GB of libraries and 19 bytes of each of 10^8 are
    2.4 GB."""
    work = {
        "tokens rewritten": 90_000 / RATES["tokens rewritten"].seconds,
        "vector dimensions trained": 1e8,
    }
    foresee("rewrite", work, "Bring less", MachineParams(stage_minutes=376), cores=4)
    assert capsys.readouterr().err == "rewrite: about 375 minutes, 2.4 GB of memory\n"
    with pytest.raises(
        RequestError, match=r"375 minutes.*machine\.stage_minutes allows 374\. Bring less, or raise"
    ):
        foresee("rewrite", work, "Bring less", MachineParams(stage_minutes=374), cores=4)
    foresee("rewrite", work, "Bring less", MachineParams(stage_minutes=None))
    assert "about 1,500 minutes" in capsys.readouterr().err
    foresee("rewrite", {"tokens rewritten": 1000}, "Bring less", MachineParams())
    assert not capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage",
    [
        ("count_ngrams",),
        ("train_embeddings", "word"),
        ("build_neighborhoods", "word"),
        ("build_word_orders",),
        ("privatize", "tem", "S1", "1.0"),
        ("evaluate", "none", "none", "0.0"),
    ],
)
def test_long_stages_ask_before_they_begin(listed, monkeypatch, stage):
    """With very slow rates, each stage refuses and names a parameter; existing outputs stay."""
    run_stage("privatize", "none", "none", "0.0")
    slow = {kind: Rate(1e9, rate.bytes) for kind, rate in effort.RATES.items()}
    monkeypatch.setattr(effort, "RATES", slow)
    with pytest.raises(RequestError, match=r"allows 480\. (Lower|Use|Name) .*, or raise the limit"):
        run_stage(*stage)
