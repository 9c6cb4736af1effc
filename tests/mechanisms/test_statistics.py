"""N_w and S_w: counted, computed, and the two against each other."""

import json

import numpy as np
import pytest

from lexveil.core.mechanisms import deniability
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.noise.streams import stream
from tests.mechanisms.toys import Known

LOADED = Known([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.1, 0.1, 0.8]])


@pytest.mark.parametrize(("wrong", "fits"), [(0.0, True), (0.1, False)])
def test_counts_agree_with_expectations(wrong, fits):
    """10,000 rows of 5 draws of each word, means within 6 standard errors; off by 0.1 they are
    not."""
    n = 10_000
    draws = 5
    ids = np.repeat(np.arange(3), n)
    drawn = deniability.draw_replacements(LOADED, ids, 1.0, draws, stream(1, "agree"))
    same = deniability.unchanged_counts(ids, drawn).reshape(3, n) / draws
    many = deniability.distinct_counts(drawn).reshape(3, n)
    exact, expected = deniability.expectations(LOADED, np.arange(3), 1.0, draws)
    off_same = np.abs(same.mean(axis=1) - exact + wrong).max()
    off_many = np.abs(many.mean(axis=1) - expected).max()
    assert (off_same < 6 * 0.5 / np.sqrt(n * draws)) == fits
    assert off_many < 6 * many.std(axis=1).max() / np.sqrt(n)


def test_a_row_of_the_table():
    ids = deniability.choose_words(200, 100, stream(1, "words"))
    assert len(set(ids.tolist())) == 100 and (np.diff(ids) > 0).all()
    row = json.loads(
        json.dumps(deniability.statistics(LOADED, np.arange(3), 2.0, stream(1, "row"), n_draws=50))
    )
    assert (row["mechanism"], row["epsilon"], row["n_words"], row["n_draws"]) == (
        "loaded",
        2.0,
        3,
        50,
    )
    assert row["n_w_exact"]["mean"] == pytest.approx((25 + 50 + 40) / 3)
    madlib = Madlib(np.random.default_rng(3).standard_normal((20, 4)).astype(np.float32))
    assert deniability.statistics(madlib, np.arange(3), 1.0, stream(1, "row"))["n_w_exact"] is None
