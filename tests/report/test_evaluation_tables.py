"""The tables of what was measured, beside clean texts and the majority."""

import math

import pytest
from evaluation_records import dataset, evaluated

from lexveil.errors import CheckFailed
from lexveil.evaluation.metrics.attack import ADAPTIVE
from lexveil.evaluation.metrics.membership import MEMBERSHIP
from lexveil.evaluation.metrics.perplexity import PERPLEXITY
from lexveil.evaluation.metrics.similarity import COSINE
from lexveil.evaluation.metrics.utility import UTILITY, UTILITY_MICRO
from lexveil.report import evaluation_tables, evaluation_values
from lexveil.report.evaluation_values import CLEAN, MAJORITY
from lexveil.report.formatting import MeanSd
from lexveil.report.sections import evaluation, glance

EVERYTHING = {"utility": 0.5, "adaptive": 0.25, "cosine": 0.75, "perplexity": 1234.5, "auc": 0.625}


def grid(datasets, mechanisms=("madlib",), strategies=("S1", "S2"), epsilons=(1.0, 10.0), **measures):
    """The clean baseline, and runs that all have the same numbers."""
    entries = {name: dataset(**(EVERYTHING | measures)) for name in datasets}
    clean = evaluated("none", "none", 0.0, {name: dataset(**(EVERYTHING | {"utility": 0.75})) for name in datasets})
    runs = [evaluated(m, s, e, entries) for m in mechanisms for s in strategies for e in epsilons]
    return clean, runs


def tables_of(clean, runs, name="sst2", gains=None):
    of = evaluation_values.values(clean, runs, name, gains or {})
    tables = evaluation_tables.dataset_tables(3, name, clean, of, [one.key for one in runs])
    return {table.name: table for table in tables}


def shown(table):
    return [[cell.text for cell in row] for row in table.cells]


def test_one_table_for_each_measure():
    tables = tables_of(*grid(["mine"]), name="mine")
    assert list(tables) == [
        f"{name}-3" for name in ("utility", "on-clean", "attack", "static", "cosine", "perplexity", "membership")
    ]
    captions = [table.caption for table in tables.values()]
    assert captions[0] == "mine: utility, micro F1 (accuracy) on rewritten texts (classifier: linear)"
    assert captions[4] == "mine: cosine of original and rewritten text (encoder: tfidf_mean)"
    assert captions[5] == "mine: perplexity of the texts (language model: kneser_ney)"
    assert captions[6] == "mine: membership inference, AUC (classifier: linear)"


def test_cells_are_mean_and_deviation_beside_clean_and_majority():
    table = tables_of(*grid(["mine"]), name="mine")["utility-3"]
    assert [column.head for column in table.columns] == [
        "Mechanism", "Strategy", "Clean texts", "Majority", "1", "10",
    ]  # fmt: skip
    # micro F1 is 0.125 above macro F1 in these records
    row = ["0.875 ± 0.062", "0.500", "0.625 ± 0.062", "0.625 ± 0.062"]
    assert shown(table) == [["madlib", "S1", *row], ["madlib", "S2", *row]]


def test_each_measure_is_read_from_its_own_entry():
    tables = tables_of(*grid(["mine"], strategies=("S1",)), name="mine")
    assert shown(tables["cosine-3"]) == [["madlib", "S1", "0.750 ± 0.250", "0.750 ± 0.250", "0.750 ± 0.250"]]
    assert shown(tables["perplexity-3"]) == [["madlib", "S1", "1,234.5", "1,234.5", "1,234.5"]]
    assert shown(tables["membership-3"])[0][3] == "0.625 ± 0.030"
    assert "100 of 110 texts could be compared" in tables["cosine-3"].note
    assert "21 of the 4,321 tokens" in tables["perplexity-3"].note
    assert "50 texts that were learnt from and 60 that were not" in tables["membership-3"].note
    assert "Label: 2 classes, learnt from 270 of 300 documents" in tables["utility-3"].note
    assert "Attribute: 10 classes" in tables["attack-3"].note and "± 0.20 (95%)" in tables["attack-3"].note


