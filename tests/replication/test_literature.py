"""The figures of the papers: complete, as printed, and beside the right rows of ours."""

import pytest

from examples.replication.literature import ANY, MEASURES, NONE, PUBLISHED_CSV, beside, groups, parse
from lexveil.accounting.budgets import STRATEGIES
from lexveil.errors import ParameterError
from lexveil.mechanisms.registry import MECHANISMS

TEXT = PUBLISHED_CSV.read_text(encoding="utf-8")
PUBLISHED = parse(TEXT)


def of(paper, table, dataset, mechanism, strategy, epsilon, measure, variant=""):
    """Value, deviation and model of the one such row."""
    wanted = (paper, table, dataset, mechanism, strategy, float(epsilon), measure, variant)
    (found,) = [
        (one.value, one.sd, one.model)
        for one in PUBLISHED
        if (one.paper, one.table, one.dataset, one.mechanism, one.strategy, one.epsilon, one.measure, one.variant)
        == wanted
    ]
    return found


GLUE = "cola+mrpc+rte+sst2"
DEBERTA, BERT, MINILM = "deberta-v3-base", "bert-base-uncased", "all-MiniLM-L6-v2"


@pytest.mark.parametrize(
    ("row", "printed"),
    [
        (("CLMLDP", "1", GLUE, "madlib", "S3", 5, "cosine"), (0.51, None, MINILM)),
        (("CLMLDP", "1", GLUE, "madlib", "S4", 50, "cosine"), (0.68, None, MINILM)),
        (("CLMLDP", "2", GLUE, "none", "none", 0, "perplexity"), (622, None, "gpt2")),
        (("CLMLDP", "2", GLUE, "madlib", "S1", 0.1, "perplexity"), (1731, None, "gpt2")),
        (("CLMLDP", "3", "cola", "none", "none", 0, "utility_micro_f1"), (84.97, 0.4, DEBERTA)),
        (("CLMLDP", "3", "mrpc", "madlib", "S3", 25, "utility_micro_f1"), (74.75, 4.6, DEBERTA)),
        (("CLMLDP", "3", "sst2", "madlib", "S2", 5, "utility_micro_f1"), (68.00, 4, DEBERTA)),
        (("CLMLDP", "3", "rte", "madlib", "S4", 50, "utility_micro_f1"), (52.11, 3.4, DEBERTA)),
        (("CLMLDP", "4", "yelp", "madlib", "S1", 50, "attack_static_macro_f1"), (30.4, None, DEBERTA)),
        (("CLMLDP", "4", "yelp", "madlib", "S3", 15, "utility_macro_f1"), (58.8, 15.2, DEBERTA)),
        (("CLMLDP", "4", "yelp", "madlib", "S4", 1, "attack_adaptive_macro_f1"), (42.0, 7.5, DEBERTA)),
        (("CLMLDP", "4", "yelp", "madlib", "S2", 15, "relative_gain"), (-0.09, None, DEBERTA)),
        (("CLMLDP", "5", "sst2", "mahalanobis", "S3", 10, "utility_micro_f1", "lambda 0.2"), (82.6, 0.8, DEBERTA)),
        (("CLMLDP", "6", "sst2", "vickrey", "S1", 25, "utility_micro_f1", "k 2"), (61.5, 7.1, DEBERTA)),
        (("CLMLDP", "8", "mrpc", ANY, ANY, 15, "document_budget"), (195.44, None, NONE)),  # the slip, as printed
        (("CLMLDP", "8", "yelp", NONE, NONE, 0, "words_per_text"), (186.87, None, NONE)),
        (("1-Diffractor", "1", "sst2", "diffractor_tem", "S1", 1, "utility_accuracy", "L2"), (81.27, 0.7, BERT)),
        (("1-Diffractor", "1", "rte", "diffractor_geometric", "S1", 10, "utility_accuracy", "L1"), (61.73, 1.3, BERT)),
        (("1-Diffractor", "2", "mrpc+rte+sst2", "tem", "S1", 3, "cosine"), (0.38, None, MINILM)),
        (("1-Diffractor", "3", "mrpc", "tem", "S1", 3, "utility_accuracy"), (68.87, 3.7, BERT)),
        (("1-Diffractor", "3", "sst2", "truncated_gumbel", "S1", 50, "utility_accuracy"), (76.41, 0.2, BERT)),
        (("1-Diffractor", "4", "friends", "none", "none", 0, "attack_static_accuracy"), (33.13, None, BERT)),
        (("1-Diffractor", "4", "trustpilot", "diffractor_tem", "S1", 5, "attack_static_accuracy", "L0"),
         (72.59, None, BERT)),
        (("TEM", "text on Figure 1", "imdb", "tem", "S1", 2, "utility_clean_accuracy"), (75, None, "fastText")),
    ],
)  # fmt: skip
def test_figures_are_as_printed(row, printed):
    assert of(*row) == printed


