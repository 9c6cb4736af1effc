"""Rank remapping: geometric over the neighbours of the output, and nothing but the output is used."""

import numpy as np
import pytest

from lexveil.embeddings.neighborhoods import nearest_words
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.rank_remap import RankRemap
from lexveil.mechanisms.registry import build_mechanism
from tests.mechanisms.toys import vectors

ON = {"rank_remap": {"enabled": True, "c": 0.5, "ranks": 6}}


@pytest.mark.parametrize("name", ["madlib", "mahalanobis", "vickrey"])
def test_it_wraps_what_comes_from_a_noisy_vector(name: str) -> None:
    mechanism = build_mechanism(name, vectors(), ON)
    assert isinstance(mechanism, RankRemap)
    plain = build_mechanism(name, vectors(), {"rank_remap": ON["rank_remap"] | {"enabled": False}})
    assert (mechanism.name, mechanism.metric, mechanism.guarantee) == (name, plain.metric, plain.guarantee)
    budgets, ids = np.full(200, 3.0), np.arange(200) % 12
    noise = mechanism.noise(budgets, stream(1, "x"))
    inner = plain.noise(budgets, stream(1, "x"))
    assert (noise[:, :-1] == inner).all()
    out, before = mechanism.replace(ids, budgets, noise), plain.replace(ids, budgets, inner)
    near = mechanism.search.nearest_k(vectors()[before].astype(float), 6)[0]
    assert (out[:, None] == near).any(axis=1).all() and (out != before).any()
    # The input plays no part: another id with the same noisy vector gives the same word.
    shifted = noise.copy()
    shifted[:, :5] += vectors()[ids].astype(float) - vectors()[0].astype(float)
    assert (mechanism.replace(np.zeros(200, dtype=np.int64), budgets, shifted) == out).all()


@pytest.mark.parametrize("ranks", [6, 64])
def test_lists_that_were_made_before_change_nothing(ranks: int) -> None:
    """Both are what a scan of all words gives."""
    some = np.random.default_rng(5).standard_normal((80, 5)).astype(np.float32)
    given = {"rank_remap": {"enabled": True, "c": 0.01, "ranks": ranks}}
    alone = build_mechanism("madlib", some, given)
    listed = build_mechanism("madlib", some, given, near=nearest_words(some, np.arange(50)))
    budgets, ids = np.full(400, 3.0), np.arange(400) % 80
    noise = alone.noise(budgets, stream(1, "x"))
    out = alone.replace(ids, budgets, noise)
    assert (listed.replace(ids, budgets, noise) == out).all()
    assert isinstance(alone, RankRemap)
    before = alone.inner.replace(ids, budgets, noise[:, :-1])
    order = np.argsort(np.linalg.norm(some[before].astype(float)[:, None] - some.astype(float)[None], axis=2), axis=1)
    assert (out == np.take_along_axis(order, alone.rank(budgets, noise[:, -1])[:, None], axis=1)[:, 0]).all()
