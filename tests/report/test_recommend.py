"""`lexveil recommend`: which runs it names, what it says of their uncertainty, and what it refuses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from lexveil import paths
from lexveil.cli.main import main
from lexveil.errors import MissingArtifact, RequestError
from lexveil.levels import Level
from lexveil.recovery.shares import Share
from lexveil.report.recommend import as_text, commands, recommend
from lexveil.runtime.tables import write_json

N_TEST = 10_000  # documents: an interval of ± 0.01 at most, so that what decides is the spread of the trainings


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ):
        yield tmp_path


def scores(mean: float, spread: float) -> dict[str, Any]:
    return {"macro_f1": {"mean": mean, "sd": spread, "each": [mean - spread, mean, mean + spread]}}


def entry(settings: dict[str, float], spread: float, n_test: int) -> dict[str, Any]:
    return {
        "left_out": None,
        "n_test": n_test,
        "majority": {"macro_f1": 0.1},
        "scores": {name: scores(mean, spread) for name, mean in settings.items()},
    }


def write(
    run: tuple[str, str, float],
    utility: float | None,
    attack: float | None,
    *,
    spread: float = 0.0,
    n_test: int = N_TEST,
    dataset: str = "reviews",
) -> None:
    mechanism, strategy, epsilon = run
    file = paths.evaluation(*run)
    record = json.loads(file.read_text()) if file.exists() else {"datasets": {}}
    absent = {"left_out": "no document has a value"}
    record |= {"mechanism": mechanism, "strategy": strategy, "epsilon": epsilon}
    record["datasets"][dataset] = {
        "utility": absent if utility is None else entry({"private": utility, "clean": 1 - utility}, spread, n_test),
        "attack": absent if attack is None else entry({"static": 0.99, "adaptive": attack}, spread, n_test),
    }
    write_json(record, file)


CLEAN, LOW, MIDDLE, HIGH, WORSE = (
    ("none", "none", 0.0), ("madlib", "S1", 1.0), ("madlib", "S1", 10.0), ("tem", "S3", 50.0), ("tem", "S1", 10.0)
)  # fmt: skip


@pytest.fixture
def grid(root: Path) -> None:
    write(CLEAN, 0.95, 0.9)
    for run, utility, attack in ((LOW, 0.5, 0.2), (MIDDLE, 0.7, 0.5), (HIGH, 0.9, 0.8), (WORSE, 0.65, 0.6)):
        write(run, utility, attack)


@pytest.mark.parametrize(
    ("limits", "fitting"),
    [
        ({"min_utility": 0.6}, ["madlib S1 ε 10", "tem S3 ε 50"]),  # by attack; tem S1 keeps it too, and is beaten
        ({"max_attack": 0.6}, ["madlib S1 ε 10", "madlib S1 ε 1"]),  # by utility
        ({"min_utility": 0.6, "max_attack": 0.6}, ["madlib S1 ε 10"]),
        ({"min_utility": 0.0, "max_attack": 1.0}, ["madlib S1 ε 1", "madlib S1 ε 10", "tem S3 ε 50"]),
    ],
)
def test_runs_on_the_frontier_within_limits(grid: None, limits: dict[str, float], fitting: list[str]) -> None:
    found = recommend(**limits)["datasets"]["reviews"]
    assert found["fitting"] == found["sure"] == fitting and found["recommended"] == fitting[0]
    assert {row["run"]: row["standing"] for row in found["runs"]}["tem S1 ε 10"] == "dominated"
    assert found["nearest"] is None and found["clean"]["utility"]["mean"] == pytest.approx(0.95)
    assert len(found["runs"]) == 4  # the clean baseline is no run to recommend


def test_utility_on_clean_texts_is_another_frontier(grid: None) -> None:
    """There utility is turned round: the first run is best in both."""
    found = recommend(min_utility=0.4, setting="clean")["datasets"]["reviews"]
    assert found["fitting"] == ["madlib S1 ε 1"]
    assert recommend(min_utility=0.6, setting="clean")["datasets"]["reviews"]["recommended"] is None


def test_uncertainty_by_hand(root: Path) -> None:
    """Trainings 0.78, 0.8, 0.82: sd 0.02. 48 documents: (38.4 + 2)/52 = 0.77692, 1.96·√(0.77692·0.22308/52) = 0.11316.

    Standard error √(0.02²/3 + 0.05773²) = 0.05888, hardly of trainings, so the normal 1.645: 0.8 may be 0.703.
    """
    write(MIDDLE, 0.8, 0.3, spread=0.02, n_test=48)
    found = recommend(min_utility=0.7)["datasets"]["reviews"]
    (row,) = found["runs"]
    assert row["utility"] == {
        "mean": pytest.approx(0.8), "sd": pytest.approx(0.02), "half_width": pytest.approx(0.11316, abs=1e-5)
    }  # fmt: skip
    assert found["sure"] == ["madlib S1 ε 10"] and found["clean"] is None
    found = recommend(min_utility=0.71)["datasets"]["reviews"]
    assert found["fitting"] == ["madlib S1 ε 10"] and found["sure"] == []
    assert any("by its mean alone" in line for line in as_text(recommend(min_utility=0.71)))
    assert not any("by its mean" in line for line in as_text(recommend(min_utility=0.7)))


@pytest.mark.parametrize(("n_test", "alike"), [(20, True), (N_TEST, False)])
def test_runs_that_cannot_be_told_apart_are_named(root: Path, n_test: int, alike: bool) -> None:
    """0.70 against 0.75, 0.40 against 0.45: 20 documents do not tell, 10,000 do."""
    write(LOW, 0.70, 0.40, n_test=n_test)
    write(MIDDLE, 0.75, 0.45, n_test=n_test)
    result = recommend(min_utility=0.5)
    expected = {
        "madlib S1 ε 1": ["madlib S1 ε 10"] if alike else [],
        "madlib S1 ε 10": ["madlib S1 ε 1"] if alike else [],
    }
    assert result["datasets"]["reviews"]["alike"] == expected
    said = "madlib S1 ε 1 cannot be told apart from madlib S1 ε 10"
    assert any(said in line for line in as_text(result)) == alike
    assert any("differs from every other run" in line for line in as_text(result)) != alike


def test_nothing_keeps_the_limits(grid: None, capsys: pytest.CaptureFixture[str]) -> None:
    """0.7 at 0.5 misses 0.8 by 0.1 and 0.4 by 0.1; 0.9 at 0.8 misses 0.4; 0.5 at 0.2 misses 0.3."""
    assert main(["recommend", "--min-utility", "0.8", "--max-attack", "0.4"]) == 1
    out = capsys.readouterr().out
    assert "no run keeps utility ≥ 0.8 and attack ≤ 0.4; madlib S1 ε 10 comes nearest and misses by 0.200" in out
    assert "tem S3 ε 50 has the highest utility and madlib S1 ε 1 the lowest attack" in out
    assert "recommended" not in out


def test_the_command_prints_the_same_as_json(grid: None, capsys: pytest.CaptureFixture[str]) -> None:
    write(LOW, 0.6, None, dataset="news")
    assert main(["recommend", "--min-utility", "0.6"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "reviews: utility ≥ 0.6"
    assert lines[1].split() == "run utility attack keeps the limits".split()
    assert lines[2].split() == "madlib S1 ε 10 0.700 ± 0.000 [0.01] 0.500 ± 0.000 [0.01] surely".split()
    assert "  recommended: madlib S1 ε 10" in lines
    assert "not weighed: news (no attack)" in lines
    assert main(["recommend", "--min-utility", "0.6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == recommend(min_utility=0.6)
    assert main(["recommend", "--min-utility", "0.6", "--dataset", "reviews"]) == 0
    assert "not weighed" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--min-utility, --max-attack or both"),
        (["--min-utility", "1.5"], "Must be <= 1"),
        (["--max-attack", "nan"], "Must be <= 1"),
        (["--max-attack", "low"], "unable to convert"),
        (["--min-utility", "0.5", "--dataset", "absent"], "there are news, reviews"),
        (["--min-utility", "0.5", "--dataset", "news"], "news (no attack)"),
        (["--min-utility", "0.5", "--setting", "static"], "--setting"),
    ],
)
def test_wrong_requests(grid: None, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    write(LOW, 0.6, None, dataset="news")
    try:
        code = main(["recommend", *arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    shown = capsys.readouterr()
    assert code == 2 and shown.out == "" and says in shown.err and shown.err.count("\n") == 1


def test_no_scores(root: Path) -> None:
    with pytest.raises(MissingArtifact, match="lexveil run"):
        recommend(min_utility=0.5)
    write(CLEAN, 0.9, 0.9)  # the baseline alone is nothing to choose from
    with pytest.raises(RequestError, match="no data set has both"):
        recommend(min_utility=0.5)


def test_what_is_like_clean_texts_is_never_named_private(grid: None, capsys: pytest.CaptureFixture[str]) -> None:
    """0.89 against 0.9: 10,000 documents do not tell them apart, and 0.8 they do. It would be the best in utility."""
    write(("tem", "S4", 50.0), 0.96, 0.897)
    found = recommend(min_utility=0.8)["datasets"]["reviews"]
    assert found["like_clean"] == ["tem S4 ε 50"] and found["recommended"] == "tem S3 ε 50"
    assert main(["recommend", "--min-utility", "0.95"]) == 1
    out = capsys.readouterr().out
    assert "not private: the attack cannot be told from that on clean texts: tem S4 ε 50" in out
    assert "no run keeps utility ≥ 0.95; tem S3 ε 50 comes nearest" in out


def test_if_every_run_is_like_clean_texts_none_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(CLEAN, 0.9, 0.5, n_test=20)
    write(LOW, 0.8, 0.45, n_test=20)
    assert main(["recommend", "--min-utility", "0.5"]) == 1
    assert "no run keeps utility ≥ 0.5; madlib S1 ε 1 has the highest utility" in capsys.readouterr().out


@pytest.mark.parametrize(("known", "same"), [(True, False), (False, True)])
def test_pairs_of_documents_tell_runs_apart(root: Path, known: bool, same: bool) -> None:
    """70 and 75 of 100 right, 5 documents apart; without knowing which, chance explains it."""
    for run, n_right in ((LOW, 70), (MIDDLE, 75)):
        write(run, n_right / 100, 0.3, n_test=100)
        record = json.loads(paths.evaluation(*run).read_text())
        for measured in record["datasets"]["reviews"].values() if known else ():
            measured["right"] = {
                name: " ".join("3" if i < n_right else "0" for i in range(100)) for name in measured["scores"]
            }
        write_json(record, paths.evaluation(*run))
    alike = recommend(min_utility=0.5)["datasets"]["reviews"]["alike"]
    assert bool(alike["madlib S1 ε 10"]) == same


def recovered(run: tuple[str, str, float], by_word: float, by_context: float | None) -> None:
    shares = [
        None if share is None else {"share": share, "low": share - 0.01, "high": share + 0.01}
        for share in (by_word, by_context)
    ]
    band = {"n": 100, "by_word": shares[0], "by_context": shares[1], "unchanged": None, "without_output": None}
    file = paths.recovery(*run)
    write_json({"datasets": {"reviews": {"rare": band, "listed": {**band, "n": 0}}}}, file)


def test_limits_of_recovery(grid: None, capsys: pytest.CaptureFixture[str]) -> None:
    """The upper end of the better reader's interval counts; what was not measured does not keep a limit."""
    with pytest.raises(RequestError, match="stage evaluate"):
        recommend(max_attack=1.0, max_recovery=0.2, band="rare")
    recovered(LOW, 0.05, 0.1)
    recovered(MIDDLE, 0.1, 0.195)
    recovered(WORSE, 0.15, None)
    found = recommend(max_attack=1.0, max_recovery=0.2, band="rare")["datasets"]["reviews"]
    assert found["readable"] == ["madlib S1 ε 10", "tem S3 ε 50"] and found["recommended"] == "tem S1 ε 10"
    assert main(["recommend", "--max-attack", "1", "--max-recovery", "0.2", "--band", "rare"]) == 0
    out = capsys.readouterr().out
    assert "attack ≤ 1 and recovery of rare words ≤ 0.2" in out
    assert "more is recovered than the limit allows, or it was not measured: madlib S1 ε 10 and tem S3 ε 50" in out
    assert "lexveil privatize FILE -o OUT --mechanism tem --strategy S1 --epsilon 10" in out
    with pytest.raises(RequestError, match="no run on reviews"):
        recommend(max_attack=1.0, max_recovery=0.2, band="listed")


