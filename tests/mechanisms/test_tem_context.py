"""tem_context: the distribution that is claimed, exactly; what it may look at; the same draws
whatever the batch."""

import contextlib
import math
from bisect import bisect_right
from decimal import Decimal, localcontext
from itertools import accumulate
from types import SimpleNamespace

import numpy as np
import pytest

from lexveil.base.errors import ParameterError
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.embeddings.exact_search import pair_distances
from lexveil.core.mechanisms import tem_context
from lexveil.core.mechanisms.kernels import tem as tem_kernels
from lexveil.core.mechanisms.kernels import tem_context as kernels
from lexveil.core.mechanisms.rejection import (
    DRAWN,
    FOLLOWS,
    KEPT,
    MARGIN,
    PENDING,
    ROUNDING,
    SKIPPED,
    UNDECIDED,
    Draws,
)
from lexveil.core.mechanisms.tem_context import TemContext, TextTokens
from tests.mechanisms.test_every_bit_string import DIGITS, RefusedError, accepted, tem_law, within
from tests.mechanisms.toys import vectors

N = 40


def toy(n=N, **parameters):
    rng = np.random.default_rng(3)
    first, second = rng.integers(n, size=(2, 4 * n))
    bigrams = Bigrams.of(first, second, rng.integers(1, 50, 4 * n), n)
    return TemContext(vectors(n), counts=rng.integers(1, 900, n), bigrams=bigrams, **parameters)


def test_the_base_measure_is_that_of_the_bigrams():
    """Witten and Bell's mixture to the power κ, up to a factor of each word before; of rarer words
    a millionth."""
    for kappa, common in ((0.0, N), (0.5, 9), (1.0, N), (2.0, N)):
        mechanism = toy(kappa=kappa, common_words=common)
        rng = np.random.default_rng(3)
        bigrams = mechanism.bigrams
        single = (
            rng.integers(N, size=(2, 4 * N)),
            rng.integers(1, 50, 4 * N),
            rng.integers(1, 900, N),
        )[2] + 1.0
        for before in (0, 7):
            row = slice(bigrams.starts[before], bigrams.starts[before + 1])
            n = bigrams.counts[row].sum()
            different = len(bigrams.ids[row])
            mixture = single / single.sum() * different / (n + different)
            mixture[bigrams.ids[row]] += bigrams.counts[row] / n * n / (n + different)
            wanted = mixture**kappa
            found = mechanism.mass.of(before)
            wanted[np.argsort(-single)[common:]] /= 2**20
            assert found / found.sum() == pytest.approx(wanted / wanted.sum(), rel=1e-3, abs=1e-8)
        assert mechanism.mass.of(-1).min() >= 1


@pytest.mark.parametrize("epsilon", [0.4, 3.0, 9.0])
def test_draws_are_distributed_as_claimed_after_each_word(epsilon):
    """The draws are for a word without context, for a word after a kept word, and for an unknown
    word; all z statistics must be small.
    """
    mechanism = toy()
    n = 40_000
    rng = np.random.default_rng(8)
    budgets = np.full(n, epsilon)
    keys = rng.integers(0, 2**63, (3, n, 4)).astype(np.uint64)
    unknown = mechanism.mass.of(5) / mechanism.mass.of(5).sum()
    after = np.full(n, 5)
    word = np.array([2])
    words = np.full(n, 2)
    rows = (
        (mechanism.replace(words, budgets, keys[0]), mechanism.log_pmf(word, budgets[:1])),
        (
            mechanism.replace_after(words, budgets, keys[1], after),
            mechanism.log_pmf(word, budgets[:1], 5),
        ),
        (
            mechanism.replace_after(np.full(n, -1), np.zeros(n), keys[2], after),
            np.log(unknown)[None],
        ),
    )
    for drawn, law in rows:
        p = np.exp(law[0])
        z = (np.bincount(drawn, minlength=N) - n * p) / np.sqrt(n * p * (1 - p))
        assert np.abs(z[n * p > 5]).max() < 5


def walk(mechanism, kind, about, ids, keys):
    first = np.zeros(len(kind), dtype=np.bool_)
    first[[0, 4]] = True
    texts = TextTokens(first, np.array(kind), np.array(about))
    return mechanism.replace_in_order(texts, np.array(ids), np.full(len(ids), 2.0), keys).tolist()


