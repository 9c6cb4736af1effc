"""What is done without compiled kernels has the same results as with them."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from lexveil.accounting import subject_keys
from lexveil.embeddings import exact_search, neighborhoods
from lexveil.embeddings.exact_search import ExactSearch, pair_distances, pair_products
from lexveil.mechanisms import tem
from lexveil.mechanisms.kernels.keystream import WORDS, next_words, open_stream
from lexveil.mechanisms.noise.keystream import token_stream
from lexveil.text import collocation_index, encode, segment
from lexveil.text.collocation_index import Collocations

DECIDING: tuple[ModuleType, ...] = (exact_search, neighborhoods, tem, collocation_index, segment, encode, subject_keys)


def both(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> tuple[Any, Any]:
    """The result without and with kernels."""
    results = []
    for compiled in (False, True):
        with monkeypatch.context() as patch:
            for module in DECIDING:
                patch.setattr(module, "worth_kernels", lambda _, compiled=compiled: compiled)
            results.append(work())
    return results[0], results[1]


def clustered(n: int, p: int, seed: int = 0) -> np.ndarray:
    """Vectors in groups, near and far from each other, some of them equal."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(1, n // 20), p))
    vectors = centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, p)) * rng.choice(
        [0.01, 0.5], size=(n, 1)
    )
    vectors[n // 2 : n // 2 + 3] = vectors[0]
    return vectors.astype(np.float32)


@pytest.mark.parametrize(("n", "p"), [(1, 3), (2, 3), (40, 5), (900, 40)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 40.0])
def test_tem_draws_the_same_words(monkeypatch: pytest.MonkeyPatch, n: int, p: int, epsilon: float) -> None:
    """By uniform proposals and by lists."""
    ids = np.random.default_rng(1).integers(n, size=60)

    def draw() -> tuple[np.ndarray, int]:
        mechanism = tem.Tem(clustered(n, p))
        each = np.full(len(ids), epsilon)
        return mechanism.replace(ids, each, mechanism.noise(each, np.random.default_rng(7)))

    few, many = both(monkeypatch, draw)
    np.testing.assert_array_equal(few, many)


@pytest.mark.parametrize(("n", "p"), [(1, 5), (2, 5), (64, 3), (300, 20), (900, 60)])
def test_lists_are_the_same(monkeypatch: pytest.MonkeyPatch, n: int, p: int) -> None:
    """Bit by bit, because they decide what is proposed; so also in any batches."""
    vectors = clustered(n, p)
    few, many = both(monkeypatch, lambda: neighborhoods.nearest_words(vectors, np.arange(n)))
    for word in (0, n // 2, n - 1):
        one = neighborhoods.nearest_words(vectors, np.array([word]))
        np.testing.assert_array_equal(one.ids[0], many.ids[word])
    np.testing.assert_array_equal(few.ids, many.ids)
    np.testing.assert_array_equal(few.distances, many.distances)


@pytest.mark.parametrize("k", [1, 2, 8, 9, 40])
def test_the_nearest_words_are_the_same(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    vectors = clustered(900, 20)
    queries = np.concatenate([vectors[:30].astype(np.float64), np.random.default_rng(2).normal(size=(30, 20))])
    (few, near), (many, far) = both(monkeypatch, lambda: ExactSearch(vectors).nearest_k(queries, k))
    np.testing.assert_array_equal(few, many)
    np.testing.assert_allclose(near, far, rtol=1e-13)
    rows = np.arange(900)
    np.testing.assert_allclose(*both(monkeypatch, lambda: pair_distances(vectors, rows, rows[::-1])), rtol=1e-13)
    np.testing.assert_allclose(*both(monkeypatch, lambda: pair_products(vectors, rows, rows[::-1])), rtol=1e-12)


@pytest.mark.parametrize("segmentation", ["gst", "mst"])
def test_collocations_are_cut_the_same(monkeypatch: pytest.MonkeyPatch, segmentation: str) -> None:
    rng = np.random.default_rng(3)
    pairs, triples = rng.integers(12, size=(2, 40)), rng.integers(12, size=(3, 60))
    bits = rng.integers(1, 5, size=60).astype(np.float64)  # many ties
    known = Collocations.for_ids(list(pairs), bits[:40], list(triples), bits)
    ids = rng.integers(-1, 14, size=3000)
    offsets = np.concatenate([[0], np.sort(rng.integers(3000, size=400)), [3000]])

    def cut() -> tuple[np.ndarray, ...]:
        scores = known.scores(ids, offsets)
        return *scores, segment.segment(segmentation, *scores, offsets)

    few, many = both(monkeypatch, cut)
    assert (few[2] > 1).any()
    for one, other in zip(few, many, strict=True):
        np.testing.assert_array_equal(one, other)


TEXTS = ["It's Dr. Who: don't! 3.14 a_b", "", "ÄÖ ﬁ e\u0301 “x” ... --", "a@b.example www.x.example/y.", "\ud800 half"]


def test_texts_are_tokenized_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon = encode.Lexicon.build("word", ["it's", "a"], None)
    few, many = both(monkeypatch, lambda: encode.encode(TEXTS, lexicon))
    assert few.words == many.words
    for name in ("rows", "kind", "text_of", "spans"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name))


def test_texts_have_the_same_keys_in_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a text would have two budgets."""
    rows = [["It's  Dr. WHO: don't! a_b ...", None], ["x", "y z"], [" \n", ""], ["A@b.example -- (3.14)", "\tq"]]
    few, many = both(monkeypatch, lambda: subject_keys.text_keys(rows))
    assert few == many


@pytest.mark.parametrize("nonce", [0, 1, 2, 2**20 + 3])
def test_streams_of_a_key_are_the_same(nonce: int) -> None:
    key = np.array([1, 2**63, 3, 2**64 - 1], dtype=np.uint64)
    state, words = np.empty(16, dtype=np.uint32), np.empty((2, WORDS), dtype=np.uint64)
    open_stream(state, key[None], 0, nonce)
    for some in words:
        next_words(state, some)
    assert token_stream(key, nonce).random_raw(2 * WORDS).tolist() == words.ravel().tolist()
