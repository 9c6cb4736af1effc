"""The epsilon of a target of recovery: the same for everybody, kept once found, and never a matter of the texts."""

import json
from pathlib import Path

import pytest

from lexveil.accounting.budgets import Policy
from lexveil.artifacts.model import Model
from lexveil.cli.main import main
from lexveil.recovery import stored_curve as recovery_store
from lexveil.recovery.calibration import Calibrated, Curve, Measure, recovered
from lexveil.recovery.stored_curve import StoredCurve

pytestmark = pytest.mark.usefixtures("own_figures")

KEEP = Policy("keep", "keep", "sample")


def test_what_was_computed_is_kept_and_a_broken_file_is_written_anew(project: Path) -> None:
    model = Model.load(project)
    asked: list[float] = []

    def curve(policy: Policy = KEEP) -> Curve:
        return StoredCurve(model, "tem", "S1", policy, told=asked.append)

    first = curve().at(1.05)  # between two points of the lattice
    assert len(asked) == 2 and curve().at(1.05) == first and len(asked) == 2
    (kept,) = (project / ".lexveil/recovery").glob("*.json")
    right = kept.read_text(encoding="utf-8")
    values = json.loads(right)
    values["points"]["0"]["recovered"]["rare"]["share"] = 7
    for broken in ("{", json.dumps(values), right.replace(values["of"], "of another model"), "[]"):
        n_asked = len(asked)
        kept.write_text(broken, encoding="utf-8")
        assert curve().at(1.05) == first and len(asked) == n_asked + 2
    asked[2:] = asked[:2]
    assert curve().at(1.05) == first and len(asked) == 4
    curve(Policy("perturb", "keep", "sample")).point(0)
    assert len(asked) == 5 and len(list((project / ".lexveil/recovery").glob("*.json"))) == 2


def test_what_was_asked_before_changes_no_epsilon(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search begins where public things say: near the same point, whatever points are kept."""
    begun: list[float] = []
    search = recovery_store.epsilon_for

    def noted(curve: Curve, target: float, band: str, measure: Measure | None, start: float) -> Calibrated:
        begun.append(start)
        return search(curve, target, band, measure, start)

    monkeypatch.setattr(recovery_store, "epsilon_for", noted)
    model, found = Model.load(project), []
    for before in ([], [0.1], [40.0]):
        for kept in (project / ".lexveil/recovery").glob("*.json"):
            kept.unlink()
        curve = StoredCurve(model, "tem", "S1", KEEP)
        for epsilon in before:
            curve.at(epsilon)
        found.append(curve.epsilon_for(0.3, "content"))
    assert len(set(begun)) == 1 and found[0] == found[1] == found[2]
    assert recovered(found[0].expected, "content") == pytest.approx(0.3, abs=0.02)  # between two points of the lattice


def test_the_epsilon_and_what_is_expected_there_is_a_table(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["calibrate", "--recovery", "0.3", "--mechanism", "tem", "--strategy", "S1"]
    assert main([*command, "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    named = run["achieved"]["bands"]
    assert set(named) == {"all", "frequent", "middle", "rare"}  # S1 keeps function words
    assert named["all"]["recovered"] == pytest.approx(0.3, abs=0.12)  # two samples of 900 words, 5 deviations


def test_a_target_out_of_reach_is_a_row_of_the_table(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--recovery", "0.001", "--mechanism", "tem", "--strategy", "S1"]) == 1
    assert "a reader who sees no output already names" in capsys.readouterr().out
