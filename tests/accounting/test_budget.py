"""Budgets by hand (CLMLDP Figure 1 and Table 8), their invariants, and shares of them by public
classes of tokens."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lexveil.base.errors import ParameterError
from lexveil.core.accounting.budgets import (
    SEGMENTATION_OF,
    Action,
    DocumentBudget,
    Policy,
    epsilon_per_part,
    epsilon_per_token,
)
from lexveil.core.accounting.data_set_budgets import TokenCounts, of_every_token
from lexveil.core.accounting.measurements import NoBoundError
from lexveil.core.accounting.shares import LISTED, NUMBERS, OTHER, STOPWORDS, BudgetShares, parts_of
from lexveil.core.text.collocation_index import Collocations
from lexveil.core.text.encode import Lexicon
from lexveil.release import settings
from lexveil.release.engine.batch import Batch
from lexveil.release.engine.plan import count_tokens
from tests.accounting.toy_measurements import between, measured, structures_of, toy_engine

PERTURBED, KEPT, DROPPED, SAMPLED, *_ = Action


FIGURE_1 = ["I think, therefore I am"]
LIKELY = Collocations.build(
    [["i", "i"], ["think", "am"]], np.array([5.0, 4.0]), [[], [], []], np.array([])
)


def counts_of(strategy, text, stopwords, punctuation):
    segmentation = SEGMENTATION_OF[strategy]
    tokens = ["i", "think", ",", "therefore", "am", "i_think", "i_am"]
    lexicon = Lexicon.build(segmentation, tokens, None if segmentation == "word" else LIKELY)
    policy = Policy.of(strategy, stopwords, punctuation, "sample")
    return TokenCounts(*count_tokens([text], lexicon, policy))


@pytest.mark.parametrize("stopwords", ["keep", "perturb"])
@pytest.mark.parametrize(
    ("strategy", "expected"), [("S1", 1.67), ("S2", 1.67), ("S3", 2.5), ("S4", 2.5)]
)
def test_figure_1(strategy, expected, stopwords):
    """B = 10: by six tokens, the comma one of them, or by the four of GST and MST."""
    counts = counts_of(strategy, FIGURE_1[0], stopwords, "perturb")
    assert (counts.n_words, counts.n_word_parts) == ([5], [6])
    spent = epsilon_per_token(strategy, 10.0, counts.n_perturbed, counts.n_word_parts)
    assert spent.round(2).tolist() == [expected]


def test_words_by_which_s1_divides_are_all_but_kept_punctuation():
    """The text has two stop words, which are kept, an unknown word and three commas. The commas do
    not count."""
    counts = counts_of("S1", "i think, therefore, i zorblaxed,", "keep", "keep")
    assert counts == ([5], [8], [2], [5])
    assert counts_of("S2", "i think, therefore, i zorblaxed,", "keep", "keep").n_word_parts == [5]
    spent = epsilon_per_token("S1", 10.0, counts.n_perturbed, counts.n_word_parts)
    assert spent == pytest.approx([2.0], rel=1e-9) and spent <= 2.0


def test_a_text_in_which_nothing_is_perturbed_has_no_epsilon():
    counts = counts_of("S1", "i am", "keep", "keep")
    assert (counts.n_perturbed, counts.n_word_parts) == ([0], [2])
    assert epsilon_per_token("S1", 10.0, counts.n_perturbed, counts.n_word_parts) == [0.0]


STRATEGIES = st.sampled_from(["S1", "S2", "S3", "S4"])
BUDGETS = st.floats(1e-9, 1e9) | st.integers(1, 10**6).map(float)


@given(st.integers(1, 10**6) | st.integers(1, 40), st.integers(0, 10**6), BUDGETS, STRATEGIES)
@example(n=10**6, extra=0, budget=0.1, strategy="S3")
@example(n=3, extra=0, budget=0.3, strategy="S1")  # 0.3 / 3 rounds up
def test_the_epsilon_of_a_text_add_up_exactly_and_never_above_its_budget(
    n, extra, budget, strategy
):
    words = n + min(extra, 2 * n)
    (epsilon,) = epsilon_per_token(strategy, budget, np.array([n]), np.array([words])).tolist()
    exact = n * Fraction(epsilon)
    assert exact <= Fraction(budget)
    assert n * epsilon == exact and float(exact) == exact  # every partial sum has fewer bits still
    parts = words if strategy in ("S1", "S2") else n
    assert (
        epsilon == pytest.approx(budget / parts, rel=2**-30) and epsilon <= Fraction(budget) / parts
    )


@given(st.integers(1, 10**6), BUDGETS, st.floats(1e-9, 1e9), STRATEGIES)
def test_no_token_gets_more_than_the_limit(n, budget, cap, strategy):
    (epsilon,) = epsilon_per_token(strategy, budget, np.array([n]), np.array([n]), cap).tolist()
    assert 0 < epsilon <= cap and n * Fraction(epsilon) <= Fraction(budget)
    assert epsilon == pytest.approx(min(cap, budget / n), rel=2**-30)


@pytest.mark.parametrize(
    ("given", "total", "cap"),
    [
        ({"base_epsilon": 2.0, "budget": None, "average_words": 20.0}, 40.0, 4.0),
        ({"budget": 30.0, "average_words": 20.0}, 30.0, 3.0),
        ({"budget": 30.0, "max_token_epsilon": 0.5}, 30.0, 0.5),
        (
            {
                "base_epsilon": 2.0,
                "budget": None,
                "average_words": 20.0,
                "max_token_epsilon": "none",
            },
            40.0,
            inf,
        ),
    ],
)
def test_the_limit_of_a_token_is_twice_the_base_epsilon(given, total, cap):
    engine = toy_engine("tem", "S1", **given)
    budget = settings.document_budget(engine.settings, engine.model)
    assert (budget.total, budget.cap) == (total, cap)


def test_policy_decides_per_class():
    kind = np.array([0, 1, 2, 3, 1], dtype=np.int8)
    known = np.array([True, True, True, False, False])
    paper = Policy.of("S1", "paper", "keep", "sample")
    assert paper.actions(kind, known).tolist() == [PERTURBED, KEPT, KEPT, SAMPLED, KEPT]
    other = Policy.of("S3", "paper", "drop", "keep")
    assert other.actions(kind, known).tolist() == [PERTURBED, PERTURBED, DROPPED, KEPT, KEPT]
    # A stop word without a vector cannot be perturbed: it is treated as unknown.
    assert Policy.of("S3", "perturb", "perturb", "sample").actions(kind, known)[4] == SAMPLED


LIST = frozenset({"police", "south"})
SHARES = BudgetShares(stopwords=20, numbers=50, listed=20, words=LIST, list_sha256="0" * 64)
SIX = DocumentBudget(6.0, 3.0)
ROWS = [
    ["the fire, new water"],
    ["police"],
    ["the new the south"],
    [""],
    ["zorblax"],
]


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("the", STOPWORDS),
        ("42", NUMBERS),
        ("3.14", NUMBERS),
        ("b2b", OTHER),
        ("police", LISTED),
        ("south_wales", LISTED),
        ("new_york", OTHER),
        ("of_the", OTHER),
        (",", OTHER),
    ],
)
def test_the_token_alone_decides_its_class(token, expected):
    assert SHARES.class_of(token) == expected


@pytest.mark.parametrize("share", [0, -1, 0.005, 0.333, 10.01, float("nan"), float("inf")])
def test_a_share_is_a_number_of_hundredths(share):
    with pytest.raises(ValueError, match=r"in steps of 0\.01"):
        parts_of(share)
    assert [parts_of(share) for share in (0.01, 0.29, 0.57, 1, 10.0)] == [1, 29, 57, 100, 1000]


def spent(engine, rows=ROWS, budget=SIX):
    """ε of the tokens of each row that the engine plans."""
    return [structure.epsilon.tolist() for structure in structures_of(engine, rows, budget)]


def test_shares_by_hand():
    """the: .2, fire, new, water: 1 each: 6 / 3.2; police alone: its share of the cap, .2 · 3; a
    comma gets nothing."""
    first, police, third, empty, unknown = spent(toy_engine("madlib", "S1", shares=SHARES))
    whole = 6 / 3.2
    assert first == pytest.approx([whole / 5, whole, 0, whole, whole], rel=1e-9)
    assert police == pytest.approx([0.6], rel=1e-9) and (empty, unknown) == ([], [0])
    assert third == pytest.approx([0.6, 3, 0.6, 0.6], rel=1e-9)


def test_a_share_above_one_is_within_the_cap():
    police, fire = spent(
        toy_engine("madlib", "S1", shares=BudgetShares(listed=400, words=LIST)),
        [["police"], ["fire"]],
    )
    assert (
        police == pytest.approx([3.0], rel=1e-9)
        and police[0] <= 3.0
        and fire == pytest.approx([0.75], rel=1e-9)
    )


def test_in_s2_a_part_is_a_part_of_a_word():
    """new_south_wales is listed and has three words, fire_police two: 6 / (3·.2 + 2·.2 + 1)."""
    engine = toy_engine("madlib", "S2", shares=SHARES)
    (epsilon,) = spent(engine, [["new south wales fire police water"]], DocumentBudget(6.0, 100.0))
    assert epsilon == pytest.approx([0.6, 0.6, 3.0], rel=1e-9)


def test_what_falls_to_words_that_are_not_perturbed_stays_unspent():
    """A kept word has no class, with or without shares of classes, so the share of a kept stop word
    raises the ε of no other word."""
    for shares, expected in ((None, [2.0, 0, 2.0]), (SHARES, [6 / 2.2, 0, 1.2 / 2.2])):
        engine = toy_engine("madlib", "S1", shares=shares, policy=Policy("keep", "keep", "sample"))
        (epsilon,) = spent(engine, [["fire the police"]], DocumentBudget(6.0, 100.0))
        assert epsilon == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("strategy", ["S1", "S2"])
def test_copies_count_as_words_and_pay_nothing(strategy):
    engine = toy_engine("madlib", strategy, consistent=True)
    (epsilon,) = spent(engine, [["fire water fire fire"]], DocumentBudget(6.0, 100.0))
    assert epsilon == pytest.approx([1.5, 1.5, 0, 0], rel=1e-9)


@pytest.mark.parametrize("strategy", ["S3", "S4"])
def test_copies_share_no_budget_that_tokens_divide(strategy):
    engine = toy_engine("madlib", strategy, consistent=True)
    (epsilon,) = spent(engine, [["fire water fire fire"]], DocumentBudget(6.0, 100.0))
    assert epsilon == pytest.approx([3.0, 3.0, 0, 0], rel=1e-9)


def test_every_token_has_the_epsilon_however_long_its_text():
    counts = TokenCounts(*np.array([[9, 4, 2, 5], [9, 4, 2, 5], [6, 3, 0, 5], [9, 4, 2, 5]]))
    budgets = of_every_token(counts, np.array(["a", "a", "a", "b"]), 1.5)
    assert budgets.epsilon_per_token.tolist() == [1.5, 1.5, 0.0, 1.5]
    assert budgets.budget.tolist() == [9.0, 9.0, 9.0, 7.5]
    assert budgets.divisor.tolist() == counts.n_perturbed.tolist()


PARTS = st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 10_000)), min_size=1, max_size=4)


@given(PARTS, BUDGETS, st.floats(1e-9, 1e9))
def test_sums_are_exact_and_never_above_budget_or_cap(classes, total, cap):
    n_parts = sum(parts * n for parts, n in classes)
    most = max(parts for parts, _ in classes)
    if not n_parts:
        return
    counts = np.array([n_parts])
    (part,) = epsilon_per_part("S3", DocumentBudget(total, cap), counts, counts, most).tolist()
    each = [part * parts for parts, _ in classes]
    assert all(
        Fraction(epsilon) == Fraction(part) * parts
        for epsilon, (parts, _) in zip(each, classes, strict=True)
    )
    exact = sum(Fraction(epsilon) * n for epsilon, (_, n) in zip(each, classes, strict=True))
    values = np.repeat(each, [min(n, 500) for _, n in classes])
    assert float(values.sum()) == float(np.cumsum(values[::-1])[-1]) if len(values) else True
    assert exact <= Fraction(total) and max(each) <= cap and part > 0
    assert part == pytest.approx(min(cap / most, total / n_parts), rel=2**-20)


@pytest.mark.parametrize("strategy", ["S1", "S2", "S3"])
@pytest.mark.parametrize("consistent", [False, True])
def test_counts_before_the_noise_are_what_is_spent_after_it(strategy, consistent):
    engine = toy_engine("madlib", strategy, shares=SHARES, consistent=consistent)
    batch = Batch(ROWS, [(str(row),) for row in range(len(ROWS))])
    worker = engine.worker()
    counted = worker.count(batch)
    planned = engine.spends(counted, SIX)
    done = worker.rewrite(batch, SIX)
    assert np.array_equal(planned, done.spent) and (done.spent <= SIX.total).all()
    log = done.tokens.to_pandas()
    assert log.groupby("row")["epsilon"].sum().tolist() == [
        done.spent[row] for row in sorted(set(log["row"]))
    ]
    assert log["share"].tolist()[:5] == ["stopwords", "other", "other", "other", "other"]
    assert log["share"][log["row"] == 1].tolist() == ["listed"]


def test_the_bound_is_that_of_the_shares():
    engine = toy_engine("madlib", "S1", shares=SHARES)
    claim = measured("madlib", "S1", shares=SHARES)
    fire, new, the = structures_of(engine, [["the fire"], ["the new"], ["fire the"]], SIX)
    assert between(claim, fire, new, np.array([1.0, 2.0])).nats == pytest.approx(
        0.6 * 1.0 + 3.0 * 2.0
    )
    with pytest.raises(NoBoundError, match="they differ in the ε_i"):
        between(claim, fire, the, np.zeros(2))


def test_a_class_of_one_word_is_refused():
    with pytest.raises(ParameterError, match=r"only one word .* share 0\.5 \(stopwords\)"):
        toy_engine("madlib", "S1", shares=BudgetShares(stopwords=50))
    # two share a share
    toy_engine("madlib", "S1", shares=BudgetShares(stopwords=50, listed=50, words=LIST))
