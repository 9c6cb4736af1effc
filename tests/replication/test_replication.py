"""Printed figures and ours beside them, cell by cell; figures as files; example sentences."""

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import pytest

from examples.replication.cells import (
    RunSettings,
    beside_table,
    cells_of,
    counts,
    counts_table,
    reason_of,
)
from examples.replication.figures import svg
from examples.replication.literature import (
    PUBLISHED_CSV,
    parse,
    published_figures,
    published_neighbours,
)
from examples.replication.measured import MeasureKey, evaluated, key_of, over_lists, replaced
from examples.replication.page import markdown
from lexveil.base.errors import ParameterError
from lexveil.base.levels import BaseEpsilon
from lexveil.io.config import CLEAN
from lexveil.lab.evaluation.metrics.similarity import COSINE
from lexveil.lab.evaluation.metrics.utility import UTILITY_MICRO
from lexveil.lab.report.charts import Axis, Chart, ChartPoint, Series
from lexveil.lab.report.formatting import MeanSd

TEXT = PUBLISHED_CSV.read_text(encoding="utf-8")
SETTINGS = RunSettings(
    datasets=frozenset(["sst2", "sentences"]),
    mechanisms=frozenset(["madlib", "diffractor_geometric-listsL0"]),
    strategies=frozenset(["S1"]),
    epsilons=frozenset([1.0]),
)


def figures_of(paper, table, **names):
    return [
        figure
        for figure in published_figures()
        if (figure.paper, figure.table) == (paper, table)
        and all(getattr(figure, name) == value for name, value in names.items())
    ]


def test_figures_are_as_printed():
    """The figures were read from the papers a second time; MRPC at ε 15 is the slip."""
    rows = list(csv.DictReader(io.StringIO(TEXT)))
    with Path(__file__).with_name("printed.csv").open(encoding="utf-8") as file:
        for printed in csv.DictReader(file):
            assert sum(printed.items() <= row.items() for row in rows) == 1, printed


@pytest.mark.parametrize(
    ("before", "after"),
    [(",percent,", ",per cent,"), ("84.97", "about 85"), ("deberta-v3-base\n", "\n"), ("S3", "")],
)
def test_a_row_that_is_not_complete_is_refused(before, after):
    with pytest.raises(ParameterError, match=r"published\.csv, line \d+: not a complete row"):
        parse(TEXT.replace(before, after, 1))


def test_no_figure_is_there_twice():
    keys = [(figure.paper, figure.table, key_of(figure)) for figure in published_figures()]
    assert len(set(keys)) == len(keys)


def test_tables_have_as_many_figures_as_are_printed():
    """Table 4 of CLMLDP: 8 ε of four measures and four strategies of Yelp, of two measures of
    Trustpilot, two baselines."""
    assert len(figures_of("CLMLDP", "4")) == 8 * 4 * 4 + 8 * 4 * 2 + 2
    assert len(figures_of("1-Diffractor", "1")) == 9 * 6 * 6 + 9
    assert len(figures_of("1-Diffractor", "5")) == 2 * 7
    assert [len(near) for near in published_neighbours().values()] == [5] * 6


def test_scores_of_runs_get_the_names_of_the_papers():
    """The scores are of two data sets, and of their mean if a paper prints one. Variants of a
    mechanism have different names."""
    run = ("vickrey-t0.25", "S1", BaseEpsilon(1.0))
    values = {
        "mrpc": {(COSINE.name, run): MeanSd(0.25, 0.1), (COSINE.name, CLEAN): MeanSd(1.0, 0.0)},
        "rte": {(COSINE.name, run): MeanSd(0.75, 0.1)},
    }
    known = evaluated(values, [("mrpc", "rte"), ("mrpc", "sst2")])
    key = MeasureKey("cosine", frozenset(["mrpc"]), "vickrey", "t0.25", "S1", 1.0)
    assert known == {
        key: MeanSd(0.25, 0.1),
        key._replace(mechanism="none", variant="", strategy="none", epsilon=0.0): MeanSd(1.0, 0.0),
        key._replace(datasets=frozenset(["rte"])): MeanSd(0.75, 0.1),
        key._replace(datasets=frozenset(["mrpc", "rte"])): MeanSd(0.5, None),
    }


def test_lists_have_a_mean_and_a_best():
    key = MeasureKey(
        "utility_accuracy", frozenset(["sst2"]), "diffractor_tem", "listsL0", "S1", 1.0
    )
    other = key._replace(mechanism="diffractor_geometric", variant="listsL1")
    found = over_lists({key: MeanSd(0.5, 0.1), other: MeanSd(0.75, 0.1)})
    best = key._replace(mechanism="diffractor_best", variant="best of all lists")
    assert found[best] == MeanSd(0.75, 0.1)
    assert found[key._replace(variant="mean of L0, L1 and L2")] == MeanSd(0.5, None)


