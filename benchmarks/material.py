"""Vectors and tokens for benchmarks: generated with the statistics of real data, or the user's
own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lexveil.base.types import Floats, Ids, Vectors
from lexveil.io.artifacts.embeddings import read_space


def made_vectors(n_words: int, dimensions: int = 300, seed: int = 1) -> Vectors:
    """Generate vectors in clusters, with norms that spread over a factor of five and grow with
    frequency, as in word2vec.

    Returns:
        (V, p) float32 vectors, the most frequent word first.
    """
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((max(2, n_words // 100), dimensions)).astype(np.float32)
    vectors: Vectors = topics[rng.integers(len(topics), size=n_words)]
    vectors *= np.float32(0.7)
    vectors += rng.standard_normal((n_words, dimensions), dtype=np.float32) * np.float32(0.7)
    norms = np.exp(rng.normal(0.0, 0.35, n_words)) * 6.0 * np.arange(1, n_words + 1) ** -0.12
    vectors *= (norms / np.linalg.norm(vectors, axis=1))[:, None].astype(np.float32)
    return np.ascontiguousarray(vectors)


def zipf_tokens(n_tokens: int, n_words: int, seed: int = 2) -> Ids:
    """Draw tokens whose frequencies fall as 1/rank, shape (n,)."""
    weights = 1.0 / np.arange(1, n_words + 1)
    return draw_tokens(n_tokens, weights, seed)


def draw_tokens(n_tokens: int, weights: Floats, seed: int = 2) -> Ids:
    """Draw independent tokens with probabilities in proportion to ``weights`` (V,), shape (n,)."""
    steps = np.cumsum(weights / weights.sum())
    uniform = np.random.default_rng(seed).random(n_tokens)
    ids: Ids = np.minimum(np.searchsorted(steps, uniform, side="right"), len(weights) - 1).astype(
        np.int64
    )
    return ids


def space_vectors(folder: Path, n_words: int) -> Vectors | None:
    """Return the vectors of the most frequent words of a trained space, most frequent first; None
    if it has fewer words.
    """
    space = read_space(folder)
    if len(space.tokens) < n_words:
        return None
    return np.ascontiguousarray(space.vectors[:n_words], dtype=np.float32)


def text_tokens(file: Path, folder: Path, n_tokens: int, n_words: int) -> Ids:
    """Return the first tokens of a segmented text that are among the ``n_words`` most frequent of a
    space, in text order.
    """
    number = {token: row for row, token in enumerate(read_space(folder).tokens[:n_words])}
    ids: list[int] = []
    with file.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            ids += [number[token] for token in line.split() if token in number]
            if len(ids) >= n_tokens:
                break
    return np.array(ids[:n_tokens], dtype=np.int64)


def document_epsilons(n_tokens: int, epsilon: float, seed: int = 3) -> Floats:
    """Return the (n,) epsilons of tokens, different for every document, as if texts of different
    lengths had equal document budgets.
    """
    rng = np.random.default_rng(seed)
    sizes = np.clip(np.exp(rng.normal(4.0, 0.8, n_tokens // 20 + 1)), 5, 2000).astype(np.int64)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), n_tokens)) + 1]
    per_token: Floats = np.repeat(epsilon * sizes.mean() / sizes, sizes)[:n_tokens]
    return per_token
