"""Mechanisms that add noise to a vector: Mahalanobis and Vickrey against MADLIB, truncated Gumbel,
remapped ranks."""

import numpy as np
import pytest
from scipy.special import lambertw

from lexveil.base.errors import ParameterError
from lexveil.core.embeddings.neighborhoods import nearest_words
from lexveil.core.mechanisms.kernels import mahalanobis as kernels
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.mahalanobis import Mahalanobis
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.rank_remap import RankRemap
from lexveil.core.mechanisms.registry import Space, build_mechanism
from lexveil.core.mechanisms.truncated_gumbel import TruncatedGumbel
from lexveil.core.mechanisms.vickrey import Vickrey
from tests.mechanisms.toys import SAMPLES, draw, fits, vectors


def stretched():
    return vectors(60) * np.array([4, 2, 1, 0.5, 0.1], dtype=np.float32)


def test_lambda_0_is_madlib_bit_for_bit():
    some = stretched()
    budgets = np.geomspace(0.1, 50, 60)
    ids = np.arange(60)
    plain = Madlib(some)
    other = Mahalanobis(some, lambda_=0.0)
    noise = plain.noise(budgets, stream(1, "x"))
    assert (other.noise(budgets, stream(1, "x")) == noise).all()
    assert (other.replace(ids, budgets, noise) == plain.replace(ids, budgets, noise)).all()
    assert other.distance(ids, ids[::-1]) == pytest.approx(plain.distance(ids, ids[::-1]))


def test_noise_is_the_same_alone_and_among_others():
    """Bit for bit, whatever the number of rows and of threads: a matrix product of a library is
    not."""
    rng = np.random.default_rng(1)
    ball = rng.standard_normal((37, 60))
    root = rng.standard_normal((60, 60))
    together = np.zeros_like(ball)
    kernels.multiply(ball, root, together)
    assert together == pytest.approx(ball @ root)
    for size in (1, 5, 8):
        parts = np.zeros_like(ball)
        for start in range(0, len(ball), size):
            kernels.multiply(ball[start : start + size], root, parts[start : start + size])
        assert (parts == together).all()


IDS = np.arange(60) % 12
BUDGETS = np.geomspace(0.1, 50, 60)


def test_t_0_is_madlib_and_t_1_the_second():
    madlib = Madlib(vectors())
    noise = Vickrey(vectors(), t=0.5).noise(BUDGETS, stream(1, "x"))
    assert (noise[:, :-1] == madlib.noise(BUDGETS, stream(1, "x"))).all()
    first = madlib.replace(IDS, BUDGETS, noise[:, :-1])
    assert (Vickrey(vectors(), t=0.0).replace(IDS, BUDGETS, noise) == first).all()
    two = madlib.search.nearest_k(madlib.vectors[IDS] + noise[:, :-1], 2)[0]
    assert (two[:, 0] == first).all()
    assert (Vickrey(vectors(), t=1.0).replace(IDS, BUDGETS, noise) == two[:, 1]).all()


@pytest.mark.parametrize(("wrong", "follows"), [(1.0, True), (1.1, False)])
def test_choice_of_many(wrong, follows):
    t = np.array([0.5, 1.0, 1.5, 2.0])
    gaps = np.array([0.3, 0.5, 0.6, 0.9])
    uniform = stream(1, "many").random(SAMPLES)
    near = np.tile(np.arange(4), (SAMPLES, 1))
    chosen = Vickrey(vectors(), t=t.tolist(), k=4).choose(
        near, np.tile(gaps, (SAMPLES, 1)), uniform
    )
    assert fits(chosen, np.exp(-wrong * t * gaps * (1 if follows else 1.5))) == follows


def test_excluding_the_input_never_returns_it():
    """The exclusion voids the guarantee; without it, the word does come out."""
    for exclude in (True, False):
        vickrey = Vickrey(vectors(), t=0.5, exclude_input=exclude)
        assert (draw(vickrey, 3, 20.0, samples=2000) == 3).any() != exclude
        assert (vickrey.no_guarantee is None) != exclude