def test_every_row_is_complete_and_told_apart():
    assert len(PUBLISHED) == 976
    assert {one.mechanism for one in PUBLISHED} - set(MECHANISMS) == {NONE, ANY, "diffractor_best"}
    assert {one.strategy for one in PUBLISHED} <= {*STRATEGIES, NONE, ANY}
    for one in PUBLISHED:
        assert all((one.paper, one.table, one.dataset, one.measure, one.model)), one
        assert (one.epsilon == 0) == (one.mechanism == NONE), one
        assert one.sd is None or one.sd >= 0, one
        assert one.measure in ("perplexity", "words_per_text", "document_budget") or -1 <= one.share.mean <= 1, one
    names = [(one.source, one.dataset, one.mechanism, one.strategy, one.epsilon, one.measure) for one in PUBLISHED]
    assert len(set(names)) == len(names)


def test_every_table_has_what_it_prints():
    """Rows × columns of each printed table, and its line of clean texts."""
    n = {(one.paper, one.table): 0 for one in PUBLISHED}
    for one in PUBLISHED:
        n[one.paper, one.table] += 1
    assert n == {
        ("CLMLDP", "1"): 4 * 8, ("CLMLDP", "2"): 4 * 8 + 1, ("CLMLDP", "3"): 4 * (4 * 8 + 1),
        ("CLMLDP", "4"): 4 * 4 * 8, ("CLMLDP", "5"): 4 * 4 + 1, ("CLMLDP", "6"): 4 * 4 + 1,
        ("CLMLDP", "8"): 6 * (8 + 1), ("1-Diffractor", "1"): 9 * (2 * 6 * 3 + 1), ("1-Diffractor", "2"): 7 * 8,
        ("1-Diffractor", "3"): 3 * 6 * 8, ("1-Diffractor", "4"): 2 * (2 * 6 + 1), ("TEM", "text on Figure 1"): 4,
    }  # fmt: skip


def test_best_of_the_lists_is_the_best_that_is_printed():
    """1-Diffractor Table 3 says what it took from Table 1: a slip of either copy would show."""
    for dataset in ("sst2", "rte", "mrpc"):
        for epsilon in (0.1, 0.5, 1, 3, 5, 10):
            each = [
                one.value
                for one in PUBLISHED
                if (one.table, one.dataset, one.epsilon, one.measure) == ("1", dataset, epsilon, "utility_accuracy")
            ]
            best = of("1-Diffractor", "3", dataset, "diffractor_best", "S1", epsilon, "utility_accuracy",
                      "best of all lists")  # fmt: skip
            assert len(each) == 6 and max(each) == best[0], (dataset, epsilon)


def test_budgets_are_words_times_epsilon_but_for_the_slip():
    words = {one.dataset: one.value for one in PUBLISHED if one.measure == "words_per_text"}
    off = [
        (one.dataset, one.epsilon)
        for one in PUBLISHED
        if one.measure == "document_budget" and abs(one.value - words[one.dataset] * one.epsilon) > 0.006 * one.epsilon
    ]
    assert [one for one in off if one[1] >= 1] == [("mrpc", 15.0)]  # below ε 1 two decimals are coarser than that


def test_every_score_of_ours_has_figures():
    known = {one.measure for one in PUBLISHED}
    assert all(set(names) & known for names in MEASURES.values())


def test_beside_takes_the_same_data_set_mechanism_strategy_and_epsilons_only():
    rows = beside(PUBLISHED, ["sst2"], ["utility_micro_f1"], [("madlib", "S1"), ("vickrey", "S3")], [1.0, 10.0, 99.0])
    assert [(one.mechanism, one.strategy, one.source) for one in rows] == [
        ("madlib", "S1", "CLMLDP Table 3, deberta-v3-base"),
        ("vickrey", "S3", "CLMLDP Table 6, k 2, deberta-v3-base"),
    ]
    first = rows[0]
    assert set(first.at) == {1.0, 10.0}
    assert first.at[10.0].mean == pytest.approx(0.5673) and first.at[10.0].sd == pytest.approx(0.051)
    assert first.clean is not None and first.clean.mean == pytest.approx(0.9433)
    assert beside(PUBLISHED, ["sst2"], ["utility_micro_f1"], [("madlib", "S1")], [2.0]) == []
    assert beside(PUBLISHED, ["sst-2"], ["utility_micro_f1"], [("madlib", "S1")], [1.0]) == []
    assert beside(PUBLISHED, ["sst2"], ["cosine"], [("madlib", "S1")], [1.0]) == []  # printed as an average only


def test_averages_belong_to_all_their_data_sets():
    four = ["cola", "mrpc", "rte", "sst2"]
    (row,) = beside(PUBLISHED, four[::-1], ["cosine"], [("madlib", "S2")], [50.0])
    assert row.at[50.0].mean == 0.94 and row.clean is None
    assert groups(PUBLISHED, ["cosine"], [*four, "mine"]) == [tuple(four), ("mrpc", "rte", "sst2")]
    assert groups(PUBLISHED, ["cosine"], four[:3]) == []


@pytest.mark.parametrize(
    ("before", "after"), [(",percent,", ",per cent,"), ("84.97", "about 85"), ("deberta-v3-base\n", "\n"), ("S3", "")]
)
def test_a_row_that_is_not_complete_is_refused(before, after):
    with pytest.raises(ParameterError, match=r"published\.csv, line \d+: not a complete row"):
        parse(TEXT.replace(before, after, 1))
