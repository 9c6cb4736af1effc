"""Properties that hold for every registered mechanism."""

import numpy as np
import pytest

from lexveil.auditing.toy_spaces import public_counts
from lexveil.base.errors import ParameterError
from lexveil.core.mechanisms.noise.streams import release_generator, stream
from lexveil.core.mechanisms.registry import MECHANISMS, Space, build_mechanism
from tests.mechanisms.toys import draw, fits, largest_loss, vectors

ORDERS = np.array([np.arange(12), np.arange(12)[::-1]], dtype=np.int32)
# Those whose log_pmf was written down; a new one states its distribution by having the method.
CLOSED = [name for name, mechanism in MECHANISMS.items() if mechanism.has_closed_form()]
assert {"tem", "diffractor_geometric", "diffractor_tem"} <= set(CLOSED)


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 25.0])
def test_the_guarantee_holds_exactly(name, epsilon):
    """For all w, w', y: |ln P(y|w) - ln P(y|w')| <= ε·d(w, w'), whatever words weigh. Nothing is
    sampled."""
    for seed in range(3):
        mechanism = build_mechanism(
            name, Space(vectors(seed=seed), ORDERS, public=public_counts(1 + np.arange(12) % 3))
        )
        assert mechanism.no_guarantee is not None or largest_loss(mechanism, epsilon) <= 1e-9


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize(("budget_error", "follows"), [(1.0, True), (0.8, False), (1.25, False)])
def test_draws_follow_the_closed_form(name, budget_error, follows):
    """Chi-squared against the distribution. The two wrong budgets show that this test can say
    no."""
    mechanism = build_mechanism(name, Space(vectors(), ORDERS))
    epsilon = 1.5 / float(
        np.median(mechanism.distance(np.full(11, 2), np.delete(np.arange(12), 2)))
    )
    law = np.exp(mechanism.log_pmf(np.array([2]), np.array([epsilon * budget_error])))[0]
    assert fits(draw(mechanism, 2, epsilon), law) == follows


IDS = np.arange(36) % 12
BUDGETS = np.geomspace(0.1, 90, 36)


@pytest.fixture(params=MECHANISMS)
def mechanism(request):
    """Return each registered mechanism, over 12 words."""
    paper = {"truncated_gumbel": {"calibration": "paper"}}
    return build_mechanism(request.param, Space(vectors(), ORDERS), paper)


def test_a_mechanism_says_what_it_is(mechanism):
    assert mechanism.size == 12
    assert "exp(" in mechanism.guarantee


def test_a_closed_form_is_declared_by_its_method():
    class WithForm(MECHANISMS["madlib"]):
        def log_pmf(self, ids, epsilon, before=-1):
            return np.zeros((len(ids), self.size))

    assert WithForm.has_closed_form()
    assert not MECHANISMS["madlib"].has_closed_form()


def test_noise_is_a_row_of_a_fixed_width_for_each_token(mechanism):
    noise = mechanism.noise(BUDGETS, stream(5, mechanism.name))
    _, width = mechanism.noise(BUDGETS[:1], stream(5, mechanism.name)).shape
    assert noise.shape == (36, width)


@pytest.mark.parametrize("size", [0, 1, 5, 36])
def test_batches_change_nothing(mechanism, size):
    """An empty batch changes nothing either. Replacements are ids of words."""
    noise = mechanism.noise(BUDGETS, stream(5, mechanism.name))
    cuts = np.arange(0, 36, size) if size else [0, 0]
    parts = [np.split(values, cuts) for values in (IDS, BUDGETS, noise)]
    out = np.concatenate([mechanism.replace(*part) for part in zip(*parts, strict=True)])
    assert out.dtype == np.int64
    assert set(out) <= set(range(12))
    assert np.array_equal(out, mechanism.replace(IDS, BUDGETS, noise))


def test_the_distance_is_symmetric_and_zero_of_a_word_to_itself(mechanism):
    assert not mechanism.distance(IDS, IDS).any()
    there = mechanism.distance(IDS, IDS[::-1])
    assert np.array_equal(there, mechanism.distance(IDS[::-1], IDS))


def test_a_release_draws_other_noise_each_time(mechanism):
    low = np.full(400, 0.5)
    ids = np.arange(400) % 12
    first, second = (
        mechanism.replace(ids, low, mechanism.noise(low, release_generator())) for _ in range(2)
    )
    assert (first != second).any()


NAN = float("nan")
TWICE = vectors()[[0, 1, 0]]


@pytest.mark.parametrize(
    ("name", "given", "some", "message"),
    [
        ("madlb", {}, vectors(), "madlib"),
        ("diffractor_tem", {}, vectors(), "needs word lists"),
        *(("tem", {"tem": {"beta": beta}}, vectors(), r"tem\.beta") for beta in (0.0, 1.0, NAN)),
        *(
            ("mahalanobis", {"mahalanobis": {"lambda": share}}, vectors(), r"\.lambda")
            for share in (-0.1, 1.0, NAN)
        ),
        *(
            ("madlib", {"rank_remap": {"enabled": True, "c": c}}, vectors(), "rank_remap")
            for c in (0.0, -1.0, NAN)
        ),
        *(
            ("madlib", {"rank_remap": {"enabled": True, "ranks": n}}, vectors(), "rank_remap")
            for n in (0, 65)
        ),
        ("truncated_gumbel", {}, TWICE, "same vector"),
        ("truncated_gumbel", {}, vectors(1), "two words"),
        (
            "truncated_gumbel",
            {"truncated_gumbel": {"calibration": "other"}},
            vectors(),
            "calibration",
        ),
        ("vickrey", {"vickrey": {"t": 1.5}}, vectors(2), r"vickrey\.t is 1\.5"),
        ("vickrey", {"vickrey": {"t": NAN}}, vectors(2), r"vickrey\.t"),
        ("vickrey", {"vickrey": {"exclude_input": True}}, vectors(2), "needs 3 words"),
        *(("vickrey", {"vickrey": {"k": k}}, vectors(2), rf"vickrey\.k is {k}") for k in (1, 8)),
        ("vickrey", {"vickrey": {"k": 3, "t": [1.0, 2.0]}}, vectors(2), "a list of 3 numbers"),
        ("vickrey", {"vickrey": {"k": 3, "t": [1.0, 2.0, -1.0]}}, vectors(2), "not negative"),
    ],
)
def test_what_cannot_be_built(name, given, some, message):
    with pytest.raises(ParameterError, match=message):
        build_mechanism(name, Space(some), given)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.inf, np.nan])
def test_bad_epsilons(name, epsilon):
    mechanism = build_mechanism(name, Space(vectors(), ORDERS))
    with pytest.raises(ParameterError, match="finite and greater than 0"):
        mechanism.noise(np.array([1e9, epsilon]), stream(1))