def test_the_share_of_words_that_are_replaced_is_what_n_w_leaves():
    rows = [
        {"epsilon": 1.0, "n_w": {"mean": 5.0}, "n_draws": 20},
        {"epsilon": 2.0, "n_w": None, "n_draws": 20},
    ]
    record = {"mechanism": "diffractor_tem-listsL0", "segmentation": "word", "statistics": rows}
    found = replaced([record])
    assert set(found.values()) == {MeanSd(0.75, None)}
    assert {key.variant for key in found} == {"", "listsL0"}


def test_ours_stand_above_theirs_of_the_cells_that_were_remade():
    figures = figures_of("CLMLDP", "3", dataset="sst2", strategy="S1")
    figures += figures_of("CLMLDP", "3", dataset="sst2", strategy="none")
    known = {key_of(figure): MeanSd(0.625, 0.0625) for figure in figures if figure.epsilon <= 1}
    del known[key_of(figures[0])]  # ε 0.1
    cells = cells_of(figures, known, SETTINGS)
    table = beside_table(cells)
    shown = [[cell.text for cell in row] for row in table.cells]
    heads = [column.head for column in table.columns]
    ours, theirs = (dict(zip(heads, row, strict=True)) for row in shown)
    assert ours["figures of"] == "ours" and theirs["figures of"] == "CLMLDP, deberta-v3-base"
    assert (ours["ε 1"], theirs["ε 1"]) == ("0.625 ± 0.062", "0.539 ± 0.029")
    assert (ours["ε 0.1"], theirs["ε 0.1"]) == ("–", "0.588 ± 0.019")
    assert (ours["clean texts"], theirs["clean texts"]) == ("0.625 ± 0.062", "0.943 ± 0.002")
    assert markdown("sst2", table).startswith("**sst2**\n\n| data set | measure | mechanism |")
    rows = counts(cells, {"Table 9": (20, 4)})
    assert [(row.place, row.printed, row.remade) for row in rows] == [
        ("Table 3", 9, 3),
        ("Table 9", 20, 4),
        ("all", 29, 7),
    ]
    assert [cell.text for cell in counts_table(rows).cells[-1]] == ["all", "29", "7"]


@pytest.mark.parametrize(
    ("paper", "table", "names", "reason"),
    [
        ("CLMLDP", "3", {"dataset": "rte"}, "data set rte is not available"),
        ("CLMLDP", "5", {"strategy": "S1"}, "mahalanobis is not in the grid"),
        ("CLMLDP", "3", {"dataset": "sst2", "epsilon": 50.0}, r"ε 50 is not in the grid"),
        ("CLMLDP", "3", {"dataset": "sst2", "epsilon": 1.0, "strategy": "S3"}, "S3 is not"),
        ("1-Diffractor", "1", {"dataset": "sst2", "variant": "listsL1"}, "L1 is not in the grid"),
        ("1-Diffractor", "1", {"dataset": "sst2", "variant": "listsL2"}, "L2 equals L0 if"),
        ("CLMLDP", "3", {"dataset": "sst2", "epsilon": 1.0, "strategy": "S1"}, "has no label"),
    ],
)
def test_a_cell_that_is_not_remade_says_why(paper, table, names, reason):
    figures = [
        figure for figure in figures_of(paper, table, **names) if "tem" not in figure.mechanism
    ]
    assert reason in reason_of(figures[0], SETTINGS)


def test_a_figure_is_a_file_of_its_own():
    line = Series("S1 & co", [ChartPoint(1.0, 0.5), ChartPoint(2.0, 0.75)])
    chart = Chart(name="a", title="A figure", x=Axis("ε"), y=Axis("F1"), series=[line])
    drawn = svg(chart)
    assert drawn.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    texts = [element.text for element in ElementTree.fromstring(drawn).iter() if element.text]
    assert "S1 & co" in texts and "A figure" in texts


def test_utility_is_the_accuracy_of_one_paper_and_the_micro_f1_of_the_other():
    values = {"sst2": {(UTILITY_MICRO.name, ("madlib", "S1", BaseEpsilon(1.0))): MeanSd(0.5, 0.1)}}
    assert {key.measure for key in evaluated(values, [])} == {
        "utility_micro_f1",
        "utility_accuracy",
    }
