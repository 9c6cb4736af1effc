"""Products of 8 bits: the answers of a float64 scan, and the bounds that docs/proofs/screen.md rests on."""

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from lexveil.embeddings import exact_search
from lexveil.embeddings.exact_search import ExactSearch
from lexveil.embeddings.kernels import dot
from lexveil.embeddings.kernels.screen import pack_queries
from lexveil.embeddings.screen import QUERY_LANE, Screen
from tests.embeddings.test_search import far_queries, near_ties, scan_k, wide_words

KIND = dot.processor_kind()
here = pytest.mark.skipif(KIND < 0, reason="this processor has no such instruction")


def copies() -> np.ndarray:
    return np.repeat(wide_words(10), 20, axis=0)[:, :100]


def all_equal() -> np.ndarray:
    return np.repeat(wide_words(1)[:, :50], 400, axis=0)


def with_zeros() -> np.ndarray:
    words = wide_words(300)[:, :61]
    words[::3] = 0
    return words


def many_lengths() -> np.ndarray:
    """From 1e-20 to 1e6."""
    return (wide_words(400)[:, :17] * 10.0 ** np.linspace(-20, 6, 400)[:, None]).astype(np.float32)


def far_from_zero() -> np.ndarray:
    """Words that differ by a ten-thousandth of what they share."""
    return (wide_words(500)[:, :33] + 1e4).astype(np.float32)


def spikes() -> np.ndarray:
    """All of a vector in one coordinate, so that rounding has one step for 127 and for nothing."""
    words = np.zeros((260, 130), dtype=np.float32)
    words[np.arange(260), np.arange(260) % 130] = np.where(np.arange(260) < 130, 3, -3)
    return words


def sums_to_the_brim() -> np.ndarray:
    """Equal coordinates: the 16-bit sums are as large as they may become."""
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (200, 20))
    return np.repeat(signs, 15, axis=1).astype(np.float32)


VECTORS = {
    "random": lambda: wide_words(303),
    "near ties": lambda: near_ties(3),
    "copies": copies,
    "all equal": all_equal,
    "zeros": with_zeros,
    "many lengths": many_lengths,
    "far from zero": far_from_zero,
    "spikes": spikes,
    "sums to the brim": sums_to_the_brim,
    "one word": lambda: wide_words(1),
    "one coordinate": lambda: wide_words(70)[:, :1],
    "p = 2": lambda: wide_words(70)[:, :2],
    "p = 61": lambda: wide_words(133)[:, :61],
    "p = 240": lambda: wide_words(133)[:, :240],
    "p = 299": lambda: wide_words(133)[:, :299],
}


def queries_of(vectors: np.ndarray) -> np.ndarray:
    """Words themselves, between two words, with little and with much noise, and at 0."""
    wide = vectors.astype(np.float64)
    noisy = [far_queries(vectors, 5, epsilon) for epsilon in (0.1, 1.0, 10.0, 50.0, 1000.0)]
    between = (wide[:5] + wide[::-1][:5]) / 2
    return np.concatenate([wide[:5], between, *noisy, np.zeros((1, vectors.shape[1]))])


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_search, "SCREEN_QUERIES", 0)
    monkeypatch.setattr(exact_search, "SCREEN_WORK", 0)


@here
@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize("name", VECTORS)
def test_answers_are_those_of_a_float64_scan(at_once: None, name: str, k: int) -> None:
    vectors = np.ascontiguousarray(VECTORS[name]())
    queries = queries_of(vectors)
    search = ExactSearch(vectors)
    ids, distances = search.nearest_k(queries, k)
    assert search._screen is not None
    few, plain = search._by_products(queries, min(k, len(vectors)))
    np.testing.assert_array_equal(ids, few)
    np.testing.assert_array_equal(distances, np.sqrt(plain))  # bit for bit
    expected = scan_k(vectors, queries, min(k, len(vectors)))
    # The scan is in wider numbers than float64: what float64 rounds to one distance may differ.
    other = ids != expected[0]
    np.testing.assert_allclose(distances[other], expected[1][other], rtol=1e-12)
    np.testing.assert_allclose(distances, expected[1], rtol=1e-12, atol=1e-30)


