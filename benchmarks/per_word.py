"""Mechanisms word by word in plain NumPy, as in the papers' code: the baseline for speed.

This code was written from the papers and is not part of the product. It is slow. If the published
code is known to break its own guarantee, this code does not repeat the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import sqrtm
from scipy.stats import poisson

from lexveil.base.types import Floats, Vectors

PerWord = Callable[[int, float, np.random.Generator], int]


def published_noise(dimensions: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """Draw noise with a direction from ``multivariate_normal``, which decomposes the identity again
    for every word, and a gamma radius.
    """
    direction = rng.multivariate_normal(np.zeros(dimensions), np.eye(dimensions))
    direction /= np.linalg.norm(direction)
    return direction * rng.gamma(dimensions, 1 / epsilon)


def tidy_noise(dimensions: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """Draw the noise of ``published_noise`` from independent normal numbers, as a careful author
    would.
    """
    direction = rng.standard_normal(dimensions)
    direction /= np.linalg.norm(direction)
    return direction * rng.gamma(dimensions, 1 / epsilon)


def madlib(vectors: Vectors, noise: Callable[..., Floats] = published_noise) -> PerWord:
    """Return the per-word form of MADLIB: noise, then a scan of the vocabulary."""

    def replace(word: int, epsilon: float, rng: np.random.Generator) -> int:
        noisy = vectors[word] + noise(vectors.shape[1], epsilon, rng)
        return int(np.linalg.norm(vectors - noisy, axis=1).argmin())

    return replace


def mahalanobis(vectors: Vectors, lambda_: float = 0.2) -> PerWord:
    """Return the per-word form of mahalanobis: noise shaped by a matrix square root that is
    computed for every word.
    """
    covariance = np.cov(vectors, rowvar=False)
    covariance *= vectors.shape[1] / np.trace(covariance)
    shape = lambda_ * covariance + (1 - lambda_) * np.eye(len(covariance))

    def replace(word: int, epsilon: float, rng: np.random.Generator) -> int:
        noisy = vectors[word] + sqrtm(shape).real @ published_noise(vectors.shape[1], epsilon, rng)
        return int(np.linalg.norm(vectors - noisy, axis=1).argmin())

    return replace


def vickrey(vectors: Vectors, t: float = 0.75) -> PerWord:
    """Return the per-word form of vickrey: noise, then the nearest or the second nearest word."""

    def replace(word: int, epsilon: float, rng: np.random.Generator) -> int:
        noisy = vectors[word] + published_noise(vectors.shape[1], epsilon, rng)
        distance = np.linalg.norm(vectors - noisy, axis=1)
        first, second = np.argsort(distance)[:2]
        near = distance[first]
        far = distance[second]
        share = (1 - t) * far / (t * near + (1 - t) * far)
        return int(first if rng.random() < share else second)

    return replace


def tem(vectors: Vectors, beta: float = 0.001) -> PerWord:
    """Return the per-word form of TEM: distances to all words, Gumbel noise for each word of the
    ball and for the other words together.
    """
    n_words = len(vectors)

    def replace(word: int, epsilon: float, rng: np.random.Generator) -> int:
        gamma = 2 / epsilon * np.log((1 - beta) * (n_words - 1) / beta)
        distance = np.linalg.norm(vectors - vectors[word], axis=1)
        inside = np.flatnonzero(distance <= gamma)
        scores = -distance[inside]
        outside = n_words - len(inside)
        if outside:
            scores = np.append(scores, -gamma + 2 * np.log(outside) / epsilon)
        place = int((scores + rng.gumbel(0, 2 / epsilon, len(scores))).argmax())
        if place < len(inside):
            return int(inside[place])
        return int(rng.choice(np.flatnonzero(distance > gamma)))

    return replace


def truncated_gumbel(vectors: Vectors, scale: float) -> PerWord:
    """Return the per-word form of truncated Gumbel: the k nearest words by a full sort, and
    truncated Gumbel noise on their distances by rejection.
    """
    n_words = len(vectors)
    largest = float(2 * np.linalg.norm(vectors, axis=1).max())

    def truncated(rng: np.random.Generator) -> float:
        while True:
            value = rng.gumbel(0, scale)
            if abs(value) <= largest:
                return float(value)

    def replace(word: int, epsilon: float, rng: np.random.Generator) -> int:  # noqa: ARG001
        k = int(np.clip(poisson.rvs(np.log(n_words), random_state=rng), 1, n_words))
        distance = np.linalg.norm(vectors - vectors[word], axis=1)
        nearest = np.argsort(distance)[:k]
        return int(nearest[np.argmin([distance[i] + truncated(rng) for i in nearest])])

    return replace


def diffractor_geometric(order: npt.NDArray[np.int32]) -> PerWord:
    """Return the per-word form of the geometric 1-Diffractor: the word's place from a dictionary,
    plus the difference of two geometric numbers, clipped.
    """
    words = order.tolist()
    place = {word: index for index, word in enumerate(words)}

    def replace(word: int, epsilon: float, rng: np.random.Generator) -> int:
        p = 1 - np.exp(-epsilon)
        moved = place[word] + int(rng.geometric(p)) - int(rng.geometric(p))
        return int(words[int(np.clip(moved, 0, len(words) - 1))])

    return replace


def diffractor_tem(order: npt.NDArray[np.int32], beta: float = 0.001) -> PerWord:
    """Return the per-word form of diffractor_tem: TEM over the places of the list, with Gumbel
    noise for each place within γ.
    """
    words = order.tolist()
    place = {word: index for index, word in enumerate(words)}
    n_words = len(words)

    def replace(word: int, epsilon: float, rng: np.random.Generator) -> int:
        gamma = 2 / epsilon * np.log((1 - beta) * (n_words - 1) / beta)
        at = place[word]
        inside = np.arange(max(0, int(np.ceil(at - gamma))), min(n_words - 1, int(at + gamma)) + 1)
        scores = -np.abs(inside - at).astype(float)
        outside = n_words - len(inside)
        if outside:
            scores = np.append(scores, -gamma + 2 * np.log(outside) / epsilon)
        chosen = int((scores + rng.gumbel(0, 2 / epsilon, len(scores))).argmax())
        if chosen < len(inside):
            return int(words[inside[chosen]])
        step = int(rng.integers(outside))
        return int(words[step if step < inside[0] else step + len(inside)])

    return replace


def rank_remap(vectors: Vectors, c: float = 0.5, ranks: int = 32) -> PerWord:
    """Return the per-word form of rank_remap: MADLIB, then a neighbour of its output by rank, found
    by a full sort.
    """
    inner = madlib(vectors)

    def replace(word: int, epsilon: float, rng: np.random.Generator) -> int:
        near = inner(word, epsilon, rng)
        neighbours = np.argsort(np.linalg.norm(vectors - vectors[near], axis=1))[:ranks]
        weights = np.exp(-c * epsilon * np.arange(len(neighbours)))
        return int(rng.choice(neighbours, p=weights / weights.sum()))

    return replace


def build(name: str, material: Any, **parameters: Any) -> PerWord:
    """Return the per-word form of mechanism ``name`` over its vectors or its list."""
    made: PerWord = globals()[name](material, **parameters)
    return made
