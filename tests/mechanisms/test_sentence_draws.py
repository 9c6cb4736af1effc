"""TEM over a bank: its law at every point of a proposal, its bound, and draws that no batch
changes.
"""

import contextlib
from decimal import Decimal, localcontext

import numpy as np
import pytest

from lexveil.base.errors import ParameterError
from lexveil.core.mechanisms import sentence_draws
from lexveil.core.mechanisms.kernels import sentence_draws as kernels
from lexveil.core.mechanisms.kernels import tem as tem_kernels
from lexveil.core.mechanisms.noise import keystream
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.rejection import PENDING, UNDECIDED
from lexveil.core.mechanisms.sentence_draws import SentenceDraws, distances_to
from lexveil.core.mechanisms.truncated_exponential import FIRST_NONCE, is_accepted
from tests.mechanisms.toys import SAMPLES, fits

P = 5


def points(n, seed=1, zero=False):
    """Vectors of length 1, float32; the last one zeros where asked for."""
    made = np.random.default_rng(seed).standard_normal((n, P))
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    if zero:
        made[-1] = 0
    return made.astype(np.float32)


def bank(n=12):
    """A bank in which two sentences have the same vector."""
    made = points(n)
    made[3] = made[1]
    return made


class RefusedError(Exception):
    """The proposal was refused: another one is asked for."""


def law_of(draws, query, epsilon):
    """2^bits times the weight of each sentence, by definition."""
    gamma = float(draws.gamma(np.array([epsilon]))[0])
    distances = distances_to(draws.vectors, query).tolist()
    half = Decimal(epsilon / 2)
    return {
        row: 2**draws.bits * (-half * Decimal(min(distance, gamma))).exp()
        for row, distance in enumerate(distances)
    }


def intervals(draws, query, epsilon, patch):
    """Return, for each proposed sentence, how many of its real positions are accepted, and how many
    may be.

    Every point of a proposal is tried, and every first byte of what settles a doubt.
    """
    tried = list[int]()
    total = [1]

    def next_point(_state, _stream, at, n, _mask):
        total[0] = int(n)
        if not tried:
            raise RefusedError
        return tried.pop(), at

    patch.setattr(kernels, "next_point", next_point)
    patch.setattr(kernels, "draw", kernels.draw.py_func)
    found = {}
    plain_draw = kernels.draw

    def one_draw(*arguments):
        found["arguments"] = arguments
        return np.zeros(1, dtype=np.int64)

    patch.setattr(kernels, "draw", one_draw)
    budgets = np.array([epsilon])
    none = np.zeros((1, 4), dtype=np.uint64)
    draws.replace_queries(query[None], np.zeros(1, dtype=np.int64), budgets, none)
    asked = found["arguments"][7]

    def outcomes():
        point = 0
        while point < total[0]:
            tried[:] = [point]
            out = PENDING
            point = point + 1
            with contextlib.suppress(RefusedError):
                out = int(plain_draw(*found["arguments"])[0])
            yield out, asked.doubts[0].tolist()

    low = [Decimal(0)] * draws.size
    unsure = [Decimal(0)] * draws.size
    exponents = [
        (epsilon / 2, min(distance, float(draws.gamma(budgets)[0])))
        for distance in distances_to(draws.vectors, query).tolist()
    ]
    for out, (proposed, position, _) in outcomes():
        if out >= 0:
            low[out] += 1
        for first in range(256 if out == UNDECIDED else 0):
            ends = []
            for tail in (bytes([first]) + b"\0" * 99, bytes([first]) + b"\xff" * 99):
                patch.setattr(keystream, "expand", lambda _key, n, _nonce=0, tail=tail: tail[:n])
                ends.append(
                    is_accepted(exponents[proposed], position, draws.bits, none[0], FIRST_NONCE)
                )
            low[proposed] += Decimal(all(ends)) / 256
            unsure[proposed] += Decimal(ends[0] != ends[1]) / 256
    assert max(unsure) <= Decimal(2) / 256
    return {row: (low[row], low[row] + unsure[row]) for row in range(draws.size)}


def within(law, found):
    return all(low <= law[row] <= high for row, (low, high) in found.items())


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 9.0])
@pytest.mark.parametrize("zero", [False, True])
def test_every_point_of_a_proposal_gives_the_law(epsilon, zero, monkeypatch):
    """The real positions at which each sentence is accepted have its weight: a law that is a
    hundredth off is not within.
    """
    draws = SentenceDraws(bank(6), 1.0)
    draws.bits = 8
    query = points(2, seed=5, zero=zero)[-1]
    with localcontext() as context:
        context.prec = 60
        found = intervals(draws, query, epsilon, monkeypatch)
        assert within(law_of(draws, query, epsilon), found)
        assert not within(law_of(draws, query, epsilon * 1.01), found)


def _short_envelopes(patch):
    made = SentenceDraws._envelopes

    def short(self, epsilon):
        return np.maximum((made(self, epsilon) * 0.9).astype(np.int64), 1)

    patch.setattr(SentenceDraws, "_envelopes", short)


