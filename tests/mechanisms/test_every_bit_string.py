"""Every string of bits in place of the stream: the exact distribution of the samplers that are
there, not of samples.

What the strings do not decide is an interval, and the distribution by definition, to 60 digits,
must lie in it. So a fault of a thousandth is seen, which tens of thousands of draws do not show. At
the end, what strings are too short for.
"""

import contextlib
import math
from decimal import Decimal, localcontext
from types import SimpleNamespace

import numpy as np
import pytest

from lexveil.base.errors import ParameterError
from lexveil.core.embeddings.exact_search import pair_distances
from lexveil.core.mechanisms import diffractor_geometric
from lexveil.core.mechanisms.diffractor_geometric import DiffractorGeometric, geometric_size
from lexveil.core.mechanisms.diffractor_tem import DiffractorTem
from lexveil.core.mechanisms.kernels import diffractor as list_kernels
from lexveil.core.mechanisms.kernels import tem as kernels
from lexveil.core.mechanisms.noise import keystream
from lexveil.core.mechanisms.rejection import PENDING, UNDECIDED, Draws
from lexveil.core.mechanisms.tem import Tem
from lexveil.core.mechanisms.truncated_exponential import FIRST_NONCE, truncation
from tests.mechanisms.toys import draw, vectors

BITS = 14  # of the strings; in the nightly form 20
DIGITS = 60


def within(law, found):
    """Return whether each probability lies in the interval that the strings leave."""
    return set(law) == set(found) and all(low <= law[x] <= high for x, (low, high) in found.items())


# Positions in a list: the index is a step function of one uniform number, so both ends of a
# string's numbers decide.


def index_intervals(mechanism, index, epsilon, bits):
    """Return for each index the share of strings that certainly give it, and the share that may."""
    shift = np.uint64(64 - bits)
    has_sign = isinstance(mechanism, DiffractorGeometric)
    starts = np.arange(2**bits, dtype=np.uint64) << shift
    rest = (np.uint64(1) << shift) - np.uint64(1)
    ends = []
    for sign in (0, 1) if has_sign else (None,):
        for filling in (np.uint64(0), rest):
            first = starts | filling
            if sign is not None:
                first = (first & ~np.uint64(1)) | np.uint64(sign)
            words = np.stack([first, np.full_like(first, filling)], axis=1)
            ends.append(
                mechanism.perturb(np.full(len(first), index), np.full(len(first), epsilon), words)
            )
    low = np.concatenate(ends[::2])
    high = np.concatenate(ends[1::2])
    decided = np.bincount(low[low == high], minlength=mechanism.size)
    open_cells = int((low != high).sum())
    assert open_cells <= 4 * mechanism.size + 4  # at the steps, and nowhere else
    one = Decimal(1) / len(low)
    return {x: (n * one, (n + open_cells) * one) for x, n in enumerate(decided.tolist())}


def geometric_law(size, index, epsilon):
    """Two-sided geometric noise, clipped (Meisenbacher et al. 2024)."""
    q = (-Decimal(epsilon)).exp()
    centre = (1 - q) / (1 + q)
    law = {x: centre * q ** abs(x - index) for x in range(size)}
    for end, beyond in ((0, index), (size - 1, size - 1 - index)):
        law[end] = q**beyond / (1 + q)
    if size == 1:
        law = {0: Decimal(1)}
    return law


def truncated_law(size, index, epsilon, beta, gamma):
    """TEM over positions: near ones by their distance, all others alike, with beta / (1 - beta)
    together."""
    half = Decimal(epsilon) / 2
    radius = int(min(gamma, size))
    far = min(Decimal(1), Decimal(min(1.0, beta / ((1 - beta) * max(size - 1, 1)))))
    weights = {
        x: (-half * abs(x - index)).exp() if abs(x - index) <= radius else far for x in range(size)
    }
    total = sum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


def law_of(mechanism, index, epsilon):
    if isinstance(mechanism, DiffractorGeometric):
        return geometric_law(mechanism.size, index, epsilon)
    assert isinstance(mechanism, DiffractorTem)
    return truncated_law(
        mechanism.size,
        index,
        epsilon,
        mechanism.beta,
        float(mechanism.reach(np.array([epsilon]))[0]),
    )


@pytest.mark.parametrize("kind", [DiffractorGeometric, DiffractorTem])
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 4.0])
@pytest.mark.parametrize("index", [0, 2, 5])
@pytest.mark.parametrize("bits", [BITS, pytest.param(20, marks=pytest.mark.nightly)])
def test_positions_of_every_string(kind, index, epsilon, bits):
    """The test detects noise that is 3 % off (3 ‰ with longer strings)."""
    mechanism = kind(np.arange(6)[None])
    off = 1.03 if bits == BITS else 1.003
    with localcontext() as context:
        context.prec = DIGITS
        found = index_intervals(mechanism, index, epsilon, bits)
        assert within(law_of(mechanism, index, epsilon), found)
        assert not within(law_of(mechanism, index, epsilon * off), found)


