"""The mechanisms in use, on toys: exact where the law is closed-form, and by samples. Broken in a line, they fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from audit_toys import SAMPLES, distances_of, sampled, toy_vectors

from lexveil.auditing.exact import exact_audit
from lexveil.mechanisms.diffractor_geometric import DiffractorGeometric
from lexveil.mechanisms.diffractor_tem import DiffractorTem
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.mahalanobis import Mahalanobis
from lexveil.mechanisms.rank_remap import RankRemap
from lexveil.mechanisms.registry import ClosedForm
from lexveil.mechanisms.tem import Tem
from lexveil.mechanisms.vickrey import Vickrey

EPSILONS = [1.0, 10.0]


def order_of(vectors: Any) -> Any:
    return np.argsort(vectors[:, 0], kind="stable")


CORRECT: dict[str, Callable[[Any], Any]] = {
    "madlib": Madlib,
    "mahalanobis": Mahalanobis,
    "vickrey": Vickrey,
    "vickrey t=0": partial(Vickrey, t=0.0),
    "vickrey k=3": partial(Vickrey, t=[0.1, 0.5, 2.0], k=3),
    "madlib, ranks remapped": lambda vectors: RankRemap(Madlib(vectors), c=0.5, ranks=8),
    "tem": Tem,
    "tem beta .5": partial(Tem, beta=0.5),
    "geometric": lambda vectors: DiffractorGeometric(order_of(vectors)),
    "geometric on two lists": lambda vectors: DiffractorGeometric([order_of(vectors), order_of(-vectors[:, ::-1])]),
    "1-D tem": lambda vectors: DiffractorTem(order_of(vectors)),
    "1-D tem beta .5": lambda vectors: DiffractorTem(order_of(vectors), beta=0.5),
}


def spread(shape: str, epsilon: float) -> Any:
    """The toys, and forty words in ten dimensions for the laws that are exact."""
    if shape == "cloud":
        return (np.random.default_rng(8).standard_normal((40, 10)) / epsilon).astype(np.float32)
    return toy_vectors(shape, epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 50.0])
@pytest.mark.parametrize("shape", ["line", "plane", "cloud"])
@pytest.mark.parametrize("name", CORRECT)
def test_closed_forms(name: str, shape: str, epsilon: float) -> None:
    """All pairs, all outputs; at ε of the spacing of the words and at five times that."""
    for finer in (1.0, 5.0):
        mechanism = CORRECT[name](spread(shape, epsilon / finer))
        if not isinstance(mechanism, ClosedForm):
            return
        n = mechanism.log_pmf(np.arange(1), np.array([epsilon])).shape[1]
        assert not exact_audit(
            lambda some, of=mechanism: of.log_pmf(some, np.full(len(some), epsilon)),
            np.arange(n),
            distances_of(mechanism),
            epsilon,
        ).violation


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shape", ["line", "plane"])
@pytest.mark.parametrize("name", CORRECT)
def test_samples(name: str, shape: str, epsilon: float) -> None:
    vectors = toy_vectors(shape, epsilon)
    assert not sampled(CORRECT[name](vectors), len(vectors), epsilon, SAMPLES).violation


class HalfNoise:
    """Any mechanism, run at twice the ε that is claimed."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.name, self.metric, self.guarantee = inner, "half", inner.metric, "claimed wrongly"
        for own in ("orders", "lambda_", "vectors"):
            if hasattr(inner, own):
                setattr(self, own, getattr(inner, own))

    def noise(self, epsilon: Any, rng: np.random.Generator) -> Any:
        return self.inner.noise(2 * epsilon, rng)

    def replace(self, ids: Any, epsilon: Any, noise: Any) -> Any:
        return self.inner.replace(ids, 2 * epsilon, noise)

    def distance(self, first: Any, second: Any) -> Any:
        return self.inner.distance(first, second)


@pytest.mark.parametrize(
    ("name", "shape", "epsilon"),
    [
        ("madlib", "line", 10.0),
        ("madlib", "plane", 1.0),
        ("mahalanobis", "line", 1.0),
        ("mahalanobis", "plane", 10.0),
        ("vickrey", "line", 1.0),
        ("vickrey", "plane", 10.0),
        ("vickrey k=3", "line", 1.0),
        ("geometric", "line", 1.0),
        ("geometric", "plane", 0.3),
    ],
)
def test_half_the_noise_is_caught(name: str, shape: str, epsilon: float) -> None:
    vectors = toy_vectors(shape, epsilon)
    result = sampled(HalfNoise(CORRECT[name](vectors)), len(vectors), epsilon, SAMPLES)
    assert result.violation
    assert result.audited > 1.05 * epsilon


@pytest.mark.parametrize("name", ["tem", "1-D tem"])
def test_half_the_noise_of_tem_is_caught_exactly(name: str) -> None:
    """The factor 1/2 in exp(-ε·min(d, γ)/2) pays for the sum that normalises it. Where that hardly depends on the word

    TEM spends about ε/2 per unit, so twice its ε is no violation everywhere; samples need not show it. The law does.
    """
    vectors = toy_vectors("line", 1.0)
    mechanism = CORRECT[name](vectors)
    result = exact_audit(
        lambda some: mechanism.log_pmf(some, np.full(len(some), 2.0)), np.arange(8), distances_of(mechanism), 1.0
    )
    assert 1.0 < result.audited < 2.0
    assert result.violation


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shape", ["line", "plane"])
def test_vickrey_without_its_input_is_caught(shape: str, epsilon: float) -> None:
    vectors = toy_vectors(shape, epsilon)
    result = sampled(Vickrey(vectors, exclude_input=True), len(vectors), epsilon, SAMPLES)
    assert result.violation


def test_tem_without_some_neighbours_is_caught() -> None:
    """A search that misses the nearest neighbour of a word, as an approximate index does now and then."""
    vectors = toy_vectors("plane", 1.0)
    mechanism = Tem(vectors)
    law = mechanism.log_pmf(np.arange(12), np.ones(12))
    near = np.argsort(np.linalg.norm(vectors[0] - vectors, axis=1))[1]
    law[0, near] = law[0].min()
    law[0] -= np.logaddexp.reduce(law[0])
    result = exact_audit(lambda some: law[some], np.arange(12), distances_of(mechanism), 1.0)
    assert result.violation
