"""Inference error and utility loss by hand, exact against drawn, and the steps of Algorithm 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lexveil.errors import ParameterError, RequestError
from lexveil.evaluation.inference_error import (
    GRID,
    Sampling,
    Tradeoff,
    doubling,
    exact,
    measure,
    measure_together,
    sampled,
    select,
)
from lexveil.mechanisms.diffractor_geometric import DiffractorGeometric
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.tem import Tem
from lexveil.mechanisms.vickrey import Vickrey

LABELS = np.array([0, 0, 1])
PRIOR = np.array([0.5, 0.3, 0.2])


class Loaded:
    """Draws from a table, whatever epsilon."""

    name = "loaded"
    metric = "none"
    guarantee = "none"

    def __init__(self, law: Any) -> None:
        self.law = np.array(law)
        self.size = len(self.law)

    def noise(self, epsilon: Any, rng: np.random.Generator) -> Any:
        return rng.random((len(epsilon), 1))

    def replace(self, ids: Any, epsilon: Any, noise: Any) -> Any:
        return (noise >= self.law.cumsum(axis=1)[ids, :-1]).sum(axis=1)


class Known(Loaded):
    def log_pmf(self, ids: Any, epsilon: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(self.law[ids])


LAW = [[0.6, 0.4, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]


def by_hand() -> tuple[float, float]:
    """Joint π·Pr: output 0 from words 0, 1 with 0.3, 0.15; output 1 from word 0 with 0.2; output 2 from 1, 2 with

    0.15, 0.2. The guess is right with (0.3² + 0.15²)/0.45 + 0.2²/0.2 + (0.15² + 0.2²)/0.35. Of the labels, word 1 as 2
    is wrong alone.
    """
    return 1 - (0.1125 / 0.45 + 0.2 + 0.0625 / 0.35), 0.15


def test_exact_by_hand() -> None:
    assert exact(Known(LAW), 1.0, LABELS, PRIOR) == pytest.approx(by_hand())
    made = measure(Known(LAW), 1.0, LABELS, stream(1, "unused"), PRIOR)
    assert made == Tradeoff(1.0, *map(pytest.approx, by_hand()), 0.0, 0.0, 0)


def test_bounds_by_hand() -> None:
    """A mechanism that says everything, and one that says nothing, over 4 equal words of two labels."""
    uniform, labels = np.full(4, 1 / 4), np.array([0, 1, 0, 1])
    assert exact(Known(np.eye(4)), 1.0, labels, uniform) == pytest.approx((0, 0))
    assert exact(Known(np.full((4, 4), 1 / 4)), 1.0, labels, uniform) == pytest.approx((3 / 4, 1 / 2))
    assert sampled(Loaded(np.eye(4)), 1.0, labels, uniform, stream(1, "eye"), 5) == pytest.approx((0, 0))


def test_drawn_by_hand() -> None:
    """Two draws of two equal words, read off a row of numbers: 0 gives 0, 1; 1 gives 1, 1.

    Output 0 of word 0 has no other draw: guessed, 1/4. Its output 1 is like two draws of word 1 and none of its own:
    never. Those of word 1 are like one other of word 1 and one of two of word 0: 1/2 to 1/4, so 2/3 of 1/2.
    """

    class Row(Loaded):
        def noise(self, epsilon: Any, rng: Any) -> Any:
            return np.array([[0.1], [0.9], [0.9], [0.9]])

    got = sampled(Row(np.full((2, 2), 0.5)), 1.0, np.array([0, 1]), np.full(2, 0.5), stream(1, "row"), 2)
    assert got == pytest.approx((1 - 1 / 4 - 1 / 3, 1 / 4))


@pytest.mark.parametrize(("scale", "agrees"), [(1.0, True), (1.5, False)])
@pytest.mark.parametrize("kind", ["tem", "diffractor"])
def test_drawn_agrees_with_exact(kind: str, scale: float, agrees: bool) -> None:
    """60 words, 20 runs of 100 draws, within 6 standard errors and 0.005 of bias; drawn at another ε they are not."""
    rng = np.random.default_rng(2)
    mechanism: Any = (
        Tem(rng.standard_normal((60, 4)).astype(np.float32))
        if kind == "tem"
        else DiffractorGeometric([rng.permutation(60).astype(np.int32)])
    )
    labels, prior = rng.integers(0, 2, 60), rng.dirichlet(np.ones(60))
    epsilon = 6.0 if kind == "tem" else 0.4
    runs = np.array(
        [sampled(mechanism, epsilon * scale, labels, prior, stream(run, kind, "runs")) for run in range(20)]
    )
    off = np.abs(runs.mean(axis=0) - exact(mechanism, epsilon, labels, prior))
    allowed = 6 * runs.std(axis=0, ddof=1) / np.sqrt(20) + 0.005
    assert (off < allowed).all() == agrees
    assert 0.1 < exact(mechanism, epsilon, labels, prior)[0] < 0.95


def test_few_draws_do_not_flatter_the_adversary() -> None:
    """Of 400 words that become any other, 1 in 400 is guessed; an adversary who saw the draw would guess 1 in 10."""
    n = 400
    error, _ = sampled(Loaded(np.full((n, n), 1 / n)), 1.0, np.zeros(n), np.full(n, 1 / n), stream(3, "few"), 10)
    assert 1 - error < 2 / n


def test_few_draws_do_not_flatter_the_mechanism() -> None:
    """Outputs that only one word has give it away, also those that came up once."""
    law = np.zeros((20, 20))
    law[0, :10], law[1, 10:] = 1 / 10, 1 / 10
    law[2:, 19] = 1
    prior = np.array([0.5, 0.5] + [0.0] * 18)
    assert sampled(Loaded(law), 1.0, np.zeros(20), prior, stream(3, "one"), 4)[0] == pytest.approx(0, abs=1e-12)


def test_madlib_and_vickrey_as_in_the_paper() -> None:
    """More ε, less error and less loss; at large ε the second-nearest word hides what the nearest gives away."""
    rng = np.random.default_rng(4)
    labels = np.repeat([0, 1], 50)
    vectors = (rng.standard_normal((100, 4)) + 3 * labels[:, None]).astype(np.float32)
    rows = [measure(Madlib(vectors), epsilon, labels, stream(1, "m"), n_runs=3) for epsilon in (0.5, 5.0, 50.0)]
    errors, losses = [one.inference_error for one in rows], [one.utility_loss for one in rows]
    assert errors == sorted(errors, reverse=True) and errors[0] > 0.9 and errors[-1] < 0.1
    assert losses == sorted(losses, reverse=True) and losses[0] > 0.2 and losses[-1] < 0.01
    mixed = measure(Vickrey(vectors, t=0.75), 50.0, labels, stream(1, "v"), n_runs=3)
    assert mixed.inference_error > errors[-1] + 0.2 and mixed.n_runs == 3 and mixed.inference_error_sd < 0.05


def test_algorithm_2_step_by_step() -> None:
    """Losses at t = 0: 0.8, 0.4, 0.2, so C = 0.25 stops at ε = 4. There error rises to t = 0.6, loss with t."""
    asked = []

    def measured(t: float, epsilon: float) -> Tradeoff:
        asked.append((t, epsilon))
        return Tradeoff(epsilon, 0.3 + t * (1.2 - t), 0.8 / epsilon + 0.08 * t, 0, 0, 0)

    got = select(measured, 0.25, doubling(1.0))
    assert asked == [(0.0, 1.0), (0.0, 2.0), (0.0, 4.0), *((t, 4.0) for t in GRID)]
    assert (got.t, got.chosen.epsilon) == (0.6, 4.0)
    assert got.chosen.utility_loss <= 0.25 and len(got.tried) == 23
    # t = 0.6 costs 0.248; where 0.22 is allowed, 0.25 is the last that fits.
    assert select(measured, 0.22, doubling(1.0)).t == 0.25
    assert select(measured, 0.2001, doubling(1.0)).t == 0.0
    # At exactly C the loss is not yet small enough.
    assert select(measured, 0.2, doubling(1.0)).chosen.epsilon == 8.0
    assert select(measured, 0.25, doubling(1.0), grid=()).t == 0.0


def test_algorithm_2_takes_any_rising_row() -> None:
    def measured(t: float, epsilon: float) -> Tradeoff:
        return Tradeoff(epsilon, 0.5, 1 / epsilon, 0, 0, 0)

    assert select(measured, 0.25, [3.0, 4.0, 5.0, 6.0], grid=()).chosen.epsilon == 5.0
    assert list(doubling(3.0, 20.0)) == [3.0, 6.0, 12.0]


def test_algorithm_2_gives_up() -> None:
    def always(t: float, epsilon: float) -> Tradeoff:
        return Tradeoff(epsilon, 0.5, 0.5, 0, 0, 0)

    with pytest.raises(
        RequestError, match=r"from 1 to 64 keeps the utility loss below 0\.1; the smallest loss was 0\.5"
    ):
        select(always, 0.1, doubling(1.0, 64))
    with pytest.raises(ParameterError, match="greater than 0"):
        select(always, 0.0, doubling(1.0))
    for first, last in ((0.0, 1.0), (2.0, 1.0)):
        with pytest.raises(ParameterError, match="first epsilon"):
            list(doubling(first, last))


def test_each_t_on_shared_noise_is_what_it_is_alone() -> None:
    """The same generator gives the same draws, whether the other t are there or not."""
    rng = np.random.default_rng(6)
    vectors, labels = rng.standard_normal((80, 5)).astype(np.float32), rng.integers(0, 3, 80)
    family = [Vickrey(vectors, t=t) for t in (0.0, 0.4, 1.0)]
    finished: list[int] = []
    together = measure_together(
        family, 6.0, labels, stream(1, "shared"), sampling=Sampling(30, 2), advance=finished.append
    )
    alone = [measure(one, 6.0, labels, stream(1, "shared"), n_draws=30, n_runs=2) for one in family]
    assert together == alone and finished == [1, 1]
    assert together[0].inference_error < together[1].inference_error and together[0].utility_loss < 0.6
    assert together[0] != measure(family[0], 6.0, labels, stream(2, "shared"), n_draws=30, n_runs=2)


@pytest.mark.parametrize("case", ["other vectors", "other k", "input left out", "no Vickrey"])
def test_noise_is_not_shared_where_candidates_differ(case: str) -> None:
    """The first is measured as alone; the second goes on from the generator that the first left."""
    rng = np.random.default_rng(7)
    vectors, labels = rng.standard_normal((40, 3)).astype(np.float32), rng.integers(0, 2, 40)
    first = Vickrey(vectors, t=0.5)
    second: Any = {
        "other vectors": Vickrey(vectors + 1, t=0.5),
        "other k": Vickrey(vectors, t=[1.0, 1.0, 1.0], k=3),
        "input left out": Vickrey(vectors, t=0.5, exclude_input=True),
        "no Vickrey": Madlib(vectors),
    }[case]
    together = measure_together([first, second], 5.0, labels, stream(1, "two"), sampling=Sampling(10, 1))
    going_on = stream(1, "two")
    for one, got in zip((first, second), together, strict=True):
        alone = measure(one, 5.0, labels, going_on, n_draws=10, n_runs=1)
        assert (got.inference_error, got.utility_loss) == (alone.inference_error, alone.utility_loss)


def test_known_laws_stand_among_drawn_ones_in_order() -> None:
    made = measure_together(
        [Known(LAW), Loaded(LAW), Known(np.eye(3))], 1.0, LABELS, stream(1, "m"), PRIOR, Sampling(50, 3)
    )
    assert [one.n_runs for one in made] == [0, 3, 0]
    assert (made[0].inference_error, made[0].utility_loss) == pytest.approx(by_hand())
    assert (made[2].inference_error, made[2].utility_loss) == pytest.approx((0, 0))
    assert made[1].utility_loss == pytest.approx(0.15, abs=0.1)


def test_wrong_lists_are_refused() -> None:
    rng = stream(1, "wrong")
    with pytest.raises(ParameterError, match="holds 3 words, and there are 2 labels"):
        measure(Known(LAW), 1.0, LABELS[:2], rng)
    with pytest.raises(ParameterError, match=r"adds up to 1\.5"):
        measure(Known(LAW), 1.0, LABELS, rng, np.full(3, 0.5))
    with pytest.raises(ParameterError, match="at least 1 run of 2 draws"):
        measure(Loaded(LAW), 1.0, LABELS, rng, n_draws=1)
