"""The figures of the papers: complete, as printed, and beside the right rows of ours; and the page with both."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from examples.replication.__main__ import OURS, compared, main, make_project, markdown
from examples.replication.literature import ANY, MEASURES, NONE, PUBLISHED_CSV, groups, parse
from lexveil.accounting.budgets import STRATEGIES
from lexveil.config import CLEAN
from lexveil.errors import ParameterError
from lexveil.evaluation.metrics.utility import UTILITY_MICRO
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.report.formatting import MeanSd

SHARED = Path(__file__).parents[3] / "shared" / "data" / "benchmarks"
TEXT = PUBLISHED_CSV.read_text(encoding="utf-8")
PUBLISHED = parse(TEXT)
CLMLDP, DIFFRACTOR = "CLMLDP", "1-Diffractor"


@pytest.mark.parametrize(
    "row",
    [
        (CLMLDP, "1", "cola+mrpc+rte+sst2", "madlib", "S3", 5, "cosine", "", 0.51, None),
        (CLMLDP, "2", "cola+mrpc+rte+sst2", "madlib", "S1", 0.1, "perplexity", "", 1731, None),
        (CLMLDP, "3", "mrpc", "madlib", "S3", 25, "utility_micro_f1", "", 74.75, 4.6),
        (CLMLDP, "4", "yelp", "madlib", "S4", 1, "attack_adaptive_macro_f1", "", 42.0, 7.5),
        (CLMLDP, "4", "yelp", "madlib", "S2", 15, "relative_gain", "", -0.09, None),
        (CLMLDP, "5", "sst2", "mahalanobis", "S3", 10, "utility_micro_f1", "lambda 0.2", 82.6, 0.8),
        (CLMLDP, "6", "sst2", "vickrey", "S1", 25, "utility_micro_f1", "k 2", 61.5, 7.1),
        (CLMLDP, "8", "mrpc", ANY, ANY, 15, "document_budget", "", 195.44, None),  # the slip, as printed
        (DIFFRACTOR, "1", "sst2", "diffractor_tem", "S1", 1, "utility_accuracy", "L2", 81.27, 0.7),
        (DIFFRACTOR, "2", "mrpc+rte+sst2", "tem", "S1", 3, "cosine", "", 0.38, None),
        (DIFFRACTOR, "3", "sst2", "truncated_gumbel", "S1", 50, "utility_accuracy", "", 76.41, 0.2),
        (DIFFRACTOR, "4", "friends", "none", "none", 0, "attack_static_accuracy", "", 33.13, None),
        ("TEM", "text on Figure 1", "imdb", "tem", "S1", 2, "utility_clean_accuracy", "", 75, None),
    ],
)
def test_figures_are_as_printed(row: tuple[object, ...]) -> None:
    names = "paper table dataset mechanism strategy epsilon measure variant value sd".split()
    assert [tuple(getattr(one, name) for name in names) for one in PUBLISHED].count(row) == 1


def test_every_row_is_complete_and_every_table_has_what_it_prints() -> None:
    """Rows × columns of each printed table, and its line of clean texts."""
    assert Counter((one.paper, one.table) for one in PUBLISHED) == {
        (CLMLDP, "1"): 4 * 8, (CLMLDP, "2"): 4 * 8 + 1, (CLMLDP, "3"): 4 * (4 * 8 + 1), (CLMLDP, "4"): 4 * 4 * 8,
        (CLMLDP, "5"): 4 * 4 + 1, (CLMLDP, "6"): 4 * 4 + 1, (CLMLDP, "8"): 6 * (8 + 1),
        (DIFFRACTOR, "1"): 9 * (2 * 6 * 3 + 1), (DIFFRACTOR, "2"): 7 * 8, (DIFFRACTOR, "3"): 3 * 6 * 8,
        (DIFFRACTOR, "4"): 2 * (2 * 6 + 1), ("TEM", "text on Figure 1"): 4,
    }  # fmt: skip
    assert {one.mechanism for one in PUBLISHED} - set(MECHANISMS) == {NONE, ANY, "diffractor_best"}
    assert {one.strategy for one in PUBLISHED} <= {*STRATEGIES, NONE, ANY}
    for one in PUBLISHED:
        assert (one.epsilon == 0) == (one.mechanism == NONE) and (one.sd is None or one.sd >= 0), one
        assert one.measure in ("perplexity", "words_per_text", "document_budget") or -1 <= one.share.mean <= 1, one
    assert all(set(names) & {one.measure for one in PUBLISHED} for names in MEASURES.values())


def test_figures_agree_with_each_other() -> None:
    """1-Diffractor Table 3 takes the best of Table 1, and a budget is words times ε: a slip of a copy would show."""
    accuracy = [one for one in PUBLISHED if one.measure == "utility_accuracy"]
    best = [one for one in accuracy if one.mechanism == "diffractor_best" and one.epsilon <= 10]
    for one in best:
        key = ("1", one.dataset, one.epsilon)
        each = [other.value for other in accuracy if (other.table, other.dataset, other.epsilon) == key]
        assert len(each) == 6 and max(each) == one.value, one
    words = {one.dataset: one.value for one in PUBLISHED if one.measure == "words_per_text"}
    budgets = [one for one in PUBLISHED if one.measure == "document_budget" and one.epsilon >= 1]
    off = [one for one in budgets if abs(one.value - words[one.dataset] * one.epsilon) > 0.006 * one.epsilon]
    assert best and [(one.dataset, one.epsilon) for one in off] == [("mrpc", 15.0)]


def test_averages_belong_to_all_their_data_sets() -> None:
    four = ["cola", "mrpc", "rte", "sst2"]
    assert groups(PUBLISHED, ["cosine"], [*four, "mine"]) == [tuple(four), ("mrpc", "rte", "sst2")]
    assert groups(PUBLISHED, ["cosine"], four[:3]) == []


@pytest.mark.parametrize(
    ("before", "after"), [(",percent,", ",per cent,"), ("84.97", "about 85"), ("deberta-v3-base\n", "\n"), ("S3", "")]
)
def test_a_row_that_is_not_complete_is_refused(before: str, after: str) -> None:
    with pytest.raises(ParameterError, match=r"published\.csv, line \d+: not a complete row"):
        parse(TEXT.replace(before, after, 1))


def test_figures_of_the_papers_stand_below_ours() -> None:
    """Of the mechanisms, strategies and epsilons of the run alone, and nothing of a set that nobody printed."""
    runs = [("madlib", "S1", 1.0), ("madlib", "S1", 2.0)]
    values = {(UTILITY_MICRO.name, key): MeanSd(0.625, 0.0625) for key in (CLEAN, *runs)}
    ((caption, table),) = compared({"sst2": values, "mine": values}, runs, PUBLISHED)
    assert [[cell.text for cell in (*row[:3], *row[4:])] for row in table.cells] == [
        ["madlib", "S1", OURS, "0.625", "0.625"],
        ["madlib", "S1", "1-Diffractor Table 3, bert-base-uncased", "0.530 ± 0.015", "–"],
        ["madlib", "S1", "CLMLDP Table 3, deberta-v3-base", "0.539 ± 0.029", "–"],
    ]
    start = "**sst2: utility**\n\n| mechanism | strategy | figures of | clean texts | ε 1 |"
    assert markdown(caption, table).startswith(start)
    four = {key: {("cosine", ("madlib", "S2", 50.0)): MeanSd(0.5, 0.1)} for key in ("cola", "mrpc", "rte", "sst2")}
    ((caption, table),) = compared(four, [("madlib", "S2", 50.0)], PUBLISHED)
    assert (caption, [row[-1].text for row in table.cells]) == ("cola, mrpc, rte, sst2: cosine", ["0.500", "0.940"])


def test_a_folder_without_sets_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([str(tmp_path / "new"), "--sets", str(tmp_path)])
    assert end.value.code == 2 and "holds no set of the papers" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not on this machine")
def test_the_command_makes_the_project(tmp_path: Path) -> None:
    make_project(tmp_path / "project", [SHARED / "rte.parquet"], "en")
    main([str(tmp_path / "project")])
    assert "CLMLDP Table 3" in (tmp_path / "project" / "replication.md").read_text(encoding="utf-8")
