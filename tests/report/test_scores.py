"""Scores next to clean texts and the majority baseline, and runs compared where equally much is
recovered."""

import math

import pytest

from lexveil.base.errors import CheckFailedError
from lexveil.base.levels import BaseEpsilon, RecoveryTarget
from lexveil.io.config import CLEAN
from lexveil.lab.evaluation.metrics.attack import ADAPTIVE
from lexveil.lab.evaluation.metrics.membership import MEMBERSHIP
from lexveil.lab.evaluation.metrics.perplexity import PERPLEXITY
from lexveil.lab.evaluation.metrics.similarity import COSINE
from lexveil.lab.evaluation.metrics.utility import UTILITY, UTILITY_MICRO
from lexveil.lab.report.equal_recovery import Rung, at_level, made_at_levels, rungs
from lexveil.lab.report.evaluation_values import (
    MAJORITY,
    require_same_back_ends,
    values,
)
from lexveil.lab.report.formatting import Interval, MeanSd
from lexveil.lab.report.records import RunRecovery
from lexveil.lab.report.sections import equal_recovery, evaluation
from lexveil.readers.bands import CONTENT
from tests.report.records import dataset, evaluated, named, recovered

EVERYTHING = {"utility": 0.5, "adaptive": 0.25, "cosine": 0.75, "perplexity": 1234.5, "auc": 0.625}
LOW = ("madlib", "S1", BaseEpsilon(1.0))
HIGH = ("madlib", "S1", BaseEpsilon(10.0))
NAME = UTILITY.name


def measured(key, *names, **changed):
    """A run of which everything is measured on some data sets."""
    return evaluated(*key, {name: dataset(**(EVERYTHING | changed)) for name in names})


def shown(table):
    return [[cell.text for cell in row] for row in table.cells]


def test_standard_errors():
    of = values(measured(CLEAN, "a"), [measured(LOW, "a")], "a")
    errors = {
        score: of[score.name, LOW].error
        for score in (UTILITY, ADAPTIVE, COSINE, MEMBERSHIP, PERPLEXITY)
    }
    # of a score: 0.0625 over trainings, and of 100 (25) documents √(p(1−p)/n)
    assert errors == {
        UTILITY: pytest.approx(math.hypot(0.0625, 0.05)),
        COSINE: pytest.approx(0.25 / 10),
        PERPLEXITY: None,
        ADAPTIVE: pytest.approx(math.hypot(0.0625, math.sqrt(0.25 * 0.75 / 25))),
        MEMBERSHIP: pytest.approx(0.05),
    }
    assert of[UTILITY_MICRO.name, MAJORITY] == MeanSd(0.5, None)


def test_means_are_of_what_is_known_in_each_data_set():
    """Set a has another cosine at ε 1; at ε 10 nothing but its cosine is known, so that tem has the
    only mean there."""
    names = ["a", "b", "c", "d", "e"]
    runs = [
        measured(LOW, *names),
        evaluated(*HIGH, {"a": dataset(cosine=0.25)}),
        measured(("tem", "S1", BaseEpsilon(10.0)), *names),
    ]
    runs[0].record["datasets"]["a"] = dataset(**(EVERYTHING | {"cosine": 0.25}))
    clean = measured(CLEAN, *names, utility=0.75)
    values_of = {name: values(clean, runs, name) for name in names}
    tables = {
        one.table.name: one
        for one in evaluation.average_tables(clean, values_of, [run.key for run in runs])
    }
    assert list(tables) == ["mean-cosine", "mean-perplexity", "mean-loss"]
    assert tables["mean-cosine"].caption.startswith("Mean over a, b, c, d and e: cosine")
    assert [row[2:] for row in shown(tables["mean-cosine"].table)] == [
        ["0.750", "0.650", "–"],
        ["0.750", "–", "0.750"],
    ]
    assert [row[2:] for row in shown(tables["mean-loss"].table)] == [["0.250", "–"], ["–", "0.250"]]


@pytest.mark.parametrize(
    ("scores", "unlearnt"),
    [
        # 100 documents and majority 0.375; a standard error of √(0.0625² + p(1−p)/100) at 0.5 is
        # 0.080.
        (
            {"utility": 0.5, "adaptive": 0.8},
            ["a, utility: 0.500 ± 0.157 (95%) on clean texts, majority 0.375"],
        ),
        ({"utility": 0.6, "adaptive": 0.8}, []),
        ({}, []),
    ],
)
def test_what_clean_texts_do_not_show_to_be_learnable_is_named(scores, unlearnt):
    assert (
        evaluation.unlearnt({"a": values(evaluated(*CLEAN, {"a": dataset(**scores)}), [], "a")})
        == unlearnt
    )


