"""TEM: the sampler follows the closed form, the closed form keeps the promise."""

import decimal
import itertools
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from lexveil.embeddings import neighborhoods
from lexveil.embeddings.exact_search import pair_distances
from lexveil.embeddings.kernels.sketch import sketch_bounds
from lexveil.errors import ParameterError
from lexveil.mechanisms import tem as module
from lexveil.mechanisms.kernels import tem as kernels
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.tem import Tem
from tests.mechanisms.toys import FALSE_ALARM, SAMPLES, draw, fits, largest_loss, vectors


@pytest.mark.parametrize(("budget_error", "follows"), [(1.0, True), (0.9, False), (1.1, False)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_draws_follow_the_law(epsilon: float, budget_error: float, follows: bool) -> None:
    """The two wrong budgets show that this test can say no."""
    tem = Tem(vectors(), beta=0.1)
    law = np.exp(tem.log_pmf(np.array([3]), np.array([epsilon * budget_error])))[0]
    assert fits(draw(tem, 3, epsilon), law) == follows


@pytest.mark.parametrize("epsilon", [0.3, 3.0, 9.0, 60.0])
@pytest.mark.parametrize("way", ["plain", "list"])
@pytest.mark.parametrize("listed", [1, 2, 11, 64])
@pytest.mark.parametrize("word", [3, 150, "longest"])
def test_every_way_of_proposing_has_the_same_law(
    monkeypatch: pytest.MonkeyPatch, epsilon: float, way: str, listed: int, word: int | str
) -> None:
    """By uniform proposals or from a list first, with few or many words listed; with two equal words."""
    weighed = Tem.plain
    monkeypatch.setattr(Tem, "plain", lambda *args: weighed(*args) & False | (way == "plain"))
    monkeypatch.setattr(module, "ATTEMPTS", 4)
    monkeypatch.setattr(neighborhoods, "LISTED", listed)
    some = vectors(200) * np.linspace(0.2, 2, 200, dtype=np.float32)[:, None]
    some[150] = some[3]
    tem = Tem(some)
    if word == "longest":
        word = int(tem.norms.argmax())
    assert tem.shells[-1] == listed
    drawn = draw(tem, word, epsilon)
    assert fits(drawn, np.exp(tem.log_pmf(np.array([word]), np.array([epsilon])))[0])


@pytest.mark.parametrize("n_stored", [0, 1, 30, 50])
def test_stored_lists_and_lists_made_now_draw_the_same_words(n_stored: int) -> None:
    some = vectors(50)
    table = neighborhoods.nearest_words(some, np.arange(n_stored))
    ids, budgets = np.arange(50), np.geomspace(0.05, 80, 50)
    noise = Tem(some).noise(budgets, stream(1, "x"))
    drawn = Tem(some, table).replace(ids, budgets, noise)
    assert drawn.tolist() == Tem(some).replace(ids, budgets, noise).tolist()


def test_bounds_of_the_distance_decide_as_the_distance_does() -> None:
    """Also for positions just beside the limit, bounds that are the distance itself, and those of the sketch."""
    some, rng = vectors(200), np.random.default_rng(5)
    sketch, bits, n_unsure = Tem(some).sketch, 40, 0
    for _ in range(3000):
        word, proposed = (int(number) for number in rng.integers(200, size=2))
        radius, half = rng.exponential(4), rng.exponential(2)
        edge = min(tem_distances(some, word, proposed), radius)
        limit = 2**bits * exact_exp(-half, edge)
        closest = sketch_bounds(sketch.rows, sketch.step, word, proposed)
        for q in (int(limit), int(limit) - 1, int(limit) + 1, int(limit * (1 - Decimal("1e-9"))), int(limit / 2)):
            wanted = kernels.ACCEPT if q + 1 <= limit else kernels.REFUSE if q >= limit else kernels.UNSURE
            for bounds in (closest, (edge, edge) if edge < radius else (radius, np.inf), (0.0, np.inf)):
                got = kernels.decide(some, word, proposed, half, radius, max(q, 0), bits, *bounds)
                assert got in (wanted, kernels.UNSURE)
                n_unsure += got != wanted
                if abs(q - limit) > 2 + limit * Decimal("1e-11"):
                    assert got == wanted
    assert n_unsure > 100


def exact_exp(half: float, distance: float) -> Decimal:
    return (Decimal(half) * Decimal(distance)).exp()


@pytest.mark.parametrize("epsilon", [0.3, 3.0, 9.0])
@pytest.mark.parametrize("bits", [1, 3, 8])
@pytest.mark.parametrize("way", ["plain", "list"])
def test_what_the_drawn_bits_do_not_decide_is_decided_exactly(
    monkeypatch: pytest.MonkeyPatch, epsilon: float, bits: int, way: str
) -> None:
    """With so few bits most acceptances are undecided at first; the distribution is the same.

    They are decided by one function, token by token: it is looked at closely where one way of proposing asks it, and
    in the others where it is asked seldom.
    """
    weighed = Tem.plain
    monkeypatch.setattr(Tem, "plain", lambda *args: weighed(*args) & False | (way == "plain"))
    tem = Tem(vectors(40))
    tem.bits, exact, n_exact = bits, tem._is_accepted, 0

    def counted(*args: Any) -> bool:
        nonlocal n_exact
        n_exact += 1
        return exact(*args)

    monkeypatch.setattr(tem, "_is_accepted", counted)
    often = bits < 8 and epsilon > (1 if way == "list" else 3)
    drawn = draw(tem, 3, epsilon, samples=1000 if often else 4000)
    assert n_exact > 4
    assert fits(drawn, np.exp(tem.log_pmf(np.array([3]), np.array([epsilon])))[0])


def test_an_undecided_token_reads_its_own_stream() -> None:
    """In any batch the same word, also where bits are few."""
    tem = Tem(vectors(50))
    tem.bits = 2
    ids, budgets = np.arange(50), np.geomspace(0.05, 20, 50)
    noise = tem.noise(budgets, stream(1, "x"))
    together = tem.replace(ids, budgets, noise)
    alone = [tem.replace(ids[i : i + 1], budgets[i : i + 1], noise[i : i + 1])[0] for i in reversed(range(50))]
    assert together.tolist() == alone[::-1]


def test_rounding_is_bounded_by_what_is_stated() -> None:
    """Scores against exact ones of the same vectors; the sentence of the record is true of the largest spaces."""
    some = vectors(60)
    tem, worst = Tem(some), 0.0
    for word, other in itertools.product(range(60), repeat=2):
        rows = [[Fraction(float(value)) for value in some[row]] for row in (word, other)]
        exact = Decimal(0)
        with decimal.localcontext() as context:
            context.prec = 60
            square = sum((a - b) ** 2 for a, b in zip(*rows, strict=True))
            exact = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
            off = abs(Decimal(kernels.score(some, word, other, np.inf)) - exact)
            worst = max(worst, float(off / exact) if exact else float(off))
    assert 0 < worst <= (some.shape[1] + 4) * 2.0**-53
    epsilon = np.array([0.1, 1.0, 100.0])
    assert (tem.rounding(epsilon) <= 1e-12).all()
    gamma_times_epsilon = 2 * np.log(1e7 / 1e-12)
    assert 2 * (1000 + 4) * 2.0**-53 * gamma_times_epsilon < 1e-10


def tem_distances(some: np.ndarray, word: int, proposed: int) -> float:
    return float(pair_distances(some, np.array([word]), np.array([proposed]))[0])


def test_the_law_by_hand() -> None:
    """Words at 0, 1, 10 on a line, ε = 2, β = 0.5: γ = ln 2 < 1, so both others weigh exp(-ln 2) = 1/2."""
    tem = Tem(np.array([[0.0], [1.0], [10.0]], dtype=np.float32), beta=0.5)
    assert tem.gamma(np.array([2.0])) == pytest.approx(np.log(2))
    assert np.exp(tem.log_pmf(np.array([0]), np.array([2.0]))[0]).tolist() == pytest.approx([0.5, 0.25, 0.25])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 25.0])
