"""The tables of what was measured, next to clean texts and the majority baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from lexveil.errors import CheckFailed
from lexveil.evaluation.metrics.attack import ADAPTIVE
from lexveil.evaluation.metrics.membership import MEMBERSHIP
from lexveil.evaluation.metrics.perplexity import PERPLEXITY
from lexveil.evaluation.metrics.similarity import COSINE
from lexveil.evaluation.metrics.utility import UTILITY, UTILITY_MICRO
from lexveil.report.evaluation_values import MAJORITY, EvaluatedRun, require_same_back_ends, values
from lexveil.report.formatting import MeanSd
from lexveil.report.sections import evaluation
from lexveil.report.table import Table
from tests.report.records import dataset, evaluated

EVERYTHING = {"utility": 0.5, "adaptive": 0.25, "cosine": 0.75, "perplexity": 1234.5, "auc": 0.625}


def grid(*datasets: str, epsilons: Sequence[float] = (1.0, 10.0)) -> tuple[EvaluatedRun, list[EvaluatedRun]]:
    """The clean baseline, and runs of S1 that all have the same numbers."""
    clean = evaluated("none", "none", 0.0, {name: dataset(**(EVERYTHING | {"utility": 0.75})) for name in datasets})
    return clean, [
        evaluated("madlib", "S1", one, {name: dataset(**EVERYTHING) for name in datasets}) for one in epsilons
    ]


def shown(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.cells]


def tables_of(clean: EvaluatedRun, runs: Sequence[EvaluatedRun]) -> dict[str, evaluation.ScoreTable]:
    of = values(clean, runs, "mine")
    tables = evaluation.dataset_tables(3, "mine", clean, of, [run.key for run in runs])
    return {one.table.name: one for one in tables}


def test_a_run_that_lacks_a_measure_leaves_its_cell_empty() -> None:
    clean, runs = grid("mine")
    runs.append(evaluated("tem", "S1", 1.0, {"mine": dataset(**(EVERYTHING | {"cosine": 0.5}))}))
    table = tables_of(clean, runs)["cosine-3"].table
    assert shown(table)[1] == ["tem", "S1", "0.750 ± 0.250", "0.500 ± 0.250", "–"]


def test_standard_errors() -> None:
    clean, runs = grid("mine")
    of = values(clean, runs, "mine")
    errors = {score: of[score.name, runs[0].key].error for score in (UTILITY, ADAPTIVE, COSINE, MEMBERSHIP, PERPLEXITY)}
    # of a score: 0.0625 over trainings, and of 100 (25) documents √(p(1−p)/n)
    assert errors == {
        UTILITY: pytest.approx(math.hypot(0.0625, 0.05)), COSINE: pytest.approx(0.25 / 10), PERPLEXITY: None,
        ADAPTIVE: pytest.approx(math.hypot(0.0625, math.sqrt(0.25 * 0.75 / 25))), MEMBERSHIP: pytest.approx(0.05),
    }  # fmt: skip
    assert of[UTILITY_MICRO.name, MAJORITY] == MeanSd(0.5, None)


def test_means_over_data_sets() -> None:
    """Of what is known in each of them: cola has another cosine at ε 1, and nothing else has anything at ε 5."""
    names = ["cola", "mrpc", "rte", "sst2", "zeta"]
    clean, runs = grid(*names)
    runs[0] = evaluated(
        "madlib", "S1", 1.0, runs[0].record["datasets"] | {"cola": dataset(**(EVERYTHING | {"cosine": 0.25}))}
    )
    runs.append(
        evaluated("madlib", "S1", 5.0, {"cola": dataset(cosine=0.25)} | {name: dataset() for name in names[1:]})
    )
    values_of = {name: values(clean, runs, name) for name in names}
    tables = {one.table.name: one for one in evaluation.average_tables(clean, values_of, [run.key for run in runs])}
    assert list(tables) == ["mean-cosine", "mean-perplexity", "mean-loss"]
    assert shown(tables["mean-cosine"].table) == [["madlib", "S1", "0.750", "0.650", "0.750"]]
    assert tables["mean-cosine"].caption.startswith("Mean over cola, mrpc, rte, sst2 and zeta: cosine")
    assert shown(tables["mean-loss"].table)[0][2:] == ["0.250", "0.250"]


@pytest.mark.parametrize(
    ("scores", "unlearnt"),
    [
        # 100 documents and majority 0.375; a standard error of √(0.0625² + p(1−p)/100) at 0.5 is 0.080.
        ({"utility": 0.5, "adaptive": 0.8}, ["a, utility: 0.500 ± 0.157 (95%) on clean texts, majority 0.375"]),
        ({"utility": 0.6, "adaptive": 0.8}, []),
        ({}, []),
    ],
)
def test_what_clean_texts_do_not_show_to_be_learnable_is_named(scores: Any, unlearnt: list[str]) -> None:
    clean = evaluated("none", "none", 0.0, {"a": dataset(**scores)})
    assert evaluation.unlearnt({"a": values(clean, [], "a")}) == unlearnt


def test_runs_of_different_back_ends_are_never_compared() -> None:
    clean, runs = grid("mine")
    require_same_back_ends(clean, runs)
    other = evaluated("madlib", "S1", 99.0, {"mine": dataset(**EVERYTHING)}, encoder="minilm")
    with pytest.raises(CheckFailed, match=r"2 settings of encoder \(minilm, tfidf_mean\)"):
        require_same_back_ends(clean, [*runs, other])
