"""Runs compared at equal recovery: between their rungs, on the straight line, and never beyond."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from lexveil.config import CLEAN
from lexveil.evaluation.metrics.utility import UTILITY
from lexveil.levels import Level
from lexveil.recovery.bands import CONTENT
from lexveil.recovery.shares import Share
from lexveil.report.equal_recovery import Rung, at_level, made_at_levels, rungs
from lexveil.report.evaluation_values import MAJORITY, Values
from lexveil.report.formatting import Interval, MeanSd
from lexveil.report.records import RunRecovery
from lexveil.report.sections import equal_recovery as section
from tests.report.records import named, recovered

NAME = UTILITY.name


def rung(epsilon: float, share: float, mean: float, error: float = 0.0, half: float = 0.0) -> Rung:
    return Rung(("tem", "S1", epsilon), Interval(share, share - half, share + half), {NAME: MeanSd(mean, None, error)})


def run(mechanism: str, epsilon: float, n_right: int, strategy: str = "S1") -> RunRecovery:
    """Function words come back whole, of 100 content words ``n_right``."""
    n_of = {
        "all": (200, 100 + n_right),
        "function": (100, 100),
        "frequent": (60, n_right),
        "middle": (40, 0),
        "rare": (0, 0),
    }
    bands = {band: {"n": n, "by_word": recovered(right, n), "by_context": None} for band, (n, right) in n_of.items()}
    return RunRecovery(named(mechanism, strategy, epsilon) | {"all": bands, "datasets": {"alpha": bands}})


def utilities(runs: Sequence[RunRecovery], *means: float) -> Values:
    return {(NAME, one.key): MeanSd(mean, 0.01, 0.02) for one, mean in zip(runs, means, strict=True)}


def test_a_level_is_read_between_two_rungs_and_nothing_beyond_them() -> None:
    """Scores on the straight line over recovery, epsilon on that of its logarithm."""
    found = at_level([rung(1.0, 0.1, 0.5), rung(4.0, 0.3, 0.7), rung(9.0, 0.9, 0.9)], 0.2)
    assert found.epsilon == pytest.approx(2.0) and found.scores[NAME].share == pytest.approx(0.6)
    two = [rung(1.0, 0.1, 0.5), rung(4.0, 0.3, 0.7)]
    assert at_level(two, 0.3).scores[NAME].share == 0.7
    assert all(at_level(two, level).epsilon is None and not at_level(two, level).scores for level in (0.05, 0.5))


def test_intervals_hold_for_errors_that_go_together() -> None:
    """Errors of the rungs add up, and that of the recoveries is what the slope makes of it."""
    same = at_level([rung(1.0, 0.1, 0.5, error=0.02), rung(4.0, 0.3, 0.5, error=0.04)], 0.2)
    assert same.scores[NAME].high - 0.5 == pytest.approx(1.96 * 0.03)
    steep = at_level([rung(1.0, 0.1, 0.4, 0.03, half=0.0196), rung(4.0, 0.3, 0.8, 0.03, half=0.0196)], 0.2)
    assert steep.scores[NAME].high - 0.6 == pytest.approx(1.96 * math.hypot(0.03, 2 * 0.01))


def test_content_words_leave_out_function_words() -> None:
    found = run("tem", 1.0, 30).share(CONTENT, dataset="alpha")
    assert found is not None and found.share == pytest.approx(0.3) and found.low == pytest.approx(Share.of(30, 100).low)
    assert run("tem", 1.0, 30).share("all", dataset="alpha").share == pytest.approx(0.65)  # type: ignore[union-attr]
    assert run("tem", 1.0, 30).share(CONTENT, dataset="beta") is None


def test_all_mechanisms_are_compared_at_each_level() -> None:
    """The highest utility of a level comes first; a mechanism without rungs around it has dashes, and comes last."""
    runs = [run("tem", 1.0, 2), run("tem", 5.0, 60), run("madlib", 1.0, 1), run("madlib", 9.0, 21)]
    of = {**utilities(runs, 0.5, 0.6, 0.6, 0.8), (NAME, CLEAN): MeanSd(0.9, None), (NAME, MAJORITY): MeanSd(0.4, None)}
    own = rungs(of, runs, "alpha", section.NAMES).values()
    found = section.ordered([at_level(some, level) for level in section.LEVELS for some in own])
    table = section.table("t", of, found, CONTENT)
    assert [(row["which"], row.get("level"), row.get("epsilon") is None) for row in table.rows] == [
        ("madlib S1", 0.05, False), ("tem S1", 0.05, False), ("madlib S1", 0.2, False), ("tem S1", 0.2, False),
        ("tem S1", 0.5, False), ("madlib S1", 0.5, True), ("clean texts", None, True), ("majority", None, True),
    ]  # fmt: skip
    (chart,) = section.charts("c", "alpha", of, found, "x")
    assert [(line.label, len(line.points)) for line in chart.series] == [("madlib S1", 2), ("tem S1", 3)]


def test_many_lines_are_split_by_strategy() -> None:
    runs = [run(f"m{number}", epsilon, right, strategy) for number in range(4) for strategy in ("S1", "S3")
            for epsilon, right in ((1.0, 2), (5.0, 60))]  # fmt: skip
    of = utilities(runs, *[0.5] * len(runs))
    found = [at_level(own, 0.2) for own in rungs(of, runs, "alpha", section.NAMES).values()]
    titles = [chart.title for chart in section.charts("c", "alpha", of, found, "x")]
    assert titles == [f"alpha, {strategy}: utility at equal recovery" for strategy in ("S1", "S3")]


def test_runs_at_levels_are_shown_beside_what_was_measured() -> None:
    runs = [
        run("tem", 1.0, 2),
        run("tem", 9.0, 60),
        run("tem", Level(0.2, 7.5), 12),
        run("madlib", Level(0.2, 7.5), 25),
    ]
    of = utilities(runs, 0.5, 0.6, 0.7, 0.8)
    assert list(rungs(of, runs, "alpha", section.NAMES)) == [("tem", "S1")]  # of runs at base epsilons alone
    made = made_at_levels(of, runs, "alpha", section.NAMES)
    assert made[0].scores[NAME].high - made[0].scores[NAME].share == pytest.approx(1.96 * 0.02)
    table = section.table("t", of, section.ordered(made), CONTENT)
    assert [[cell.text for cell in row][:4] for row in table.cells[:2]] == [
        ["madlib S1", "20%", "25.0% (17.5–34.3)", "25.0% (17.5–34.3)"],
        ["tem S1", "20%", "12.0% (7.0–19.8)", "12.0% (7.0–19.8)"],
    ]