def check_any_length(vectors: np.ndarray) -> None:
    queries = np.repeat(far_queries(vectors, 1, 0.1), 9, axis=0)
    queries *= 10.0 ** np.array([-300, -30, -12, 0, 6, 11, 13, 40, 140])[:, None]
    ids, distances = ExactSearch(vectors).nearest_k(queries, 1)
    expected = scan_k(vectors, queries, 1)
    assert ids[:5].tolist() == expected[0][:5].tolist()
    # Farther away words are told apart by how float64 rounds their distances.
    assert ((ids >= 0) & (ids < len(vectors))).all()
    np.testing.assert_allclose(distances, expected[1], rtol=1e-13)


@here
def test_queries_of_any_length(at_once: None) -> None:
    check_any_length(wide_words(133))


@pytest.mark.parametrize("length", [1e17, 1e30])
def test_words_of_any_length(length: float) -> None:
    vectors = (wide_words(50) * length).astype(np.float32)
    queries = far_queries(vectors, 30, 300 / length)
    assert (ExactSearch(vectors).nearest(queries) == scan_k(vectors, queries, 1)[0][:, 0]).all()


@here
def test_most_queries_are_answered() -> None:
    """Only where more words than there is room for are too near to tell apart another search has to help."""
    made = Screen(wide_words(1003), KIND)
    assert made.nearest_k(far_queries(made.vectors, 300, 5.0), 2)[2].all()
    made = Screen(all_equal(), KIND)
    assert not made.nearest_k(far_queries(made.vectors, 30, 5.0), 1)[2].any()


@here
def test_bounds_that_are_too_small_show() -> None:
    """So the tests above can say no."""
    vectors = near_ties(3)
    queries = far_queries(vectors, 200, 1.0)
    made = Screen(vectors, KIND)
    made.errors[:] = 0
    assert (made.nearest_k(queries, 1)[0] != scan_k(vectors, queries, 1)[0]).any()


