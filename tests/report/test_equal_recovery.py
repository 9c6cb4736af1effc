"""Runs compared at equal recovery: between their rungs, on the straight line, and never beyond."""

import math

import pytest

from lexveil.evaluation.metrics.utility import UTILITY
from lexveil.recovery.bands import CONTENT
from lexveil.recovery.shares import Share
from lexveil.report.equal_recovery import Rung, at_level, made_at_levels, recovered, rungs
from lexveil.report.evaluation_values import CLEAN, MAJORITY
from lexveil.report.formatting import Interval, MeanSd
from lexveil.report.records import RunRecovery
from lexveil.report.sections import equal_recovery as section

NAME = UTILITY.name


def rung(epsilon: float, share: float, mean: float, error: float = 0.0, half: float = 0.0) -> Rung:
    found = Interval(share, share - half, share + half)
    return Rung(("tem", "S1", epsilon), found, {NAME: MeanSd(mean, None, error)})


def entry(n: int, right: int) -> dict:
    share = Share.of(right, n)
    found = {"share": share.share, "low": share.low, "high": share.high}
    return {"n": n, "by_word": found, "by_context": None}


def run(mechanism: str, strategy: str, epsilon: float, right: int) -> RunRecovery:
    """Function words come back whole, of 100 content words ``right``."""
    bands = {
        "all": entry(200, 100 + right), "function": entry(100, 100), "frequent": entry(60, right),
        "middle": entry(40, 0), "rare": entry(0, 0),
    }  # fmt: skip
    named = {"mechanism": mechanism, "strategy": strategy, "epsilon": epsilon}
    return RunRecovery(named | {"all": bands, "datasets": {"alpha": bands}})


def test_a_level_is_read_between_two_rungs() -> None:
    """Scores on the straight line over recovery, epsilon on that of its logarithm."""
    found = at_level([rung(1.0, 0.1, 0.5), rung(4.0, 0.3, 0.7), rung(9.0, 0.9, 0.9)], 0.2)
    assert found.epsilon == pytest.approx(2.0)
    assert found.scores[NAME].share == pytest.approx(0.6)
    assert at_level([rung(1.0, 0.1, 0.5), rung(4.0, 0.3, 0.7)], 0.3).scores[NAME].share == 0.7


@pytest.mark.parametrize("level", [0.05, 0.5])
def test_nothing_is_said_beyond_the_rungs(level: float) -> None:
    found = at_level([rung(1.0, 0.1, 0.5), rung(4.0, 0.3, 0.7)], level)
    assert found.epsilon is None
    assert not found.scores


def test_intervals_hold_for_errors_that_go_together() -> None:
    """Errors of the rungs add up, and that of the recoveries is what the slope makes of it."""
    same = at_level([rung(1.0, 0.1, 0.5, error=0.02), rung(4.0, 0.3, 0.5, error=0.04)], 0.2)
    assert same.scores[NAME].high - 0.5 == pytest.approx(1.96 * 0.03)
    steep = at_level([rung(1.0, 0.1, 0.4, 0.03, half=0.0196), rung(4.0, 0.3, 0.8, 0.03, half=0.0196)], 0.2)
    assert steep.scores[NAME].high - 0.6 == pytest.approx(1.96 * math.hypot(0.03, 2 * 0.01))


def test_content_words_leave_out_function_words() -> None:
    one = run("tem", "S1", 1.0, 30)
    found = recovered(one, "alpha", CONTENT)
    assert found is not None
    assert (found.share, found.low) == (pytest.approx(0.3), pytest.approx(Share.of(30, 100).low))
    assert recovered(one, "alpha", "all").share == pytest.approx(0.65)

    assert recovered(one, "beta", CONTENT) is None


def test_the_section_compares_all_mechanisms_at_each_level() -> None:
    """The highest utility of a level comes first; a mechanism without rungs around it has dashes, and comes last."""
    runs = [
        run("tem", "S1", 1.0, 2),
        run("tem", "S1", 5.0, 60),
        run("madlib", "S1", 1.0, 1),
        run("madlib", "S1", 9.0, 21),
    ]
    of = {(NAME, one.key): MeanSd(mean, 0.01, 0.02) for one, mean in zip(runs, (0.5, 0.6, 0.6, 0.8), strict=True)} | {
        (NAME, CLEAN): MeanSd(0.9, None, 0.01),
        (NAME, MAJORITY): MeanSd(0.4, None),
    }
    found = section.compared(rungs(of, runs, "alpha", section.NAMES), section.LEVELS)
    table = section.table(1, "alpha", of, found)
    assert [(row[0], row[1], row[-1] is None) for row in table.rows] == [
        ("madlib S1", 0.05, False), ("tem S1", 0.05, False), ("madlib S1", 0.2, False), ("tem S1", 0.2, False),
        ("tem S1", 0.5, False), ("madlib S1", 0.5, True),
        ("clean texts", None, True), ("majority, no text read", None, True),
    ]  # fmt: skip
    (panel,) = section.panels(1, "alpha", of, found, section.LEVELS)
    assert "madlib S1" in panel.svg
    assert len(panel.data.rows) == 5


def test_many_lines_are_split_by_strategy() -> None:
    runs = [run(f"m{number}", strategy, epsilon, right) for number in range(4) for strategy in ("S1", "S3")
            for epsilon, right in ((1.0, 2), (5.0, 60))]  # fmt: skip
    of = {(NAME, one.key): MeanSd(0.5, 0.01, 0.02) for one in runs}
    found = section.compared(rungs(of, runs, "alpha", section.NAMES), section.LEVELS)
    assert [one.title for one in section.panels(1, "alpha", of, found, section.LEVELS)] == [
        "alpha, S1: utility at equal recovery",
        "alpha, S3: utility at equal recovery",
    ]


def test_runs_at_levels_are_shown_beside_what_was_measured() -> None:
    """At each level the highest utility first; the level is that of params.yaml, what was measured stands beside it."""
    named = {"level": 0.2, "epsilon": 7.5}
    runs = [run("tem", "S1", 1.0, 2), run("tem", "S1", 9.0, 60)]
    runs += [RunRecovery(run(name, "S1", 0.0, n).record | named) for name, n in (("tem", 12), ("madlib", 25))]
    of = {(NAME, one.key): MeanSd(mean, 0.01, 0.02) for one, mean in zip(runs, (0.5, 0.6, 0.7, 0.8), strict=True)}
    assert list(rungs(of, runs, "alpha", section.NAMES)) == [("tem", "S1")]  # of runs at base epsilons alone
    made = made_at_levels(of, runs, "alpha", section.NAMES)
    assert [(one.at.mechanism, one.at.level, one.at.epsilon, one.by_word.share) for one in made] == [
        ("tem", 0.2, 7.5, 0.12), ("madlib", 0.2, 7.5, 0.25)
    ]  # fmt: skip
    assert made[0].at.scores[NAME].high - made[0].at.scores[NAME].share == pytest.approx(1.96 * 0.02)
    table = section.levels_table(1, "alpha", of, made, CONTENT)
    assert [cell.text for cell in table.cells[0]][:4] == ["tem S1", "20%", "12.0% (7.0–19.8)", "12.0% (7.0–19.8)"]