def test_never_loses_more_than_epsilon_times_distance(seed: int, epsilon: float) -> None:
    assert largest_loss(Tem(vectors(seed=seed)), epsilon) <= 1e-9


def test_a_ball_that_misses_a_word_would_be_caught() -> None:
    """The loss is measured well enough to see the fault the proof fears: a neighbour scored as if it were beyond γ."""

    class Truncated(Tem):
        def log_pmf(self, ids, epsilon):
            law = super().log_pmf(ids, epsilon)
            law[0, np.argsort(law[0])[-2]] = law[0].min()
            return law - np.log(np.exp(law).sum(axis=1, keepdims=True))

    assert largest_loss(Truncated(vectors()), 4.0) > 0.5


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 50.0])
def test_at_most_beta_lies_beyond_gamma(epsilon: float) -> None:
    tem = Tem(vectors(300), beta=0.01)
    law = np.exp(tem.log_pmf(np.arange(20), np.full(20, epsilon)))
    away = tem.distance(np.repeat(np.arange(20), 300), np.tile(np.arange(300), 20)).reshape(20, 300)
    assert (law * (away > tem.gamma(np.array([epsilon])))).sum(axis=1).max() <= 0.01


def drawn_within(epsilon: float, part: float, beta: float = 0.05) -> tuple[bool, float]:
    """Whether draws of word 0 say that more than β of them lie beyond ``part`` of γ, and the exact share that does."""
    tem = Tem(vectors(300), beta=beta)
    words = np.arange(300)
    beyond = tem.distance(np.zeros(300, dtype=np.int64), words) > part * tem.gamma(np.array([epsilon]))
    exact = float(np.exp(tem.log_pmf(np.zeros(1, dtype=np.int64), np.array([epsilon])))[0, beyond].sum())
    seen = int(beyond[draw(tem, 0, epsilon)].sum())
    return binomtest(seen, SAMPLES, beta, alternative="greater").pvalue < FALSE_ALARM, exact


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 5.0, 8.0, 25.0, 60.0])
def test_a_share_of_1_minus_beta_is_drawn_within_gamma(epsilon: float) -> None:
    """Of samples, at every ε. Half of γ does not hold as many, where the words about one lie between γ/2 and γ."""
    too_many, exact = drawn_within(epsilon, 1.0)
    assert not too_many and exact <= 0.05
    too_many, exact = drawn_within(epsilon, 0.5)
    assert too_many == (exact > 0.06)
    assert (exact > 0.06) == (3.0 <= epsilon <= 8.0)