def test_attack_table_has_the_lines_of_table_4():
    clean, runs = grid(["mine"], strategies=("S1",))
    gains = {("mine", runs[0].key): 0.25, ("mine", runs[1].key): None}
    table = tables_of(clean, runs, "mine", gains)["attack-3"]
    assert [(row[2], *row[5:]) for row in shown(table)] == [
        ("utility F1", "0.500 ± 0.062", "0.500 ± 0.062"),
        ("static F1", "0.125 ± 0.062", "0.125 ± 0.062"),
        ("adaptive F1", "0.250 ± 0.062", "0.250 ± 0.062"),
        ("relative gain", "0.250", "–"),
    ]


def test_records_before_a_measure_existed_are_not_measured():
    entries = dataset(utility=0.5)
    old = {name: entries[name] for name in ("utility", "attack")}
    clean = evaluated("none", "none", 0.0, {"mine": old})
    del clean.record["encoder"]  # type: ignore[attr-defined]
    runs = [evaluated("madlib", "S1", 1.0, {"mine": old})]
    assert list(tables_of(clean, runs, "mine")) == ["utility-3", "on-clean-3", "attack-3"]
    assert evaluation.not_measured(clean) == ["cosine similarity", "perplexity", "membership inference"]
    assert evaluation.left_out(clean) == [("mine, attack", "no attack because of attack")]
    assert clean.back_end("similarity") == "not recorded"


def test_a_run_that_lacks_a_measure_leaves_its_cell_empty():
    clean, runs = grid(["mine"], strategies=("S1",))
    lacking = evaluated("madlib", "S1", 10.0, {"mine": dataset(**(EVERYTHING | {"cosine": None}))})
    assert shown(tables_of(clean, [runs[0], lacking], "mine")["cosine-3"])[0][3:] == ["0.750 ± 0.250", "–"]


def test_standard_errors():
    clean, runs = grid(["mine"], strategies=("S1",), epsilons=(1.0,))
    of = evaluation_values.values(clean, runs, "mine", {})
    key = runs[0].key
    # of a score: 0.0625 over trainings, and of 100 (25) documents √(p(1−p)/n)
    assert of[UTILITY.name, key].error == pytest.approx(math.hypot(0.0625, 0.05))
    assert of[ADAPTIVE.name, key].error == pytest.approx(math.hypot(0.0625, math.sqrt(0.25 * 0.75 / 25)))
    assert of[COSINE.name, key].error == pytest.approx(0.25 / 10)
    assert of[MEMBERSHIP.name, key].error == pytest.approx(0.05)
    assert of[PERPLEXITY.name, key].error is None
    assert of[UTILITY_MICRO.name, MAJORITY] == MeanSd(0.5, None)


def test_means_over_data_sets():
    names = ["cola", "mrpc", "rte", "sst2", "zeta"]
    clean, runs = grid(names, strategies=("S2",))
    runs = [*runs, evaluated("madlib", "S2", 5.0, {"cola": dataset(cosine=0.25)} | {n: dataset() for n in names[1:]})]
    less = {"cola": dataset(**(EVERYTHING | {"cosine": 0.25}))}
    runs[0] = evaluated("madlib", "S2", 1.0, runs[0].record["datasets"] | less)
    values_of = {name: evaluation_values.values(clean, runs, name, {}) for name in names}
    tables = {one.name: one for one in evaluation_tables.average_tables(clean, values_of, [run.key for run in runs])}
    assert list(tables) == ["mean-cosine", "mean-perplexity", "mean-loss"]
    # ε 1: 0.25 and four times 0.75; ε 5 is known in one data set only
    assert shown(tables["mean-cosine"]) == [["madlib", "S2", "0.750", "0.650", "–", "0.750"]]
    assert tables["mean-cosine"].caption.startswith("Mean over cola, mrpc, rte, sst2 and zeta: cosine")
    assert shown(tables["mean-loss"])[0][2:] == ["0.250", "–", "0.250"]