def test_what_a_draw_depends_on():
    """A draw depends on its own word and key, and on the word written just before in the same text;
    nothing else before or after matters.
    """
    mechanism = toy()
    keys = np.random.default_rng(1).integers(0, 2**63, (5, 4)).astype(np.uint64)
    kind = [DRAWN, SKIPPED, DRAWN, FOLLOWS, DRAWN, KEPT, DRAWN, DRAWN]
    about = [0, -1, 1, 0, 2, 9, 3, 4]
    drawn = walk(mechanism, kind, about, [3, 4, 5, 6, 7], keys)
    one = np.full(1, 2.0)

    def alone(number, word, before):
        return int(
            mechanism.replace_after(
                np.array([word]), one, keys[number : number + 1], np.array([before])
            )[0]
        )

    assert drawn[1] == drawn[5] == -1 and drawn[3] == drawn[0]
    assert [drawn[0], drawn[2], drawn[4], drawn[6], drawn[7]] == [
        alone(0, 3, -1),
        alone(1, 4, drawn[0]),
        alone(2, 5, -1),
        alone(3, 6, 9),
        alone(4, 7, drawn[6]),
    ]
    # another source word changes what it becomes alone
    later = walk(mechanism, kind, about, [3, 4, 5, 6, 30], keys)
    assert later[:7] == drawn[:7]


def intervals(mechanism, word, before, epsilon, patch):
    """Return for each proposed word the number of its positions that are certainly accepted, and
    the number that may be; every proposal is tried.
    """
    budgets = np.array([epsilon])
    points = list[int]()
    asked = [1, 0]

    def next_point(_state, _stream, at, total, _mask):
        asked[0] = int(total)
        if not points:
            raise RefusedError
        return np.int64(points.pop()), at

    def next_words(_state, stream):
        stream[:] = asked[1]

    for name, fake in (("next_point", next_point), ("next_words", next_words)):
        patch.setattr(kernels, name, fake)
    for name in ("_envelope", "_after", "_word_at"):
        patch.setattr(
            kernels, name, getattr(getattr(kernels, name), "py_func", getattr(kernels, name))
        )
    lists = mechanism.near.lists(np.array([word]))
    none = np.zeros(1, dtype=np.int64)
    keys = np.zeros((1, 4), dtype=np.uint64)
    drawn = kernels.Drawn(np.array([word]), budgets, mechanism.gamma(budgets), keys, none, none)
    space = tem_kernels.WordTable(
        mechanism.vectors, mechanism.halvings, mechanism.sketch.rows, mechanism.sketch.step
    )
    token = Draws(
        drawn.ids, budgets, drawn.gamma, drawn.keys, drawn.refused, np.zeros((1, 3), np.int64)
    )
    near = (lists.ids, lists.distances, np.arange(mechanism.size))
    doubt = np.zeros(3, dtype=np.int64)

    def tried():
        point = 0
        while point < asked[0]:
            for fine in range(2**kernels.FINE_BITS):
                points[:] = [point]
                asked[1] = fine
                out = PENDING
                with contextlib.suppress(RefusedError):
                    out = int(
                        kernels._draw.py_func(space, mechanism._sums, drawn, 0, before, near, doubt)
                    )
                    out = out if out >= 0 else UNDECIDED
                yield out, doubt.tolist()
            point += 1

    return accepted(mechanism, token, tried(), 16, patch)


def _short_envelope(patch):
    short = SimpleNamespace(**{name: getattr(math, name) for name in ("sqrt", "log", "inf")})
    short.exp = lambda x: math.exp(x) * (1 - 1e-3)
    patch.setattr(kernels, "math", short)


def _context_of_none(patch):
    patch.setattr(kernels, "_after", lambda *_: np.int64(0))


@pytest.mark.parametrize(
    ("epsilon", "before", "bits", "fault"),
    [
        *((epsilon, before, 4, None) for epsilon in (0.5, 4.0) for before in (-1, 1)),
        (0.5, 1, 11, None),
        (0.5, 1, 11, _short_envelope),
        (4.0, 1, 4, _context_of_none),
        (4.0, 1, 4, lambda patch: patch.setattr(TemContext, "_accepts", lambda *_: True)),
    ],
)
def test_every_point_gives_the_exact_distribution(
    epsilon,
    before,
    bits,
    fault,
    monkeypatch,
):
    """The share of each word is its weight, in an interval of what is still undecided, for small
    masses and few bits of envelopes.

    The test detects an envelope that is a thousandth short (for which there are more bits), masses
    of context that are missing among near words, and exact decisions that always accept.
    """
    monkeypatch.setattr(
        tem_context,
        "base_measure",
        lambda *_: tem_context.BaseMeasure(
            np.array([3, 1, 4, 1, 2]),
            np.array([0, 0, 2, 2, 2, 2]),
            np.array([0, 3]),
            np.array([5, 2]),
        ),
    )
    # so that words are proposed among all, too
    monkeypatch.setattr("lexveil.core.embeddings.neighborhoods.LISTED", 3)
    mechanism = toy(5)
    fine = 3 if bits == 4 else 0
    monkeypatch.setattr(kernels, "ENVELOPE_BITS", bits)
    monkeypatch.setattr(kernels, "FINE_BITS", fine)
    mechanism.bits = bits + fine
    mass = mechanism.mass.of(before)
    with localcontext() as context:
        context.prec = DIGITS
        law = {x: int(mass[x]) * weight for x, weight in tem_law(mechanism, 2, epsilon).items()}
        if fault is not None:
            fault(monkeypatch)
        assert within(law, intervals(mechanism, 2, before, epsilon, monkeypatch)) == (fault is None)


