"""The table of mechanisms: all of them keep the protocol."""

import numpy as np
import pytest

from lexveil.errors import ParameterError
from lexveil.mechanisms.noise.streams import release_generator, stream
from lexveil.mechanisms.registry import MECHANISMS, ClosedForm, build_mechanism
from tests.mechanisms.toys import vectors

ORDERS = np.array([np.arange(12), np.arange(12)[::-1]], dtype=np.int32)
CLOSED = {"tem", "diffractor_geometric", "diffractor_tem"}


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_protocol(name: str) -> None:
    """One row of noise a token, of a fixed width; batches change nothing; both kinds of generator serve."""
    mechanism = build_mechanism(name, vectors(), {"truncated_gumbel": {"calibration": "paper"}}, ORDERS)
    assert mechanism.name == name and mechanism.size == 12 and "exp(" in mechanism.guarantee
    assert isinstance(mechanism, ClosedForm) == (name in CLOSED)
    ids, budgets = np.arange(36) % 12, np.geomspace(0.1, 90, 36)
    noise = mechanism.noise(budgets, stream(5, name))
    assert len(noise) == 36 and noise.shape[1] == mechanism.noise(budgets[:1], stream(5, name)).shape[1]
    out = mechanism.replace(ids, budgets, noise)
    assert out.dtype == np.int64 and ((out >= 0) & (out < 12)).all()
    for size in (1, 5):
        parts = [slice(start, start + size) for start in range(0, 36, size)]
        again = np.concatenate([mechanism.replace(ids[p], budgets[p], noise[p]) for p in parts])
        assert (again == out).all()
    assert mechanism.replace(ids[:0], budgets[:0], noise[:0]).shape == (0,)
    assert (mechanism.distance(ids, ids) == 0).all()
    assert (mechanism.distance(ids, ids[::-1]) == mechanism.distance(ids[::-1], ids)).all()
    low = np.full(400, 0.5)
    draws = [mechanism.replace(np.arange(400) % 12, low, mechanism.noise(low, release_generator())) for _ in range(2)]
    assert (draws[0] != draws[1]).any()


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.inf, np.nan])
def test_bad_epsilons(name: str, epsilon: float) -> None:
    mechanism = build_mechanism(name, vectors(), None, ORDERS)
    with pytest.raises(ParameterError, match="finite and greater than 0"):
        mechanism.noise(np.array([1e9, epsilon]), stream(1))


def test_lists_are_needed() -> None:
    with pytest.raises(ParameterError, match="works on lists"):
        build_mechanism("diffractor_tem", vectors())
