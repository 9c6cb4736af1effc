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


def test_one_table_for_each_measure_read_from_its_own_entry() -> None:
    tables = tables_of(*grid("mine"))
    found = {name: (one.caption, shown(one.table)[-1][-3:], one.note) for name, one in tables.items()}
    expected = {  # caption, majority or clean texts and the two epsilons, a part of the note
        "utility-3": ("utility, micro F1 (accuracy) on rewritten texts (classifier: linear)",
                      ["0.500", "0.625 ± 0.062", "0.625 ± 0.062"], "Label: 2 classes, learnt from 270 of 300"),
        "on-clean-3": ("utility, micro F1 (accuracy) on clean texts (classifier: linear)",
                       ["0.500", "0.625 ± 0.062", "0.625 ± 0.062"], "TEM Figure 1a"),
        "attack-3": ("task and attackers, macro F1 (classifier: linear)",  # 0.5/0.75 − 0.25/0.25
                     ["–", "-0.333", "-0.333"], "Attribute: 10 classes"),
        "static-3": ("static attacker, accuracy (classifier: linear)",
                     ["0.250", "0.250 ± 0.062", "0.250 ± 0.062"], "± 0.20 (95%)"),
        "cosine-3": ("cosine of original and rewritten text (encoder: tfidf_mean)",
                     ["0.750 ± 0.250"] * 3, "100 of 110 texts could be compared"),
        "perplexity-3": ("perplexity of the texts (language model: kneser_ney)",
                         ["1,234.5"] * 3, "21 of the 4,321 tokens"),
        "membership-3": ("membership inference, AUC (classifier: linear)",
                         ["0.625 ± 0.030"] * 3, "50 texts that were learnt from and 60 that were not"),
    }  # fmt: skip
    assert found.keys() == expected.keys()
    for name, (caption, cells, note) in expected.items():
        assert (found[name][0], found[name][1]) == (f"mine: {caption}", cells) and note in found[name][2], name
    rows = shown(tables["attack-3"].table)
    assert [row[2] for row in rows] == ["utility F1", "static F1", "adaptive F1", "relative gain"]


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


def test_glance_names_the_runs_that_stand_out() -> None:
    clean = evaluated("none", "none", 0.0, {"a": dataset(utility=0.85, adaptive=0.8), "b": dataset(cosine=1.0)})
    scores = {("S1", 1.0): (0.5, 0.2), ("S1", 10.0): (0.8, 0.7), ("S2", 1.0): (0.6, 0.1), ("S2", 10.0): (0.7, 0.3)}
    runs = [
        evaluated("madlib", *key, {"a": dataset(utility=utility, adaptive=attack), "b": dataset(cosine=0.5)})
        for key, (utility, attack) in scores.items()
    ]
    values_of = {name: values(clean, runs, name) for name in ("a", "b")}
    table = evaluation.glance_table(values_of, [run.key for run in runs], [])
    assert shown(table) == [
        ["a", "clean texts", "–", "–", "–", "0.850 ± 0.062", "0.800 ± 0.062", "–"],
        ["a", "majority, no text read", "–", "–", "–", "0.375", "0.125", "–"],
        ["a", "highest utility", "madlib", "S1", "10", "0.800 ± 0.062", "0.700 ± 0.062", "0.066"],
        ["a", "weakest adaptive attack", "madlib", "S2", "1", "0.600 ± 0.062", "0.100 ± 0.062", "0.581"],
        ["a", "highest relative gain", "madlib", "S2", "1", "0.600 ± 0.062", "0.100 ± 0.062", "0.581"],
    ]
    assert not evaluation.glance_table({"b": values_of["b"]}, [run.key for run in runs], []).rows


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