def test_batches_and_neighbours_change_nothing() -> None:
    """Each token alone, or all at once with other epsilons beside it: the same words."""
    tem = Tem(vectors(50))
    ids, budgets = np.arange(50), np.geomspace(0.05, 80, 50)
    noise = tem.noise(budgets, stream(1, "x"))
    together = tem.replace(ids, budgets, noise)
    fresh = Tem(vectors(50))
    alone = [fresh.replace(ids[i : i + 1], budgets[i : i + 1], noise[i : i + 1])[0] for i in reversed(range(50))]
    assert together.tolist() == alone[::-1]


def test_one_word() -> None:
    assert draw(Tem(vectors(1)), 0, 1.0, samples=10).tolist() == [0] * 10


@pytest.mark.parametrize("beta", [0.0, 1.0, -1.0, float("nan")])
def test_bad_beta(beta: float) -> None:
    with pytest.raises(ParameterError, match=r"tem\.beta"):
        Tem(vectors(), beta=beta)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.inf, np.nan])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="finite and greater than 0"):
        Tem(vectors()).noise(np.array([epsilon]), stream(1))


def test_extreme_epsilons() -> None:
    tem = Tem(vectors())
    assert fits(draw(tem, 3, 1e-300), np.ones(12))
    assert (draw(tem, 3, 1e9) == 3).mean() > 1 - 0.001 - 6 * np.sqrt(0.001 / SAMPLES)
