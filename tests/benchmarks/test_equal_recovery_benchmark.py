"""The benchmark finds the ε of a level, and knows the genre of a film from other reviews alone."""

import math

import pytest

from benchmarks.equal_recovery import (
    CLEAN,
    CLEAN_LEVEL,
    LEVELS,
    ROWS,
    Bench,
    Found,
    Rewriting,
    found_epsilons,
)
from benchmarks.problems import Problem, genres

WORDS = ("house", "garden", "river", "music", "doctor", "winter")


def recovered(epsilon):
    """Return a toy recovery curve, which has a floor: context alone names some words, whatever the
    output says.
    """
    return 0.07 + 0.93 / (1 + (12 / epsilon) ** 4)


@pytest.mark.parametrize("tried", [[], [7.0, 9.0, 14.0], [100.0]])
def test_the_epsilon_of_a_level_is_found_whatever_was_tried_before(tried):
    found = dict(found_epsilons(recovered, tried, (0.5, 128.0), (0.05, 0.1, 0.5)))
    assert found[0.05] is None
    assert recovered(found[0.1] or math.nan) == pytest.approx(0.1, abs=0.01)
    assert recovered(found[0.5] or math.nan) == pytest.approx(0.5, abs=0.01)


def test_a_review_does_not_name_the_genre_of_its_own_film():
    texts = ["Pure horror!", "Horror, and a comedy.", "A fine film.", "A comedy."]
    assert genres(["a", "a", "a", "b"], texts) == [None, "horror", None, None]


def test_f1_is_that_of_the_documents_and_of_each_draw_of_them():
    problem = Problem(
        "", "", {"utility": "label"}, texts=["x"] * 4, classes=[("0",), ("1",), ("1",), ("0",)]
    )
    f1 = problem.f1("0110", "utility")
    assert f1[0] == 1
    assert problem.f1("0111", "utility")[0] == pytest.approx((2 / 3 + 4 / 5) / 2)


def test_the_table_says_how_often_sources_are_found_again():
    problem = Problem(
        "A set",
        "",
        {"utility": "label"},
        texts=["x"] * 4,
        classes=[("0",), ("1",), ("1",), ("0",)],
        n_read=2,
    )
    said = {"predicted": {"utility": "0110"}, "nats": 7.0, "texts": ["x"]}
    linkage = {"structure": 0.784, "naive": 0.5, "likelihood": 0.812}
    read = {"epsilon": 3.0, "recovered": 0.1, "rare": 0.0, "by_word": 0.1, "linkage": linkage}
    rows = [
        {"problem": "A set", "rewriting": list(rewriting), "level": level, **said, **more}
        for rewriting, level, more in (
            (CLEAN, CLEAN_LEVEL, {}),
            *((ROWS[0], level, read) for level in LEVELS),
        )
    ]
    *_, head, _, row = Found(problem, rows).table().splitlines()
    cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert cells["structure, %"] == "78 / 78 / 78 / 78"
    assert (cells["naive, %"], cells["likelihood, %"]) == ("50 / 50 / 50 / 50", "81 / 81 / 81 / 81")


@pytest.mark.slow
def test_sources_are_looked_for_among_the_other_texts():
    texts = [f"we saw the {one} and the {two} today" for one in WORDS for two in WORDS]
    problem = Problem("A set", "", {}, texts=texts, classes=[], n_train=20, n_read=10)
    found = Bench([problem], None).found_again("A set", Rewriting("tem"), 200.0)
    # Hardly a word changes at this ε, and every structure is the same.
    assert found["structure"] == pytest.approx(1 / len(texts), rel=0.5)
    assert found["naive"] > 0.9 and found["likelihood"] > 0.9
