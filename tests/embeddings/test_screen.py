"""Products of 8 bits: the answers of a float64 scan, and the bounds that docs/proofs/screen.md
rests on."""

from functools import cache

import numpy as np
import pytest

from lexveil.core.embeddings import exact_search
from lexveil.core.embeddings.exact_search import ExactSearch
from lexveil.core.embeddings.kernels import dot
from lexveil.core.embeddings.screen import Screen
from tests.embeddings.test_search import far_queries, near_ties, scan_k, wide_words

KIND = dot.processor_kind()
here = pytest.mark.skipif(KIND < 0, reason="this processor has no such instruction")


def spikes():
    """Vectors with a single non-zero coordinate, so that rounding gives only 0 and ±127."""
    words = np.zeros((260, 130), dtype=np.float32)
    words[np.arange(260), np.arange(260) % 130] = np.where(np.arange(260) < 130, 3, -3)
    return words


def brim():
    """Equal coordinates: the 16-bit sums are as large as they may become."""
    return np.repeat(np.random.default_rng(1).choice([-1.0, 1.0], (200, 20)), 15, axis=1).astype(
        np.float32
    )


VECTORS = {
    "random": wide_words(303),
    "near ties": near_ties(3),
    "copies": np.repeat(wide_words(10), 20, axis=0)[:, :100],
    "all equal": np.repeat(wide_words(1)[:, :50], 400, axis=0),
    "zeros": wide_words(300)[:, :61] * (np.arange(300) % 3 > 0)[:, None],
    "lengths from 1e-20 to 1e6": wide_words(400)[:, :17]
    * 10.0 ** np.linspace(-20, 6, 400)[:, None],
    "far from zero": wide_words(500)[:, :33] + 1e4,
    "spikes": spikes(),
    "sums to the brim": brim(),
    "one word": wide_words(1),
    **{f"p = {p}": wide_words(133)[:, :p] for p in (1, 2, 240, 299)},
}


def queries_of(vectors):
    """Words themselves, between two words, with little and with much noise, and at 0."""
    wide = vectors.astype(np.float64)
    noisy = [far_queries(vectors, 5, epsilon) for epsilon in (0.1, 1.0, 10.0, 50.0, 1000.0)]
    between = (wide[:5] + wide[::-1][:5]) / 2
    return np.concatenate([wide[:5], between, *noisy, np.zeros((1, vectors.shape[1]))])


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(exact_search, "SCREEN_QUERIES", 0)
    monkeypatch.setattr(exact_search, "SCREEN_WORK", 0)


@cache
def scanned(name):
    """The queries of a kind of vectors, and the answers of a scan, which is slow."""
    vectors = np.ascontiguousarray(VECTORS[name], dtype=np.float32)
    queries = queries_of(vectors)
    return vectors, queries, scan_k(vectors, queries, min(8, len(vectors)))


@here
@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize("name", VECTORS)
def test_answers_are_those_of_a_float64_scan(at_once, name, k):
    vectors, queries, scan = scanned(name)
    search = ExactSearch(vectors)
    ids, distances = search.nearest_k(queries, k)
    assert search._screen is not None
    few, plain = search._by_products(queries, min(k, len(vectors)))
    np.testing.assert_array_equal(ids, few)
    np.testing.assert_array_equal(distances, np.sqrt(plain))  # bit for bit
    expected = [answers[:, :k] for answers in scan]
    # The scan is in wider numbers than float64: what float64 rounds to one distance may differ.
    other = ids != expected[0]
    np.testing.assert_allclose(distances[other], expected[1][other], rtol=1e-12)
    np.testing.assert_allclose(distances, expected[1], rtol=1e-12, atol=1e-30)


def test_queries_and_words_of_any_length(at_once):
    vectors = wide_words(133)
    queries = np.repeat(far_queries(vectors, 1, 0.1), 9, axis=0)
    queries *= 10.0 ** np.array([-300, -30, -12, 0, 6, 11, 13, 40, 140])[:, None]
    ids, distances = ExactSearch(vectors).nearest_k(queries, 1)
    expected = scan_k(vectors, queries, 1)
    assert ids[:5].tolist() == expected[0][:5].tolist()
    # Farther away words are told apart by how float64 rounds their distances.
    assert ((ids >= 0) & (ids < len(vectors))).all()
    np.testing.assert_allclose(distances, expected[1], rtol=1e-13)
    for length in (1e17, 1e30):
        vectors = (wide_words(50) * length).astype(np.float32)
        queries = far_queries(vectors, 30, 300 / length)
        assert (ExactSearch(vectors).nearest(queries) == scan_k(vectors, queries, 1)[0][:, 0]).all()


