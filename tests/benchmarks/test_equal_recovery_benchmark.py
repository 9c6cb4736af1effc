"""The benchmark finds the ε of a level, and knows the genre of a film from other reviews alone."""

import math

import pytest

from benchmarks.equal_recovery import found_epsilons
from benchmarks.problems import Problem, genres


def recovered(epsilon: float) -> float:
    """Return a toy recovery curve, which has a floor: context alone names some words, whatever the
    output says.
    """
    return 0.07 + 0.93 / (1 + (12 / epsilon) ** 4)


@pytest.mark.parametrize("tried", [[], [7.0, 9.0, 14.0], [100.0]])
def test_the_epsilon_of_a_level_is_found_whatever_was_tried_before(tried: list[float]) -> None:
    found = dict(found_epsilons(recovered, tried, (0.5, 128.0), (0.05, 0.1, 0.5)))
    assert found[0.05] is None
    assert recovered(found[0.1] or math.nan) == pytest.approx(0.1, abs=0.01)
    assert recovered(found[0.5] or math.nan) == pytest.approx(0.5, abs=0.01)


def test_a_review_does_not_name_the_genre_of_its_own_film() -> None:
    texts = ["Pure horror!", "Horror, and a comedy.", "A fine film.", "A comedy."]
    assert genres(["a", "a", "a", "b"], texts) == [None, "horror", None, None]


def test_f1_is_that_of_the_documents_and_of_each_draw_of_them() -> None:
    problem = Problem(
        "", "", {"utility": "label"}, texts=["x"] * 4, classes=[("0",), ("1",), ("1",), ("0",)]
    )
    f1 = problem.f1("0110", "utility")
    assert f1[0] == 1
    assert problem.f1("0111", "utility")[0] == pytest.approx((2 / 3 + 4 / 5) / 2)