@pytest.mark.parametrize("n_lists", [2, 3, 5])
def test_every_string_chooses_a_list_with_the_same_chance(n_lists):
    """Each list has the word at another index; epsilon is so large that it stays there."""
    orders = np.stack([np.roll(np.arange(n_lists), place) for place in range(n_lists)])
    mechanism = DiffractorGeometric(orders)
    n = 2**BITS
    chosen = list[int]()
    mechanism.perturb = lambda index, *_: chosen.extend(index.tolist()) or index
    second = np.arange(n, dtype=np.uint64) << np.uint64(64 - BITS)
    mechanism.replace(
        np.zeros(n, dtype=np.int64), np.ones(n), np.stack([np.zeros_like(second), second], axis=1)
    )
    counts = np.bincount(chosen, minlength=n_lists)
    assert len(counts) == n_lists and counts.max() - counts.min() <= 1


# TEM: a proposal is one whole number; every one of them is tried, and every byte by which a doubt
# is settled.


class RefusedError(Exception):
    """The first proposal was refused: another one is asked for."""


def accepted(
    tem,
    token,
    tried,
    parts,
    patch,
):
    """Return for each proposed word the number of its real positions that are certainly accepted,
    and the number that may be.

    Args:
        tried: for every proposal its result: a word, PENDING, or UNDECIDED with the doubt, which
            the first byte of the fraction settles, in ``parts`` parts.
    """
    low = [Decimal(0)] * tem.size
    open_parts = [Decimal(0)] * tem.size
    width = 256 // parts
    for out, (proposed, position, _) in tried:
        if out >= 0:
            low[out] += 1
        for first in range(0, 256 if out == UNDECIDED else 0, width):
            ends = []
            for tail in (bytes([first]) + b"\0" * 99, bytes([first + width - 1]) + b"\xff" * 99):
                patch.setattr(
                    keystream, "expand", lambda _key, n_bytes, _nonce=0, tail=tail: tail[:n_bytes]
                )
                token.doubts[0, :2] = proposed, position
                ends.append(tem._accepts(token, 0, FIRST_NONCE))
            low[proposed] += Decimal(all(ends)) / parts
            open_parts[proposed] += Decimal(ends[0] != ends[1]) / parts
    return {x: (low[x], low[x] + open_parts[x]) for x in range(tem.size)}


def tem_intervals(tem, word, epsilon, way, patch):
    """Return for each proposed word the number of its real positions below 2^bits that are
    certainly accepted, and the number that may be.
    """
    budgets = np.array([epsilon])
    none = np.zeros((1, 4), dtype=np.uint64)
    space = kernels.WordTable(tem.vectors, tem.halvings, tem.sketch.rows, tem.sketch.step)
    points = list[int]()
    total = [1]
    token = Draws(
        np.array([word]),
        budgets,
        tem.gamma(budgets),
        none,
        np.zeros(1, np.int64),
        np.zeros((1, 3), np.int64),
    )

    def next_point(_state, _stream, at, n, _mask):
        total[0] = int(n)
        if not points:
            raise RefusedError
        return points.pop(), at

    def tried():
        point = 0
        while point < total[0]:
            # the plain way decides once it has the next one
            points[:] = [0, point] if way == "plain" else [point]
            out = PENDING
            point = point + 1
            with contextlib.suppress(RefusedError):
                if way == "plain":
                    out = int(kernels.draw_uniformly.py_func(space, token, 2, tem.bits)[0])
                else:
                    ((_, table, places),) = tem.near.tables(token.inputs)
                    lists = table.ids, table.distances, tem.shells, places
                    out = int(kernels.draw_from_lists.py_func(space, token, *lists, tem.bits)[0])
            yield out, token.doubts[0].tolist()

    patch.setattr(kernels, "next_point", next_point)
    patch.setattr(kernels, "prefetch", lambda *_: None)  # of compiled code only
    found = accepted(tem, token, tried(), 256, patch)
    assert max(most - least for least, most in found.values()) <= Decimal(2) / 256
    return found


def tem_law(tem, word, epsilon):
    """2^bits times the weight of each word."""
    everyone = np.arange(tem.size)
    gamma = float(tem.gamma(np.array([epsilon]))[0])
    distances = pair_distances(tem.vectors, np.full(tem.size, word), everyone).tolist()
    half = Decimal(float(epsilon) / 2)
    return {
        x: 2**tem.bits * (-half * Decimal(min(d, gamma))).exp() for x, d in enumerate(distances)
    }


