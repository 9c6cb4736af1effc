"""The figures of the papers: complete, as printed, and beside the right rows of ours; and the page with both."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from examples.replication.__main__ import OURS, compared, main, make_project, markdown
from examples.replication.literature import ANY, MEASURES, NONE, PUBLISHED_CSV, beside, groups, parse
from lexveil.accounting.budgets import STRATEGIES
from lexveil.config import CLEAN
from lexveil.errors import ParameterError
from lexveil.evaluation.metrics.utility import UTILITY_MICRO
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.report.formatting import MeanSd

SHARED = Path(__file__).parents[3] / "shared" / "data" / "benchmarks"
TEXT = PUBLISHED_CSV.read_text(encoding="utf-8")
PUBLISHED = parse(TEXT)
BY_NAME = {
    (one.paper, one.table, one.dataset, one.mechanism, one.strategy, one.epsilon, one.measure, one.variant): one
    for one in PUBLISHED
}
GLUE, DEBERTA, BERT = "cola+mrpc+rte+sst2", "deberta-v3-base", "bert-base-uncased"
CLMLDP, DIFFRACTOR = "CLMLDP", "1-Diffractor"


@pytest.mark.parametrize(
    ("row", "printed"),
    [
        ((CLMLDP, "1", GLUE, "madlib", "S3", 5, "cosine", ""), (0.51, None, "all-MiniLM-L6-v2")),
        ((CLMLDP, "2", GLUE, "madlib", "S1", 0.1, "perplexity", ""), (1731, None, "gpt2")),
        ((CLMLDP, "3", "mrpc", "madlib", "S3", 25, "utility_micro_f1", ""), (74.75, 4.6, DEBERTA)),
        ((CLMLDP, "3", "sst2", "madlib", "S2", 5, "utility_micro_f1", ""), (68.00, 4, DEBERTA)),
        ((CLMLDP, "4", "yelp", "madlib", "S1", 50, "attack_static_macro_f1", ""), (30.4, None, DEBERTA)),
        ((CLMLDP, "4", "yelp", "madlib", "S4", 1, "attack_adaptive_macro_f1", ""), (42.0, 7.5, DEBERTA)),
        ((CLMLDP, "4", "yelp", "madlib", "S2", 15, "relative_gain", ""), (-0.09, None, DEBERTA)),
        ((CLMLDP, "5", "sst2", "mahalanobis", "S3", 10, "utility_micro_f1", "lambda 0.2"), (82.6, 0.8, DEBERTA)),
        ((CLMLDP, "6", "sst2", "vickrey", "S1", 25, "utility_micro_f1", "k 2"), (61.5, 7.1, DEBERTA)),
        ((CLMLDP, "8", "mrpc", ANY, ANY, 15, "document_budget", ""), (195.44, None, NONE)),  # the slip, as printed
        ((DIFFRACTOR, "1", "sst2", "diffractor_tem", "S1", 1, "utility_accuracy", "L2"), (81.27, 0.7, BERT)),
        ((DIFFRACTOR, "2", "mrpc+rte+sst2", "tem", "S1", 3, "cosine", ""), (0.38, None, "all-MiniLM-L6-v2")),
        ((DIFFRACTOR, "3", "sst2", "truncated_gumbel", "S1", 50, "utility_accuracy", ""), (76.41, 0.2, BERT)),
        ((DIFFRACTOR, "4", "friends", "none", "none", 0, "attack_static_accuracy", ""), (33.13, None, BERT)),
        (("TEM", "text on Figure 1", "imdb", "tem", "S1", 2, "utility_clean_accuracy", ""), (75, None, "fastText")),
    ],
)
def test_figures_are_as_printed(row: tuple[object, ...], printed: tuple[object, ...]) -> None:
    found = BY_NAME[row]  # type: ignore[index]
    assert (found.value, found.sd, found.model) == printed


def test_every_row_is_complete_and_told_apart() -> None:
    assert len(PUBLISHED) == len(BY_NAME) == 976
    assert {one.mechanism for one in PUBLISHED} - set(MECHANISMS) == {NONE, ANY, "diffractor_best"}
    assert {one.strategy for one in PUBLISHED} <= {*STRATEGIES, NONE, ANY}
    for one in PUBLISHED:
        assert (one.epsilon == 0) == (one.mechanism == NONE) and (one.sd is None or one.sd >= 0), one
        assert one.measure in ("perplexity", "words_per_text", "document_budget") or -1 <= one.share.mean <= 1, one
    assert all(set(names) & {one.measure for one in PUBLISHED} for names in MEASURES.values())


def test_every_table_has_what_it_prints() -> None:
    """Rows × columns of each printed table, and its line of clean texts."""
    assert Counter((one.paper, one.table) for one in PUBLISHED) == {
        (CLMLDP, "1"): 4 * 8, (CLMLDP, "2"): 4 * 8 + 1, (CLMLDP, "3"): 4 * (4 * 8 + 1), (CLMLDP, "4"): 4 * 4 * 8,
        (CLMLDP, "5"): 4 * 4 + 1, (CLMLDP, "6"): 4 * 4 + 1, (CLMLDP, "8"): 6 * (8 + 1),
        (DIFFRACTOR, "1"): 9 * (2 * 6 * 3 + 1), (DIFFRACTOR, "2"): 7 * 8, (DIFFRACTOR, "3"): 3 * 6 * 8,
        (DIFFRACTOR, "4"): 2 * (2 * 6 + 1), ("TEM", "text on Figure 1"): 4,
    }  # fmt: skip


@pytest.mark.parametrize("dataset", ["sst2", "rte", "mrpc"])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 3, 5, 10])
def test_best_of_the_lists_is_the_best_that_is_printed(dataset: str, epsilon: float) -> None:
    """1-Diffractor Table 3 says what it took from Table 1: a slip of either copy would show."""
    own = ("1", dataset, epsilon, "utility_accuracy")
    each = [one.value for one in PUBLISHED if (one.table, one.dataset, one.epsilon, one.measure) == own]
    name = ("diffractor_best", "S1", epsilon, "utility_accuracy", "best of all lists")
    assert len(each) == 6 and max(each) == BY_NAME[DIFFRACTOR, "3", dataset, *name].value


def test_budgets_are_words_times_epsilon_but_for_the_slip() -> None:
    words = {one.dataset: one.value for one in PUBLISHED if one.measure == "words_per_text"}
    budgets = [one for one in PUBLISHED if one.measure == "document_budget" and one.epsilon >= 1]
    off = [one for one in budgets if abs(one.value - words[one.dataset] * one.epsilon) > 0.006 * one.epsilon]
    assert [(one.dataset, one.epsilon) for one in off] == [("mrpc", 15.0)]


def test_beside_takes_the_same_data_set_mechanism_strategy_and_epsilons_only() -> None:
    rows = beside(PUBLISHED, ["sst2"], ["utility_micro_f1"], [("madlib", "S1"), ("vickrey", "S3")], [1.0, 10.0, 99.0])
    assert [row.source for row in rows] == ["CLMLDP Table 3, deberta-v3-base", "CLMLDP Table 6, k 2, deberta-v3-base"]
    assert set(rows[0].at) == {1.0, 10.0}
    assert rows[0].at[10.0] == MeanSd(pytest.approx(0.5673), pytest.approx(0.051))  # type: ignore[arg-type]
    for dataset, measure, epsilon in (("sst2", "utility_micro_f1", 2.0), ("sst-2", "utility_micro_f1", 1.0),
                                      ("sst2", "cosine", 1.0)):  # fmt: skip
        assert beside(PUBLISHED, [dataset], [measure], [("madlib", "S1")], [epsilon]) == []
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
    runs = [("madlib", strategy, epsilon) for strategy in ("S1", "S4") for epsilon in (1.0, 2.0)]
    values = {(UTILITY_MICRO.name, key): MeanSd(0.625, 0.0625) for key in (CLEAN, *runs)}
    ((caption, table),) = compared({"sst2": values, "mine": values}, runs, PUBLISHED)
    assert [[cell.text for cell in (*row[:3], *row[4:])] for row in table.cells] == [
        ["madlib", "S1", OURS, "0.625", "0.625"],
        ["madlib", "S1", "1-Diffractor Table 3, bert-base-uncased", "0.530 ± 0.015", "–"],
        ["madlib", "S1", "CLMLDP Table 3, deberta-v3-base", "0.539 ± 0.029", "–"],
        ["madlib", "S4", OURS, "0.625", "0.625"],
        ["madlib", "S4", "CLMLDP Table 3, deberta-v3-base", "0.527 ± 0.025", "–"],
    ]
    start = "**sst2: utility**\n\n| mechanism | strategy | figures of | clean texts | ε 1 |"
    assert markdown(caption, table).startswith(start)
    cosine = {("cosine", ("madlib", "S2", 50.0)): MeanSd(0.5, 0.1)}
    four = dict.fromkeys(("cola", "mrpc", "rte", "sst2"), cosine)
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
