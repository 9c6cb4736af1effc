"""The shape checks, on numbers made to have the shape and numbers made not to, and on those that the papers print."""

import pytest

from examples.replication import claims
from examples.replication.claims import Comparison, ReplicationClaim
from examples.replication.literature import MEASURES, PUBLISHED_CSV, parse
from lexveil.evaluation.metrics.attack import ADAPTIVE, STATIC
from lexveil.evaluation.metrics.similarity import COSINE
from lexveil.evaluation.metrics.utility import ON_CLEAN_MICRO
from lexveil.report.formatting import MeanSd
from lexveil.report.records import MechanismDeniability

PUBLISHED = parse(PUBLISHED_CSV.read_text(encoding="utf-8"))


def line(measure, mechanism, strategy, at, error=0.01):
    return {(measure.name, (mechanism, strategy, float(x))): MeanSd(y, 0.1, error) for x, y in at.items()}


def printed(measure, table, paper="CLMLDP"):
    """Printed figures as values, without a spread."""
    return {
        (measure.name, (one.mechanism, one.strategy, one.epsilon)): one.share
        for one in PUBLISHED
        if (one.paper, one.table) == (paper, table) and one.measure in MEASURES[measure]
    }


def measured(statistic, at, quartile=1.0):
    other = "s_w" if statistic == "n_w" else "n_w"
    rows = [
        {
            "epsilon": x,
            "n_words": 100,
            statistic: None if y is None else {"mean": y, "q25": y - quartile, "q75": y + quartile},
            other: None,
        }
        for x, y in at.items()
    ]
    return MechanismDeniability("f", {"mechanism": "madlib", "segmentation": "gst", "statistics": rows})


def test_cosine_that_rises_holds():
    shape = claims.cosine_rises({"a": line(COSINE, "madlib", "S1", {10: 0.5, 1: 0.2, 50: 0.5})})
    assert shape.verdict == "holds" and len(shape.comparisons) == 3  # two steps, and first against last
    assert shape.evidence == "smallest margin 0.000 (spread 0.014): a, madlib, S1, ε 10 and 50: 0.500 and 0.500"


def test_cosine_that_falls_does_not_hold():
    shape = claims.cosine_rises({"a": line(COSINE, "madlib", "S1", {1: 0.5, 10: 0.2})})
    assert (shape.verdict, shape.n_within, shape.n_beyond) == ("does not hold", 0, 1)
    assert shape.evidence == "largest shortfall 0.300 (spread 0.014): a, madlib, S1, ε 1 and 10: 0.500 and 0.200"


def test_a_fall_smaller_than_the_spread_is_said():
    shape = claims.cosine_rises({"a": line(COSINE, "madlib", "S1", {1: 0.5, 10: 0.49, 50: 0.9}, error=0.01)})
    assert (shape.verdict, shape.n_within, shape.n_beyond) == ("holds within the spread", 1, 0)
    shape = claims.cosine_rises({"a": line(COSINE, "madlib", "S1", {1: 0.5, 10: 0.49, 50: 0.9}, error=0.007)})
    assert (shape.verdict, shape.n_within, shape.n_beyond) == ("does not hold", 0, 1)


def test_small_steps_down_add_up():
    falling = {x: 0.5 - 0.008 * x for x in (1, 2, 3, 4)}
    shape = claims.cosine_rises({"a": line(COSINE, "madlib", "S1", falling)})
    assert (shape.n_within, shape.n_beyond, shape.verdict) == (3, 1, "does not hold")


def test_one_epsilon_or_a_flat_line_says_nothing():
    for at in ({1: 0.5}, {1: 0.5, 10: 0.5}):
        shape = claims.cosine_rises({"a": line(COSINE, "madlib", "S1", at)})
        assert shape.verdict == "cannot be said" and shape.evidence.startswith("needs the cosine of runs at two")


def test_strategies_are_compared_at_larger_epsilons_only():
    of = {}
    for strategy, at in (("S1", {1: 0.9, 5: 0.2}), ("S2", {1: 0.5, 5: 0.4}), ("S3", {1: 0.1, 5: 0.6})):
        of |= line(COSINE, "madlib", strategy, at)
    shape = claims.strategies_in_order({"a": of})
    assert shape.verdict == "holds" and len(shape.comparisons) == 2
    worse = claims.strategies_in_order({"a": of | line(COSINE, "madlib", "S3", {5: 0.3})})
    assert worse.verdict == "does not hold" and "ε 5, S2 and S3: 0.400 and 0.300" in worse.evidence
    assert claims.strategies_in_order({"a": line(COSINE, "madlib", "S3", {5: 0.3})}).verdict == "cannot be said"