@here
def test_most_queries_are_answered_and_bounds_that_are_too_small_show():
    """Another search has to help only if more words are too near to distinguish than the screen has
    room for.
    """
    made = Screen(wide_words(1003), KIND)
    assert made.nearest_k(far_queries(made.vectors, 300, 5.0), 2)[2].all()
    equal = Screen(np.ascontiguousarray(VECTORS["all equal"]), KIND)
    assert not equal.nearest_k(far_queries(equal.vectors, 30, 5.0), 1)[2].any()
    close = Screen(near_ties(3), KIND)
    queries = far_queries(close.vectors, 200, 1.0)
    close.words.errors[:] = 0  # so the tests above can say no
    assert (close.nearest_k(queries, 1)[0] != scan_k(close.vectors, queries, 1)[0]).any()


@pytest.mark.parametrize("kind", range(len(dot.KINDS)))
@pytest.mark.parametrize("name", VECTORS)
def test_no_sum_overflows_and_no_error_leaves_its_bound(name, kind):
    """The bounds hold for the packed numbers with every instruction set, whichever this processor
    has.
    """
    vectors = np.ascontiguousarray(VECTORS[name], dtype=np.float32)
    made = Screen(vectors, kind)
    queries = queries_of(vectors)[:-1]
    packed = made.packed(queries)
    offset = made.chosen.offset
    sums = made.chosen.sums
    numbers = packed.numbers.transpose(0, 3, 1, 2, 4).reshape(-1, 4 * made.n_chunks * made.depth)[
        : len(queries)
    ]
    factors = packed.factors.transpose(0, 2, 1).reshape(-1, 4)[: len(queries)]
    words = (
        made.words.numbers.transpose(0, 3, 4, 1, 2, 5)
        .reshape(-1, numbers.shape[1])[: len(vectors)]
        .astype(np.int64)
    )
    moved = numbers.astype(np.int64) - offset
    lanes = 2 if sums else 4
    if sums:
        # vpmaddubsw cuts off beyond
        assert 2 * int(numbers.max()) * int(np.abs(words).max()) < 2**15
        per_chunk = (moved[:, None] * words[None]).reshape(
            len(moved), len(words), made.n_chunks, made.depth, 2, 2
        )
        assert np.abs(per_chunk.sum(axis=(3, 5))).max() <= sums
    # What sums begin with takes the offset out again, in as many bits as they have.
    start = made.words.start.reshape(
        len(made.words.start), made.n_chunks, -1, made.chosen.lanes, 4 // lanes
    )
    start = (
        start.transpose(0, 2, 3, 1, 4)
        .reshape(-1, made.n_chunks, 4 // lanes)[: len(words)]
        .astype(np.int64)
    )
    by_sum = words.reshape(len(words), made.n_chunks, made.depth, 4 // lanes, lanes)
    assert ((start + offset * by_sum.sum(axis=(2, 4))) % 2 ** (16 if sums else 32) == 0).all()
    # The score as it is computed, in single precision, against the score in the widest floats there
    # are.
    scales = made.words.scales.reshape(-1)[: len(words)]
    halves = made.words.halves.reshape(-1)[: len(words)]
    scored = (moved @ words.T).astype(np.float32) * (factors[:, :1] * scales) - halves
    x = vectors[made.order].astype(np.longdouble) - made.centre
    y = queries.astype(np.longdouble) - made.centre
    true = y @ x.T - (x * x).sum(axis=1) / 2
    errors = np.repeat(made.words.errors, dot.VECTORS * made.chosen.lanes, axis=0)[
        : len(words)
    ].astype(np.float64)
    usable = np.isfinite(factors[:, 1]) | (factors[:, 1] < 0)  # others are left to another search
    bound = factors[:, 2:3] * errors[:, 0] + factors[:, 3:4] * errors[:, 1] + errors[:, 2]
    assert usable.sum() > len(queries) // 2 or name == "one word"
    assert (np.abs(scored - true) <= bound)[usable].all()


def test_the_instruction_is_chosen_by_the_processor(monkeypatch, at_once):
    for kind, features in enumerate(
        ({"avx2", "avx512f", "avx512vnni"}, {"avx2", "avxvnni"}, {"avx2", "avx512f"})
    ):
        assert dot.kind_of(frozenset(features)) == kind
    assert dot.kind_of(frozenset({"sse4.2", "avx"})) == dot.kind_of(frozenset({"neon"})) == -1
    monkeypatch.setattr(dot, "processor_kind", lambda: -1)
    search = ExactSearch(wide_words(300))
    queries = far_queries(search.vectors, 30, 5.0)
    assert (search.nearest(queries) == scan_k(search.vectors, queries, 1)[0][:, 0]).all()
    assert search._screen is None