def test_glance_names_the_runs_that_stand_out():
    clean = evaluated("none", "none", 0.0, {"a": dataset(utility=0.85, adaptive=0.8), "b": dataset(cosine=1.0)})
    scores = {("S1", 1.0): (0.5, 0.2), ("S1", 10.0): (0.8, 0.7), ("S2", 1.0): (0.6, 0.1), ("S2", 10.0): (0.7, 0.3)}
    runs = [
        evaluated("madlib", s, e, {"a": dataset(utility=u, adaptive=p), "b": dataset(cosine=0.5)})
        for (s, e), (u, p) in scores.items()
    ]
    gains = {("a", run.key): scores[run.key[1:]][0] - scores[run.key[1:]][1] for run in runs}
    values_of = {name: evaluation_values.values(clean, runs, name, gains) for name in ("a", "b")}
    table = glance.glance_table(values_of, [run.key for run in runs], [])
    assert [row[:8] for row in shown(table)] == [
        ["a", "clean texts", "–", "–", "–", "0.850 ± 0.062", "0.800 ± 0.062", "–"],
        ["a", "majority, no text read", "–", "–", "–", "0.375", "0.125", "–"],
        ["a", "highest utility", "madlib", "S1", "10", "0.800 ± 0.062", "0.700 ± 0.062", "0.100"],
        ["a", "weakest adaptive attack", "madlib", "S2", "1", "0.600 ± 0.062", "0.100 ± 0.062", "0.500"],
        ["a", "highest relative gain", "madlib", "S2", "1", "0.600 ± 0.062", "0.100 ± 0.062", "0.500"],
    ]
    assert "The best of 4 runs looks better than it is" in table.note
    assert glance.glance_table({"b": values_of["b"]}, [run.key for run in runs], []) is None


def test_what_clean_texts_do_not_show_to_be_learnable_is_named():
    # Utility: 100 documents and majority 0.375; a standard error of √(0.0625² + p(1−p)/100) at 0.5 is 0.080.
    def named(**scores):
        clean = evaluated("none", "none", 0.0, {"a": dataset(**scores)})
        return glance.unlearnt({"a": evaluation_values.values(clean, [], "a", {})})

    assert named(utility=0.5, adaptive=0.8) == ["a, utility: 0.500 ± 0.157 (95%) on clean texts, majority 0.375"]
    assert named(utility=0.6, adaptive=0.8) == [] == named()
    assert [one[:9] for one in named(utility=0.2, adaptive=0.1)] == ["a, utilit", "a, attack"]


def test_runs_of_different_back_ends_are_never_compared():
    clean, runs = grid(["mine"])
    evaluation_values.require_same_back_ends(clean, runs)
    other = evaluated("madlib", "S1", 99.0, {"mine": dataset(**EVERYTHING)}, encoder="minilm")
    with pytest.raises(CheckFailed, match=r"2 settings of encoder \(minilm, tfidf_mean\)"):
        evaluation_values.require_same_back_ends(clean, [*runs, other])


def test_data_of_a_figure_has_every_run_and_the_clean_baseline():
    clean, runs = grid(["mine"], strategies=("S1",), epsilons=(10.0, 1.0))
    of = evaluation_values.values(clean, runs, "mine", {})
    table = evaluation.figure_data("f", of, [COSINE, UTILITY], "madlib")
    assert [column.key for column in table.columns][3:6] == ["cosine_mean", "cosine_sd", "cosine_standard_error"]
    assert [row[:6] for row in table.rows] == [
        ("madlib", "S1", 1.0, 0.75, 0.25, 0.025),
        ("madlib", "S1", 10.0, 0.75, 0.25, 0.025),
        (*CLEAN, 0.75, 0.25, 0.025),
    ]
    assert evaluation.figure_data("f", of, [COSINE], "tem").rows == [(*CLEAN, 0.75, 0.25, 0.025)]