def test_tem_against_madlib_at_the_same_strategy_and_epsilon():
    of = line(ON_CLEAN_MICRO, "madlib", "S1", {1: 0.5, 5: 0.6}) | line(ON_CLEAN_MICRO, "tem", "S1", {1: 0.7, 10: 0.1})
    shape = claims.tem_keeps_more({"a": of})
    assert shape.verdict == "holds" and [one.gap for one in shape.comparisons] == [pytest.approx(0.2)]
    worse = claims.tem_keeps_more({"a": of | line(ON_CLEAN_MICRO, "tem", "S1", {1: 0.4})})
    assert worse.verdict == "does not hold"
    alone = claims.tem_keeps_more({"a": line(ON_CLEAN_MICRO, "tem", "S1", {1: 0.7})})
    assert alone.verdict == "cannot be said" and alone.evidence == "needs the utility of runs with tem and with madlib"


def test_lists_reach_a_high_cosine_by_epsilon_three():
    of = line(COSINE, "diffractor_tem", "S1", {1: 0.3, 3: 0.51, 5: 0.1}) | line(COSINE, "madlib", "S1", {3: 0.1})
    shape = claims.lists_are_similar({"a": of})
    assert shape.verdict == "holds" and len(shape.comparisons) == 1
    shape = claims.lists_are_similar({"a": line(COSINE, "diffractor_tem", "S1", {1: 0.3, 5: 0.9})})
    assert shape.verdict == "does not hold" and "ε 1, 0.5 and the cosine: 0.500 and 0.300" in shape.evidence
    assert claims.lists_are_similar({"a": line(COSINE, "diffractor_tem", "S1", {5: 0.9})}).verdict == "cannot be said"


def test_deniability_rises_and_falls():
    assert claims.comes_out_as_itself_more_often([measured("n_w", {1.0: 2, 10.0: 60, 50.0: None})]).verdict == "holds"
    assert claims.comes_out_as_itself_more_often([measured("n_w", {1.0: 60, 10.0: 2})]).verdict == "does not hold"
    assert claims.fewer_words_come_out([measured("s_w", {1.0: 80, 10.0: 20})]).verdict == "holds"
    shape = claims.fewer_words_come_out([measured("s_w", {1.0: 20, 10.0: 80})])
    assert shape.verdict == "does not hold" and "ε 10 and 1: 80.000 and 20.000" in shape.evidence


def test_spread_of_deniability_comes_from_its_quartiles():
    # ± 5 around each mean, 100 words: (10 / 1.349) / √100 = 0.741 a side, 1.048 for both.
    (one,) = claims.comes_out_as_itself_more_often([measured("n_w", {1.0: 21.0, 10.0: 20.0}, quartile=5.0)]).comparisons
    assert one.spread == pytest.approx(1.0483, abs=1e-4) and not one.is_beyond and one.is_against


def test_static_need_be_weaker_in_most_runs_only():
    def attacks(*gaps):
        of = {}
        for epsilon, gap in enumerate(gaps, 1):
            of |= line(STATIC, "madlib", "S1", {epsilon: 0.5}) | line(ADAPTIVE, "madlib", "S1", {epsilon: 0.5 + gap})
        return claims.static_is_weaker({"a": of})

    assert attacks(0.1, 0.2, -0.3).verdict == "holds"
    assert attacks(0.1, -0.3).verdict == "does not hold"  # half is not most
    assert attacks(0.1, -0.3, -0.001).verdict == "holds within the spread"
    assert attacks(0.1, -0.3, -0.3).verdict == "does not hold"
    assert attacks().verdict == "cannot be said"


def test_papers_have_the_shapes_that_are_taken_from_them():
    table_1 = printed(COSINE, "1")
    shape = claims.cosine_rises({"four": table_1})
    against = [one.where for one in shape.comparisons if one.is_against]
    assert against == ["four, madlib, S4, ε 0.1 and 0.5"]  # 0.17 and 0.15: the paper's own exception
    assert claims.strategies_in_order({"four": table_1}).verdict == "holds"
    lists = {key: value for key, value in printed(COSINE, "2", "1-Diffractor").items() if "best" not in key[1][0]}
    assert claims.lists_are_similar({"three": lists}).verdict == "holds"
    assert claims.lists_are_similar(
        {"three": {key: value for key, value in lists.items() if key[1][2] <= 0.5}}
    ).verdict == ("cannot be said")
    attacks = printed(STATIC, "4") | printed(ADAPTIVE, "4")
    assert claims.static_is_weaker({"yelp": attacks}).verdict == "holds"
    tem = claims.tem_keeps_more({"imdb": printed(ON_CLEAN_MICRO, "text on Figure 1", "TEM")})
    assert tem.verdict == "holds" and tem.comparisons[0].gap == pytest.approx(0.23)


def test_without_a_spread_every_shortfall_counts():
    one = Comparison("w", MeanSd(0.5, None), MeanSd(0.4999, None))
    assert one.spread is None and one.is_beyond
    assert (
        ReplicationClaim("c", "s", [one], "m").evidence
        == "largest shortfall 0.000 (spread not known): w: 0.500 and 0.500"
    )


def test_table_has_one_row_per_claim():
    table = claims.shapes_table(claims.shapes({}, []))
    assert len(table.rows) == 7 and {row[2] for row in table.rows} == {"cannot be said"}