def _short_envelope(patch):
    """Shorten the envelope by a thousandth, so that words beside the nearest word of a shell are
    never accepted where it is too short.
    """
    short = SimpleNamespace(**{name: getattr(math, name) for name in ("sqrt", "log", "inf")})
    short.exp = lambda x: math.exp(x) * (1 - 1e-3)
    patch.setattr(kernels, "math", short)


# A way of proposing, epsilon, bits, words, and a fault that samples do not show.
TEM_CASES = [
    *(
        (way, epsilon, bits, [1], None)
        for way in ("plain", "list")
        for epsilon, bits in ((0.3, 6), (2.0, 8), (9.0, 8))
    ),
    *(
        pytest.param(way, epsilon, bits, [0, 2, 4], None, marks=pytest.mark.nightly)
        for way in ("plain", "list")
        for epsilon, bits in ((0.3, 7), (2.0, 9), (9.0, 9))
    ),
    ("list", 2.0, 12, [1], _short_envelope),
    ("list", 2.0, 8, [1], lambda patch: patch.setattr(Tem, "_accepts", lambda *_: True)),
    ("list", 2.0, 8, [1], lambda patch: patch.setattr(Tem, "_accepts", lambda *_: False)),
]


@pytest.mark.parametrize(("way", "epsilon", "bits", "words", "fault"), TEM_CASES)
def test_tem_of_every_string(
    way,
    epsilon,
    bits,
    words,
    fault,
    monkeypatch,
):
    """Lists have four words, so that others are proposed among all words."""
    monkeypatch.setattr("lexveil.core.embeddings.neighborhoods.LISTED", 4)
    tem = Tem(vectors(6))
    tem.bits = bits
    if fault is not None:
        fault(monkeypatch)
    with localcontext() as context:
        context.prec = DIGITS
        for word in words:
            found = tem_intervals(tem, word, epsilon, way, monkeypatch)
            assert within(tem_law(tem, word, epsilon), found) == (fault is None)


KINDS = [DiffractorGeometric, DiffractorTem]


def test_float64_says_where_it_cannot_tell():
    """The fast path alone leaves the boundary open, and the slow one agrees with it away from
    boundaries."""
    words = np.random.default_rng(3).integers(0, 2**64 - 1, size=(300, 2), dtype=np.uint64)
    epsilon = np.geomspace(0.01, 20, 300)
    index = np.full(300, 500)
    moved, doubt = list_kernels.geometric(index, epsilon, words, 1000)
    assert not doubt.any()
    for token in range(300):
        assert abs(moved[token] - 500) == geometric_size(words[token], float(epsilon[token]), 1000)
    tem = DiffractorTem(np.arange(1000))
    fast = tem.perturb(index, epsilon, words)
    gamma = truncation(epsilon, tem.beta, 1000)
    for token in range(0, 300, 5):
        radius = int(min(gamma[token], 1000))
        slow = diffractor_geometric.settle(
            lambda u, t=token, r=radius: tem._at(u, 500, float(epsilon[t]), r), words[token]
        )
        assert slow == fast[token]


def test_deep_tails_are_drawn():
    """A first word of zero goes on with more bits: at ε = 60 a step of one has probability
    2·10⁻²⁶."""
    words = np.array([[0, 12345]], dtype=np.uint64)
    assert geometric_size(words[0], 60.0, 100) >= 0
    assert geometric_size(words[0], 1.0, 100) >= 43  # e^{-43} is about 2^{-62}
    with localcontext() as context:
        context.prec = 60
        assert diffractor_geometric._geometric_at(Decimal(10) ** -40, 30.0, 100) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_one_word_and_bad_lists(kind):
    assert draw(kind(np.zeros(1, dtype=np.int32)), 0, 1.0, samples=20).tolist() == [0] * 20
    with pytest.raises(ParameterError, match="exactly once"):
        kind(np.array([0, 1, 1]))
    with pytest.raises(ParameterError, match="at least one word"):
        kind(np.zeros((1, 0), dtype=np.int32))


def test_rounding_of_the_radius_never_makes_a_longer_step():
    """The score is the index up to R = ⌊reach⌋, and γ beyond: from R to R + 1 it may change by 1 at
    most.

    With R = ⌊γ⌋ it changes by more where γ is rounded below a whole number, which the first
    assertion looks for.
    """
    tem = DiffractorTem(np.arange(1000))
    beta = Decimal(tem.beta)
    longer = 0
    with localcontext() as context:
        context.prec = 60
        level = 2 * ((1 - beta) * 999 / beta).ln()
        for whole in range(1, 200):
            epsilon = np.array([float(level / whole)])
            for _ in range(4):
                gamma = float(truncation(epsilon, tem.beta, 1000)[0])
                radius = int(tem.reach(epsilon)[0])
                longer += level / Decimal(float(epsilon[0])) - int(gamma) > 1
                assert -1 <= level / Decimal(float(epsilon[0])) - radius <= 1
                epsilon = np.nextafter(epsilon, 0)
    assert longer
