"""Which texts are compared and read, and what is written of them."""

import numpy as np
import pytest

from lexveil.evaluation.base import PerplexityScores
from lexveil.evaluation.encoder import Similarity
from lexveil.evaluation.metrics.perplexity import perplexity_entry
from lexveil.evaluation.metrics.similarity import similarity_entry
from lexveil.evaluation.text_quality import drawn, texts_of


def test_documents_are_drawn_at_random_up_to_the_limit() -> None:
    times = np.zeros(10, dtype=int)
    for seed in range(2000):
        rows = drawn([1] * 10, 3, np.random.default_rng(seed))
        assert len(set(rows.tolist())) == 3 and (np.diff(rows) > 0).all()
        times[rows] += 1
    assert (abs(times - 600) < 6 * np.sqrt(2000 * 0.3 * 0.7)).all()


@pytest.mark.parametrize(("limit", "n_drawn"), [(1, 1), (2, 1), (3, 1), (4, 2), (20, 10), (99, 10), (None, 10)])
def test_both_texts_of_a_pair_count(limit: int | None, n_drawn: int) -> None:
    assert len(drawn([2] * 10, limit, np.random.default_rng(1))) == n_drawn


def test_the_same_generator_draws_the_same() -> None:
    one, same, other = (drawn([1, 2] * 50, 30, np.random.default_rng(seed)).tolist() for seed in (1, 1, 2))
    assert one == same != other


def test_texts_of_pairs_stand_side_by_side() -> None:
    assert texts_of(["a", "b", "c"], [None, "d", ""], np.array([1, 2])) == ["b", "d", "c", ""]


def test_similarity_by_hand() -> None:
    """0.5 and 1 of three texts: mean 0.75, standard deviation 0.25·√2."""
    made = similarity_entry(Similarity(np.array([0.5, np.nan, 1.0]), 0, 1))
    assert made == {
        "left_out": None, "n_texts": 3, "n_compared": 2, "n_original_unknown": 0, "n_private_unknown": 1,
        "mean": 0.75, "sd": 0.353553391,
    }  # fmt: skip
    assert similarity_entry(Similarity(np.array([0.5]), 0, 0))["sd"] is None
    assert set(similarity_entry(Similarity(np.array([np.nan]), 1, 1))) == {"left_out"}


def test_perplexity_by_hand() -> None:
    """4 and 2 of texts of one and three tokens: mean 3, of all as one (4·8)^(1/4); a text without tokens has none."""
    scores = PerplexityScores(np.log([1 / 4, 1, 1 / 8]), np.array([1, 0, 3]), np.array([1, 0, 0]))
    made = perplexity_entry(scores)
    assert (made["n_texts"], made["n_tokens"], made["n_unknown"]) == (3, 4, 1)
    assert (made["mean"], made["corpus"]) == (3, pytest.approx(32**0.25))
    assert set(perplexity_entry(PerplexityScores(np.zeros(2), np.zeros(2, dtype=int), np.zeros(2, dtype=int)))) == {
        "left_out"
    }