def test_runs_at_levels_and_content_words(grid: None) -> None:
    """A run at a level is called by it; content words are all but function words, of whatever many bands."""
    at = Level(0.2, 7.5)
    write(("tem", "S3", at), 0.8, 0.4)
    record = json.loads(paths.evaluation("tem", "S3", at).read_text())
    write_json(record | {"epsilon": 7.5, "level": 0.2}, paths.evaluation("tem", "S3", at))
    shares = {"frequent": (60, 0.5), "middle": (30, 0.1), "rare": (10, 0.0), "function": (100, 1.0)}
    bands = {
        band: {"n": n, "by_word": {"share": share, "low": share, "high": share}, "by_context": None}
        for band, (n, share) in shares.items()
    }
    named = {"mechanism": "tem", "strategy": "S3", "epsilon": 7.5, "level": 0.2}
    write_json(named | {"all": bands, "datasets": {"reviews": bands}}, paths.recovery("tem", "S3", at))
    found = recommend(max_attack=1.0, max_recovery=0.45, band="content")["datasets"]["reviews"]
    assert found["recommended"] == "tem S3 20%, ε 7.5"
    row = next(one for one in found["runs"] if one["run"] == found["recommended"])
    assert row["recovered"] == pytest.approx(Share.of(33, 100).high)
    *_, release = commands(row)
    assert release.endswith("--mechanism tem --strategy S3 --epsilon 7.5 --max-token-epsilon 7.5")
