"""The audit's own distributions and distances agree with the mechanisms, and tell small
differences."""

import numpy as np
import pytest

from lexveil.auditing.distributions import ON_LISTS
from lexveil.auditing.fit import ClaimedDraws, ball_audit, distribution_audit
from lexveil.auditing.kernels import Built, DrawnKind, draw_mixed, fit, noise_fit
from lexveil.auditing.toy_spaces import toy
from lexveil.core.mechanisms.registry import MECHANISMS

CASES = [*((name, {}) for name in sorted(MECHANISMS)), ("tem_context", {"common_words": 4})]
ERROR = 1e-6


def built(name, shape, epsilon=1.0, **own):
    given = {name: own, "rank_remap": {"enabled": False}}
    one = toy(shape, epsilon, 2 if name in ON_LISTS else 0)
    made = Built.over(name, one.space, given)
    while not made.accepts(epsilon):
        one = one.stretched(2.0)
        made = Built.over(name, one.space, given)
    return made, one


def drawn(made, one, epsilons, n):
    contexts = one.contexts if made.claim.in_context else (-1,)
    return draw_mixed(
        made.kernel,
        one.words[:4],
        epsilons,
        n,
        lambda what: np.random.default_rng(len(what)),
        lambda _: None,
        contexts,
    )


@pytest.mark.parametrize("shape", ["plane", "cloud"])
@pytest.mark.parametrize("name", sorted({"mahalanobis", "madlib", *ON_LISTS}))
def test_distances_agree_with_those_of_the_mechanisms(name, shape):
    made, one = built(name, shape)
    ids = np.arange(0, one.space.size, max(1, one.space.size // 13))
    first = np.repeat(ids, len(ids))
    second = np.tile(ids, len(ids))
    own = made.claim.distances(ids, ids).ravel()
    assert own == pytest.approx(made.kernel.distance(first, second), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "own"), [case for case in CASES if MECHANISMS[case[0]].has_closed_form()]
)
def test_closed_forms_agree_with_those_of_the_mechanisms(name, own):
    made, one = built(name, "plane", **own)
    assert made.kernel.has_closed_form()
    for epsilon in (0.1, 1.0, 5.0):
        for before in range(-1, one.space.size if made.claim.in_context else 0):
            after = (before,) if made.claim.in_context else ()
            table = np.exp(made.kernel.log_pmf(one.words, np.full(len(one.words), epsilon), *after))
            claimed = np.array(
                [made.claim.pmf(word, epsilon, before) for word in one.words.tolist()]
            )
            assert claimed == pytest.approx(table, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("shape", ["line", "plane", "cloud"])
@pytest.mark.parametrize(("name", "own"), CASES)
def test_draws_follow_what_is_claimed(name, own, shape):
    if name == "truncated_gumbel" and shape == "cloud":
        pytest.skip("its calibration exists for no such spread of distances")
    made, one = built(name, shape, **own)
    rng = np.random.default_rng(5)
    seen = drawn(made, one, (1.0,), 1_000)
    result = fit(seen, made.claim, 1.0, ERROR, rng, with_power=False)
    assert not result.violation and result.tests > 4
    noise = noise_fit(made.kernel, made.claim, 1.0, 4_000, ERROR, rng) if shape == "plane" else None
    assert noise is None or (not noise.violation and noise.factor <= 1.02)


@pytest.mark.parametrize("name", ["madlib", "tem", "diffractor_geometric"])
def test_the_power_is_what_it_says(name):
    """The audit detects draws whose ε is too large by twice the margin that it claims to detect."""
    made, one = built(name, "plane")
    rng = np.random.default_rng(3)
    result = fit(drawn(made, one, (1.0,), 2_000), made.claim, 1.0, ERROR, rng, with_power=True)
    assert result.factor is not None
    more = 1 + 2 * (result.factor - 1)
    counts = [
        np.bincount(made.claim.draw(word, more, 2_000, rng), minlength=one.space.size)
        for word in (0, 1, 2, 3)
    ]
    claimed = {
        DrawnKind(word, 1.0): np.repeat(np.arange(one.space.size), row)
        for word, row in enumerate(counts)
    }
    assert fit(claimed, made.claim, 1.0, ERROR, rng, with_power=False).violation


def test_a_distribution_that_differs_is_told():
    claimed = np.array([0.5, 0.3, 0.2])
    same = distribution_audit(
        [ClaimedDraws("w", np.array([5000, 3000, 2000]), claimed, np.arange(3))], 1.0, 1e-3
    )
    other = distribution_audit(
        [ClaimedDraws("w", np.array([5400, 2700, 1900]), claimed, np.arange(3))], 1.0, 1e-3
    )
    assert not same.violation and same.least > 0.5
    assert other.violation and "w: " in other.worst
    impossible = distribution_audit(
        [ClaimedDraws("w", np.array([5, 5, 1]), np.array([0.5, 0.5, 0.0]), np.arange(3))], 1.0, 1e-3
    )
    assert impossible.violation and "excludes" in impossible.worst


@pytest.mark.parametrize(
    ("wrong", "worst"),
    [
        (lambda noise: noise, None),
        (lambda noise: noise * 0.98, "the radii"),
        (
            lambda noise: noise * np.minimum(1, 14 / np.linalg.norm(noise, axis=1))[:, None],
            "largest radius",
        ),
        (np.abs, "the mean direction"),
        (
            lambda noise: (
                noise
                * np.linalg.norm(noise, axis=1)[:, None]
                / np.linalg.norm(noise * [1, 1.2, 1], axis=1)[:, None]
                * [1, 1.2, 1]
            ),
            "spread",
        ),
    ],
)
def test_noise_that_is_wrong_is_told(wrong, worst):
    """14 is a radius that one draw in 20,000 exceeds."""
    rng = np.random.default_rng(2)
    ball = rng.standard_normal((400_000, 3))
    ball *= (rng.standard_gamma(3, len(ball)) / np.linalg.norm(ball, axis=1))[:, None]
    result = ball_audit(wrong(ball), 1.0, ERROR)
    assert result.violation == (worst is not None)
    assert worst is None or worst in result.worst