def _coarse_buckets(patch):
    """Take the farthest distance of a bucket for its envelope, in place of the nearest distance."""
    made = SentenceDraws._envelopes

    def of_far_ends(self, epsilon):
        return np.roll(made(self, epsilon), -1, axis=1)

    patch.setattr(SentenceDraws, "_envelopes", of_far_ends)
    patch.setattr(sentence_draws, "BUCKETS", 32)


@pytest.mark.parametrize("fault", [_short_envelopes, _coarse_buckets])
def test_envelopes_that_are_too_low_are_seen(fault, monkeypatch):
    fault(monkeypatch)
    draws = SentenceDraws(bank(6), 1.0)
    draws.bits = 8
    query = points(2, seed=5)[-1]
    with localcontext() as context:
        context.prec = 60
        assert not within(law_of(draws, query, 2.0), intervals(draws, query, 2.0, monkeypatch))


@pytest.mark.parametrize("epsilon", [4.0, 12.0])
@pytest.mark.parametrize("said", [1.0, 0.85])
def test_compiled_draws_follow_the_law(epsilon, said):
    """40,000 draws for each of three queries follow the law; a wrong epsilon shows that the test
    can fail.
    """
    draws = SentenceDraws(bank(), 1.0)
    queries = points(3, seed=5, zero=True)
    of = np.tile(np.arange(3), SAMPLES)
    budgets = np.full(len(of), epsilon)
    drawn = draws.replace_queries(queries, of, budgets, draws.noise(budgets, stream(7, "law")))
    laws = np.exp(draws.log_pmf_of(queries, np.full(3, epsilon * said)))
    # from zeros every sentence is as far, whatever epsilon is
    agree = [fits(drawn[of == query], laws[query]) for query in range(2)]
    assert agree == [said == 1.0] * 2
    assert fits(drawn[of == 2], laws[2])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 25.0])
def test_no_draw_tells_more_than_epsilon_times_distance_or_the_diameter(seed, epsilon):
    """Exact, for all pairs of queries, zeros among them."""
    draws = SentenceDraws(bank(), 1.0)
    queries = points(9, seed=seed, zero=True)
    log_p = draws.log_pmf_of(queries, np.full(len(queries), epsilon))
    loss = np.abs(log_p[:, None] - log_p[None]).max(axis=2)
    apart = np.array([distances_to(queries, query) for query in queries])
    assert np.all(loss <= draws.privacy_loss(np.full(apart.shape, epsilon), apart) + 1e-9)
    assert np.all(loss <= epsilon * 2.0 + 1e-9)


def test_draws_depend_on_no_batch(monkeypatch):
    """With the same keys, sentences have the same draws one by one, all at once, and in blocks of
    another size."""
    draws = SentenceDraws(bank(40), 1.0)
    queries = points(30, seed=2)
    of = np.repeat(np.arange(30), 3)
    budgets = np.where(of % 2, 3.0, 11.0)
    keys = draws.noise(budgets, stream(7, "batches"))
    at_once = draws.replace_queries(queries, of, budgets, keys)
    each = [
        draws.replace_queries(queries[query : query + 1], np.zeros(1, np.int64), *pair)[0]
        for query, *pair in zip(of, budgets[:, None], keys[:, None], strict=True)
    ]
    assert at_once.tolist() == each
    monkeypatch.setattr(sentence_draws, "QUERIES", 7)
    assert draws.replace_queries(queries, of, budgets, keys).tolist() == each
    shuffled = np.random.default_rng(1).permutation(len(of))
    monkeypatch.undo()
    far = np.concatenate([queries, points(200, seed=9)])
    assert draws.replace_queries(far, of, budgets, keys).tolist() == each
    again = draws.replace_queries(queries, of[shuffled], budgets[shuffled], keys[shuffled])
    assert again.tolist() == at_once[shuffled].tolist()


def test_the_last_bits_are_decided_exactly(monkeypatch):
    """A sampler that leaves every decision open draws by the law all the same."""
    monkeypatch.setattr(kernels, "decide", lambda *_: tem_kernels.UNSURE)
    monkeypatch.setattr(kernels, "draw", kernels.draw.py_func)
    draws = SentenceDraws(bank(4), 1.0)
    query = points(1, seed=3)
    budgets = np.full(600, 6.0)
    of = np.zeros(600, dtype=np.int64)
    drawn = draws.replace_queries(query, of, budgets, draws.noise(budgets, stream(7, "unsure")))
    assert fits(drawn, np.exp(draws.log_pmf_of(query, budgets[:1])[0]))


def test_what_cannot_be_drawn_for_is_refused():
    draws = SentenceDraws(bank(), 1.0)
    one = np.zeros(1, dtype=np.int64)
    keys = draws.noise(np.ones(1), stream(7, "refused"))
    with pytest.raises(ValueError, match="longer than 1"):
        draws.replace_queries(2 * points(1), one, np.ones(1), keys)
    with pytest.raises(ValueError, match="4 coordinates"):
        draws.replace_queries(points(1)[:, :4], one, np.ones(1), keys)
    with pytest.raises(ParameterError):
        draws.noise(np.array([0.0]), stream(7, "refused"))
