"""Rank remapping: geometric over the neighbours of the output, and nothing but the output is used."""

import numpy as np
import pytest

from lexveil.errors import ParameterError
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.rank_remap import RankRemap
from lexveil.mechanisms.registry import build_mechanism
from tests.mechanisms.toys import SAMPLES, fits, vectors

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


@pytest.mark.parametrize("name", ["tem", "truncated_gumbel"])
def test_it_leaves_others_alone(name: str) -> None:
    assert not isinstance(build_mechanism(name, vectors(), ON), RankRemap)


@pytest.mark.parametrize(("error", "follows"), [(1.0, True), (0.9, False), (1.1, False)])
def test_ranks_are_geometric(error: float, follows: bool) -> None:
    mechanism = build_mechanism("madlib", vectors(), ON)
    ranks = mechanism.rank(np.full(SAMPLES, 2.0), stream(1, "ranks").random(SAMPLES))
    assert fits(ranks, np.exp(-0.5 * 2.0 * error * np.arange(6))) == follows


def test_a_large_c_changes_nothing() -> None:
    some = {"rank_remap": {"enabled": True, "c": 1e5, "ranks": 6}}
    mechanism, plain = build_mechanism("madlib", vectors(), some), build_mechanism("madlib", vectors())
    budgets, ids = np.full(50, 3.0), np.arange(50) % 12
    noise = mechanism.noise(budgets, stream(1, "x"))
    assert (mechanism.replace(ids, budgets, noise) == plain.replace(ids, budgets, noise[:, :-1])).all()


@pytest.mark.parametrize(("c", "ranks"), [(0.0, 5), (-1.0, 5), (float("nan"), 5), (1.0, 0)])
def test_bad_parameters(c: float, ranks: int) -> None:
    with pytest.raises(ParameterError, match="rank_remap"):
        build_mechanism("madlib", vectors(), {"rank_remap": {"enabled": True, "c": c, "ranks": ranks}})