def test_runs_of_different_back_ends_are_never_compared():
    require_same_back_ends(measured(CLEAN, "a"), [measured(LOW, "a")])
    with pytest.raises(CheckFailedError, match=r"2 settings of encoder \(minilm, tfidf_mean\)"):
        require_same_back_ends(
            measured(CLEAN, "a"), [evaluated(*LOW, {"a": dataset()}, encoder="minilm")]
        )


def rung(epsilon, share, mean, error=0.0, half=0.0):
    return Rung(
        ("tem", "S1", BaseEpsilon(epsilon)),
        Interval(share, share - half, share + half),
        {NAME: MeanSd(mean, None, error)},
    )


def run(mechanism, noise, right, strategy="S1"):
    """Function words come back whole, of 100 content words ``right``."""
    known = {
        "all": (200, 100 + right),
        "function": (100, 100),
        "frequent": (60, right),
        "middle": (40, 0),
    }
    bands = {
        band: {"n": n, "by_word": recovered(n_right, n)} for band, (n, n_right) in known.items()
    }
    return RunRecovery(
        named(mechanism, strategy, noise) | {"all": bands, "datasets": {"alpha": bands}}
    )


def utilities(runs, *means):
    return {
        (NAME, one.key): MeanSd(mean, 0.01, 0.02) for one, mean in zip(runs, means, strict=True)
    }


def test_a_level_is_read_between_two_rungs_and_nothing_beyond_them():
    """Scores on the straight line over recovery, epsilon on that of its logarithm; errors of the
    rungs add up."""
    found = at_level([rung(1.0, 0.1, 0.5), rung(4.0, 0.3, 0.7), rung(9.0, 0.9, 0.9)], 0.2)
    assert found.epsilon == pytest.approx(2.0) and found.scores[NAME].share == pytest.approx(0.6)
    two = [rung(1.0, 0.1, 0.5), rung(4.0, 0.3, 0.7)]
    assert at_level(two, 0.3).scores[NAME].share == 0.7
    steep = at_level(
        [rung(1.0, 0.1, 0.4, 0.03, half=0.0196), rung(4.0, 0.3, 0.8, 0.03, half=0.0196)], 0.2
    )
    assert steep.scores[NAME].high - 0.6 == pytest.approx(1.96 * math.hypot(0.03, 2 * 0.01))
    assert all(
        at_level(two, level).epsilon is None and not at_level(two, level).scores
        for level in (0.05, 0.5)
    )


def test_all_mechanisms_are_compared_at_each_level():
    """The highest utility of a level comes first; a mechanism without rungs around it has dashes,
    and comes last.

    Runs at levels are no rungs, and stand in a table of their own with what was measured.
    """
    runs = [
        run("tem", BaseEpsilon(1.0), 2),
        run("tem", BaseEpsilon(5.0), 60),
        run("madlib", BaseEpsilon(1.0), 1),
        run("madlib", BaseEpsilon(9.0), 21),
    ]
    runs += [run("tem", RecoveryTarget(0.2, 7.5), 12)]
    of = utilities(runs, 0.5, 0.6, 0.6, 0.8, 0.7)
    own = rungs(of, runs, "alpha", equal_recovery.NAMES).values()
    found = equal_recovery.ordered(
        [at_level(some, level) for level in equal_recovery.LEVELS for some in own]
    )
    table = equal_recovery.table("t", of, found, CONTENT)
    assert [(row["which"], row.get("level"), row.get("epsilon") is None) for row in table.rows] == [
        ("madlib S1", 0.05, False),
        ("tem S1", 0.05, False),
        ("madlib S1", 0.2, False),
        ("tem S1", 0.2, False),
        ("tem S1", 0.5, False),
        ("madlib S1", 0.5, True),
        ("clean texts", None, True),
        ("majority", None, True),
    ]
    (chart,) = equal_recovery.charts("c", "alpha", of, found, "x")
    assert [(line.label, len(line.points)) for line in chart.series] == [
        ("madlib S1", 2),
        ("tem S1", 3),
    ]
    (made,) = made_at_levels(of, runs, "alpha", equal_recovery.NAMES)
    row = shown(equal_recovery.table("t", of, [made], CONTENT))[0]
    assert row == ["tem S1", "20%", *["12.0% (7.0–19.8)"] * 2, "0.70 (0.66–0.74)", "7.5"]