def packed(made: Screen, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The whole numbers of queries (n, p'), and step, wanted score and error factors (n, 4)."""
    tiles = -(-len(queries) // dot.QUERIES)
    numbers = np.empty((tiles, made.n_chunks, made.depth, dot.QUERIES, 4), dtype=np.uint8)
    of_queries = np.empty((tiles, 4, dot.QUERIES), dtype=np.float32)
    offset, lane = made.chosen.offset, QUERY_LANE if made.chosen.sums else 0.0
    pack_queries(queries, made.centre, offset - 1, lane, offset, numbers, of_queries, np.empty(len(queries)))
    rows = numbers.transpose(0, 3, 1, 2, 4).reshape(tiles * dot.QUERIES, -1)
    return rows[: len(queries)], of_queries.transpose(0, 2, 1).reshape(-1, 4)[: len(queries)]


def rows_of(made: Screen) -> np.ndarray:
    """The whole numbers of words in the screen's order, (V, p')."""
    words = made.words.transpose(0, 3, 4, 1, 2, 5)
    return words.reshape(-1, 4 * made.n_chunks * made.depth)[: len(made.vectors)].astype(np.int64)


@pytest.mark.parametrize("kind", range(len(dot.KINDS)))
@pytest.mark.parametrize("name", VECTORS)
def test_no_sum_overflows_and_no_error_leaves_its_bound(name: str, kind: int) -> None:
    """Of the numbers as they are packed, for every instruction, whichever this processor has."""
    vectors = np.ascontiguousarray(VECTORS[name]())
    made, queries = Screen(vectors, kind), queries_of(vectors)[:-1]
    numbers, of_queries = packed(made, queries)
    words, offset = rows_of(made), made.chosen.offset
    moved = numbers.astype(np.int64) - offset
    lanes = 2 if made.chosen.sums else 4
    if made.chosen.sums:
        assert 2 * int(numbers.max()) * int(np.abs(words).max()) < 2**15  # vpmaddubsw cuts off beyond
        per_chunk = (moved[:, None] * words[None]).reshape(len(moved), len(words), made.n_chunks, made.depth, 2, 2)
        assert np.abs(per_chunk.sum(axis=(3, 5))).max() <= made.chosen.sums
    # What sums begin with takes the offset out again, in as many bits as they have.
    start = made.start.reshape(len(made.words), made.n_chunks, -1, made.chosen.lanes, 4 // lanes)
    start = start.transpose(0, 2, 3, 1, 4).reshape(-1, made.n_chunks, 4 // lanes)[: len(words)].astype(np.int64)
    by_sum = words.reshape(len(words), made.n_chunks, made.depth, 4 // lanes, lanes)
    bits = 16 if made.chosen.sums else 32
    assert ((start + offset * by_sum.sum(axis=(2, 4))) % 2**bits == 0).all()
    # The score as it is computed, in single precision, against the score in the widest floats there are.
    scales = made.scales.reshape(-1)[: len(words)]
    halves = made.halves.reshape(-1)[: len(words)]
    sums = (moved @ words.T).astype(np.float32)
    scored = sums * (of_queries[:, :1] * scales) - halves
    x = vectors[made.order].astype(np.longdouble) - made.centre
    y = queries.astype(np.longdouble) - made.centre
    true = y @ x.T - (x * x).sum(axis=1) / 2
    errors = np.repeat(made.errors, dot.VECTORS * made.chosen.lanes, axis=0)[: len(words)].astype(np.float64)
    usable = np.isfinite(of_queries[:, 1]) | (of_queries[:, 1] < 0)  # others are left to another search
    bound = of_queries[:, 2:3] * errors[:, 0] + of_queries[:, 3:4] * errors[:, 1] + errors[:, 2]
    assert usable.sum() > len(queries) // 2 or name == "one word"
    assert (np.abs(scored - true) <= bound)[usable].all()


FEATURES = {
    "AVX-512 VNNI": {"avx2", "avx512f", "avx512vnni", "avx512vl"},
    "AVX-VNNI": {"avx2", "avxvnni"},
    "AVX2": {"avx2", "avx512f"},
}


def test_the_instruction_is_chosen_by_the_processor() -> None:
    for name, features in FEATURES.items():
        assert dot.KINDS[dot.kind_of(frozenset(features))].name == name
    assert dot.kind_of(frozenset({"sse4.2", "avx"})) == dot.kind_of(frozenset({"neon"})) == -1


@pytest.mark.parametrize(
    ("kind", "processor", "instruction", "register"),
    [(0, "icelake-server", "vpdpbusd", "zmm"), (1, "alderlake", "vpdpbusd", "ymm"), (2, "znver3", "vpmaddubsw", "ymm")],
)
def test_the_instruction_is_used(kind: int, processor: str, instruction: str, register: str) -> None:
    """Compiled for processors that this machine need not have: once for each query and vector of words."""
    try:
        target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    except RuntimeError:
        pytest.skip("LLVM of this machine writes no code for x86")
    module, address = ir.Module(), ir.IntType(64)
    module.triple = "x86_64-unknown-linux-gnu"
    function = ir.Function(module, ir.FunctionType(ir.IntType(32), [address] * 10), "tile")
    words, start, scales, halves, errors, queries, of_queries, out, chunks, depth = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    tile = dot._Tile(builder, dot.KINDS[kind])
    totals = tile.multiply(words, start, queries, chunks, depth)
    builder.ret(tile.score(totals, scales, halves, errors, of_queries, out))
    code = target.create_target_machine(cpu=processor, opt=3).emit_assembly(llvm.parse_assembly(str(module)))
    lines = [line for line in code.splitlines() if instruction in line]
    assert len(lines) == dot.QUERIES * dot.VECTORS
    assert all(register in line for line in lines)


def test_without_an_instruction_products_are_float32(monkeypatch: pytest.MonkeyPatch, at_once: None) -> None:
    monkeypatch.setattr(dot, "processor_kind", lambda: -1)
    vectors = wide_words(300)
    search = ExactSearch(vectors)
    queries = far_queries(vectors, 30, 5.0)
    assert (search.nearest(queries) == scan_k(vectors, queries, 1)[0][:, 0]).all()
    assert search._screen is None
    assert exact_search.search_way().startswith("float32")


def test_a_few_searches_round_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    search = ExactSearch(wide_words(300))
    search.nearest(far_queries(search.vectors, 30, 5.0))
    assert search._screen is None