def plain_draw(mechanism, word, before, epsilon, keys, short):
    """One draw by the definition of the sampler, exactly decided, from the stream of a key.

    Args:
        short: the share by which envelopes are too small.
    """
    half = epsilon / 2
    gamma = float(mechanism.gamma(np.array([epsilon]))[0])
    lists = mechanism.near.lists(np.array([word]))
    single, mass = (mechanism.mass.of(token).astype(int) for token in (-1, before))

    def envelope(distance):
        weight = math.exp(-half * min(distance * (1 - ROUNDING), gamma))
        return min(2**30, int(weight * (1 + MARGIN) * (1 - short) * 2**30) + 1)

    near = [int(number) for number in lists.ids[0]]
    # each word so often as it weighs: the near ones, then all, by what they weigh alone and beside
    parts = [
        (number, int(mass[number]), envelope(d), True)
        for number, d in zip(near, lists.distances[0].tolist(), strict=True)
    ]
    far = envelope(float(lists.distances[0, -1])) if mechanism.size > len(near) else 0
    parts += [(number, int(single[number]), far, False) for number in range(mechanism.size)]
    parts += [(number, int(more), far, False) for number, more in enumerate(mass - single) if more]
    ends = [*accumulate(times * size for _, times, size, _ in parts)]
    total = ends[-1]
    mask = 2 ** (total - 1).bit_length() - 1
    state = np.empty(16, dtype=np.uint32)
    block = np.empty(kernels.WORDS, dtype=np.uint64)
    kernels.open_stream(state, keys, 0, 0)

    def stream():
        while True:
            kernels.next_words(state, block)
            yield from block.tolist()

    words = stream()
    while True:
        point = next(
            candidate for candidate in (each & mask for each in words) if candidate < total
        )
        fine = next(words) & (2**22 - 1)
        at = bisect_right(ends, point)
        proposed, times, size, is_near = parts[at]
        # near words are counted from the end of what they have together
        beyond = point - (ends[at] - times * size)
        left = ends[at] - 1 - point
        q = (left if is_near else beyond) % size
        d = float(pair_distances(mechanism.vectors, np.array([word]), np.array([proposed]))[0])
        limit = 2**52 * (Decimal(-half) * Decimal(min(d, gamma))).exp()
        if (q << 22) + fine < limit and (is_near or proposed not in near):
            return proposed


@pytest.mark.parametrize("short", [0, 1e-3])
def test_compiled_draws_are_those_of_a_plain_sampler(short, monkeypatch):
    """Draw by draw from the same keys, by lists and among all words, after a token and after none.

    Envelopes that are a thousandth short are others' draws.
    """
    monkeypatch.setattr("lexveil.core.embeddings.neighborhoods.LISTED", 8)
    mechanism = toy()
    n = 150
    same = 0
    keys = np.random.default_rng(4).integers(0, 2**63, (n, 4)).astype(np.uint64)
    epsilon = np.resize([0.3, 1.5, 6.0], n)
    words = np.arange(n) % N
    before = np.resize([-1, 5, 7, 11], n)
    drawn = mechanism.replace_after(words, epsilon, keys, before)
    with localcontext() as context:
        context.prec = DIGITS
        for at in range(n):
            plain = plain_draw(
                mechanism, int(words[at]), int(before[at]), epsilon[at], keys[at : at + 1], short
            )
            same += plain == drawn[at]
    assert (same == n) == (short == 0)


@pytest.mark.parametrize(("name", "value"), [("kappa", 2.5), ("common_words", 1)])
def test_parameters_out_of_range(name, value):
    with pytest.raises(ParameterError, match=rf"tem_context\.{name}"):
        toy(**{name: value})