LINE = np.array([[0.0], [1.0], [2.5], [6.0]], dtype=np.float32)


def test_the_smallest_epsilon_is_named_and_sharp():
    """aΔmin > 1 means ε > (3 + 2(1 + ln V))/Δmin."""
    mechanism = TruncatedGumbel(LINE)
    assert (mechanism.smallest, mechanism.largest) == (1.0, 6.0)
    paper = TruncatedGumbel(LINE, calibration="paper")
    assert (
        np.isfinite(paper.scale(np.array([0.01, 1.0, 7.8, 1e6]))).all()
        and paper.no_guarantee is not None
    )
    limit = 3 + 2 * (1 + np.log(4))
    assert mechanism.smallest_epsilon == pytest.approx(limit)
    with pytest.raises(
        ParameterError, match=rf"more than {limit:.6g} per token.*calibration: paper"
    ):
        mechanism.noise(np.array([limit * 0.999]), stream(1))
    b = mechanism.scale(np.array([limit * 2]))[0]
    a = (2 * limit - 2 * (1 + np.log(4))) / 3
    w = 12 / b  # b = 2Δmax / min(W₀(2aΔmax), ln(aΔmin))
    assert w == pytest.approx(min(lambertw(12 * a).real, np.log(a)))


ON = {"rank_remap": {"enabled": True, "c": 0.5, "ranks": 6}}


@pytest.mark.parametrize("name", ["madlib", "mahalanobis", "vickrey"])
def test_it_wraps_what_comes_from_a_noisy_vector(name):
    mechanism = build_mechanism(name, Space(vectors()), ON)
    assert isinstance(mechanism, RankRemap)
    plain = build_mechanism(
        name, Space(vectors()), {"rank_remap": ON["rank_remap"] | {"enabled": False}}
    )
    assert (mechanism.name, mechanism.metric, mechanism.guarantee) == (
        name,
        plain.metric,
        plain.guarantee,
    )
    budgets = np.full(200, 3.0)
    ids = np.arange(200) % 12
    noise = mechanism.noise(budgets, stream(1, "x"))
    inner = plain.noise(budgets, stream(1, "x"))
    assert (noise[:, :-1] == inner).all()
    out = mechanism.replace(ids, budgets, noise)
    before = plain.replace(ids, budgets, inner)
    near = mechanism.search.nearest_k(vectors()[before].astype(float), 6)[0]
    assert (out[:, None] == near).any(axis=1).all() and (out != before).any()
    # The input plays no part: another id with the same noisy vector gives the same word.
    shifted = noise.copy()
    shifted[:, :5] += vectors()[ids].astype(float) - vectors()[0].astype(float)
    assert (mechanism.replace(np.zeros(200, dtype=np.int64), budgets, shifted) == out).all()


@pytest.mark.parametrize("ranks", [6, 64])
def test_lists_that_were_made_before_change_nothing(ranks):
    """The mechanism gives the result of a scan of all words, with and without lists."""
    some = np.random.default_rng(5).standard_normal((80, 5)).astype(np.float32)
    given = {"rank_remap": {"enabled": True, "c": 0.01, "ranks": ranks}}
    alone = build_mechanism("madlib", Space(some), given)
    listed = build_mechanism("madlib", Space(some, near=nearest_words(some, np.arange(50))), given)
    budgets = np.full(400, 3.0)
    ids = np.arange(400) % 80
    noise = alone.noise(budgets, stream(1, "x"))
    out = alone.replace(ids, budgets, noise)
    assert (listed.replace(ids, budgets, noise) == out).all()
    assert isinstance(alone, RankRemap)
    before = alone.inner.replace(ids, budgets, noise[:, :-1])
    order = np.argsort(
        np.linalg.norm(some[before].astype(float)[:, None] - some.astype(float)[None], axis=2),
        axis=1,
    )
    assert (
        out == np.take_along_axis(order, alone.rank(budgets, noise[:, -1])[:, None], axis=1)[:, 0]
    ).all()
