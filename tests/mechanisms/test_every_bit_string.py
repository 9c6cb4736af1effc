"""Every string of bits in place of the stream: the exact distribution of the samplers that are there, not of samples.

What the strings do not decide is an interval, and the distribution by definition, to 60 digits, must lie in it. So a
fault of a thousandth is seen, which tens of thousands of draws do not show.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lexveil.embeddings.exact_search import pair_distances
from lexveil.mechanisms.diffractor_geometric import DiffractorGeometric
from lexveil.mechanisms.diffractor_tem import DiffractorTem
from lexveil.mechanisms.kernels import tem as kernels
from lexveil.mechanisms.noise import keystream
from lexveil.mechanisms.rejection import PENDING, UNDECIDED
from lexveil.mechanisms.tem import FIRST_NONCE, Tem, _Tokens
from lexveil.mechanisms.word_lists import OnLists
from tests.mechanisms.toys import vectors

BITS = 20  # of the strings
DIGITS = 60
Interval = tuple[Decimal, Decimal]


def within(law: dict[int, Decimal], found: dict[int, Interval]) -> bool:
    """Whether each probability lies in the interval that the strings leave."""
    return set(law) == set(found) and all(low <= law[x] <= high for x, (low, high) in found.items())


# Positions in a list: the index is a step function of one uniform number, so both ends of a string's numbers decide.


def index_intervals(mechanism: OnLists, index: int, epsilon: float, has_sign: bool) -> dict[int, Interval]:
    """How much of the strings gives each index, and how much may."""
    shift = np.uint64(64 - BITS)
    starts = np.arange(2**BITS, dtype=np.uint64) << shift
    rest = (np.uint64(1) << shift) - np.uint64(1)
    ends = []
    for sign in (0, 1) if has_sign else (None,):
        for filling in (np.uint64(0), rest):
            first = starts | filling
            if sign is not None:
                first = (first & ~np.uint64(1)) | np.uint64(sign)
            words = np.stack([first, np.full_like(first, filling)], axis=1)
            ends.append(mechanism.perturb(np.full(len(first), index), np.full(len(first), epsilon), words))
    low, high = np.concatenate(ends[::2]), np.concatenate(ends[1::2])
    decided = np.bincount(low[low == high], minlength=mechanism.size)
    open_cells = int((low != high).sum())
    assert open_cells <= 4 * mechanism.size + 4  # at the steps, and nowhere else
    one = Decimal(1) / len(low)
    return {x: (n * one, (n + open_cells) * one) for x, n in enumerate(decided.tolist())}


def geometric_law(size: int, index: int, epsilon: float) -> dict[int, Decimal]:
    """Two-sided geometric noise, clipped (Meisenbacher et al. 2024)."""
    q = (-Decimal(epsilon)).exp()
    centre = (1 - q) / (1 + q)
    law = {x: centre * q ** abs(x - index) for x in range(size)}
    for end, beyond in ((0, index), (size - 1, size - 1 - index)):
        law[end] = q**beyond / (1 + q)
    if size == 1:
        law = {0: Decimal(1)}
    return law


def truncated_law(size: int, index: int, epsilon: float, beta: float, gamma: float) -> dict[int, Decimal]:
    """TEM over positions: near ones by their distance, all others alike, with beta / (1 - beta) together."""
    half, radius = Decimal(epsilon) / 2, int(min(gamma, size))
    far = min(Decimal(1), Decimal(min(1.0, beta / ((1 - beta) * max(size - 1, 1)))))
    weights = {x: (-half * abs(x - index)).exp() if abs(x - index) <= radius else far for x in range(size)}
    total = sum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 4.0])
@pytest.mark.parametrize("index", [0, 2, 5])
def test_geometric_noise_of_every_string(index: int, epsilon: float) -> None:
    mechanism = DiffractorGeometric(np.arange(6)[None])
    with localcontext() as context:
        context.prec = DIGITS
        assert within(geometric_law(6, index, epsilon), index_intervals(mechanism, index, epsilon, has_sign=True))


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 4.0])
@pytest.mark.parametrize("index", [0, 2, 5])
def test_truncated_exponential_of_every_string(index: int, epsilon: float) -> None:
    mechanism = DiffractorTem(np.arange(6)[None])
    gamma = float(mechanism.reach(np.array([epsilon]))[0])
    with localcontext() as context:
        context.prec = DIGITS
        law = truncated_law(6, index, epsilon, mechanism.beta, gamma)
        assert within(law, index_intervals(mechanism, index, epsilon, has_sign=False))


@pytest.mark.parametrize("n_lists", [2, 3, 5])
def test_every_string_chooses_a_list_with_the_same_chance(n_lists: int) -> None:
    """Each list has the word at another index; epsilon is so large that it stays there."""
    orders = np.stack([np.roll(np.arange(n_lists), place) for place in range(n_lists)])
    mechanism, n = DiffractorGeometric(orders), 2**BITS
    chosen = list[int]()
    mechanism.perturb = lambda index, *_: chosen.extend(index.tolist()) or index  # type: ignore[method-assign]
    second = np.arange(n, dtype=np.uint64) << np.uint64(64 - BITS)
    mechanism.replace(np.zeros(n, dtype=np.int64), np.ones(n), np.stack([np.zeros_like(second), second], axis=1))
    counts = np.bincount(chosen, minlength=n_lists)
    assert len(counts) == n_lists and counts.max() - counts.min() <= 1


def test_noise_that_is_a_thousandth_off_is_seen() -> None:
    mechanism = DiffractorGeometric(np.arange(6)[None])
    with localcontext() as context:
        context.prec = DIGITS
        found = index_intervals(mechanism, 2, 0.7 * 1.001, has_sign=True)
        assert not within(geometric_law(6, 2, 0.7), found)


# TEM: a proposal is one whole number; every one of them is tried, and every byte by which a doubt is settled.


class _Refused(Exception):
    """The first proposal was refused: another one is asked for."""


def tem_intervals(tem: Tem, word: int, epsilon: float, way: str, patch: pytest.MonkeyPatch) -> dict[int, Interval]:
    """Of the real positions below 2^bits of each proposed word, how many are accepted, and how many may be."""
    budgets = np.array([epsilon])
    token = _Tokens(np.array([word]), budgets, tem.gamma(budgets), np.zeros((1, 4), dtype=np.uint64))
    low, open_parts = [Decimal(0)] * tem.size, [Decimal(0)] * tem.size
    for out, proposed, position in proposals(tem, token, way, patch):
        if out >= 0:
            low[out] += 1
        elif out == UNDECIDED:
            for byte in range(256):
                ends = [is_accepted(tem, token, proposed, position, bytes([byte]) + filling * 99, patch)
                        for filling in (b"\0", b"\xff")]  # fmt: skip
                low[proposed] += Decimal(all(ends)) / 256
                open_parts[proposed] += Decimal(ends[0] != ends[1]) / 256
    assert max(open_parts) <= Decimal(2) / 256
    return {x: (low[x], low[x] + open_parts[x]) for x in range(tem.size)}


def proposals(tem: Tem, token: _Tokens, way: str, patch: pytest.MonkeyPatch) -> Iterator[tuple[int, int, int]]:
    """What becomes of each proposal: a word, or UNDECIDED; the proposed word, and its position."""
    points, total = list[int](), [0]

    def next_point(_state: Any, _stream: Any, at: int, n: int, _mask: Any) -> tuple[int, int]:
        total[0] = int(n)
        if not points:
            raise _Refused
        return points.pop(), at

    patch.setattr(kernels, "_next_point", next_point)
    patch.setattr(kernels, "prefetch", lambda *_: None)  # of compiled code only
    point = 0
    while not total[0] or point < total[0]:
        points[:] = [0, point] if way == "plain" else [point]  # the plain way decides once it has the next one
        out, doubts = np.array([PENDING]), np.zeros((1, 3), dtype=np.int64)
        with contextlib.suppress(_Refused):
            out = _drawn(tem, token, way, doubts)
        yield int(out[0]), int(doubts[0, 0]), int(doubts[0, 1])
        point += 1


def _drawn(tem: Tem, token: _Tokens, way: str, doubts: np.ndarray) -> np.ndarray:
    refused, rows, step = np.zeros(1, dtype=np.int64), tem.sketch.rows, tem.sketch.step
    if way == "plain":
        attempts = 2
        return kernels.draw_uniformly.py_func(tem.vectors, rows, step, *token, attempts, tem.bits, refused, doubts)
    ((_, table, places),) = tem.near.tables(token.ids)
    lists = table.ids, table.distances, tem.shells, places
    return kernels.draw_from_lists.py_func(tem.vectors, rows, step, *lists, *token, tem.bits, refused, doubts)


def is_accepted(tem: Tem, token: _Tokens, proposed: int, position: int, tail: bytes, patch: pytest.MonkeyPatch) -> bool:
    """What exact arithmetic decides where the next bits are these."""
    patch.setattr(keystream, "expand", lambda _key, n_bytes, _nonce=0: tail[:n_bytes])
    return tem._is_accepted(token, proposed, position, FIRST_NONCE)


def tem_law(tem: Tem, word: int, epsilon: float) -> dict[int, Decimal]:
    """2^bits times the weight of each word."""
    everyone, gamma = np.arange(tem.size), float(tem.gamma(np.array([epsilon]))[0])
    distances = pair_distances(tem.vectors, np.full(tem.size, word), everyone).tolist()
    half = Decimal(float(epsilon) / 2)
    return {x: 2**tem.bits * (-half * Decimal(min(d, gamma))).exp() for x, d in enumerate(distances)}


def toy(bits: int) -> Tem:
    tem = Tem(vectors(5))
    tem.bits = bits
    return tem


@pytest.mark.parametrize("way", ["plain", "list"])
@pytest.mark.parametrize(("epsilon", "bits"), [(0.3, 7), (2.0, 9), (9.0, 9)])
def test_tem_of_every_string(way: str, epsilon: float, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tem = toy(bits)
    with localcontext() as context:
        context.prec = DIGITS
        for word in range(0, 5, 2):
            found = tem_intervals(tem, word, epsilon, way, monkeypatch)
            assert within(tem_law(tem, word, epsilon), found)


def _short_envelope(patch: pytest.MonkeyPatch) -> None:
    """Of a thousandth: words beside the nearest of a shell are never accepted where it misses."""
    short = SimpleNamespace(**{name: getattr(math, name) for name in ("sqrt", "log", "inf")})
    short.exp = lambda x: math.exp(x) * (1 - 1e-3)
    patch.setattr(kernels, "math", short)


def _always_accepts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tem, "_is_accepted", lambda *_: True)


def _never_settles(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tem, "_is_accepted", lambda *_: False)


@pytest.mark.parametrize("fault", [_short_envelope, _always_accepts, _never_settles])
def test_faults_that_samples_do_not_show_are_seen(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tem, epsilon, word = toy(12 if fault is _short_envelope else 8), 2.0, 1
    with localcontext() as context:
        context.prec = DIGITS
        law = tem_law(tem, word, epsilon)
        assert within(law, tem_intervals(tem, word, epsilon, "list", monkeypatch))
        fault(monkeypatch)
        assert not within(law, tem_intervals(tem, word, epsilon, "list", monkeypatch))
