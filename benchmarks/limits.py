"""Upper limits of the machine's speed, measured next to the benchmarks that are compared with them.
One thread, CPU seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lexveil.core.mechanisms.noise.streams import release_generator

# a product of this shape stays in the cache, so that it is the fastest possible
QUERIES = 1024
WORDS = 2048


def best_rate(work: Callable[[], float], seconds: float = 0.4) -> float:
    """Return the largest amount of work per CPU second. ``work`` does some work and returns its
    amount; the first call warms up.
    """
    work()
    best = 0.0
    end = time.process_time() + seconds
    while time.process_time() < end:
        start = time.process_time()
        amount = work()
        best = max(best, amount / max(time.process_time() - start, 1e-9))
    return best


def sgemm(dimensions: int) -> float:
    """Return the floating-point operations per second of a float32 matrix product with p =
    ``dimensions``.
    """
    rng = np.random.default_rng(0)
    words = rng.standard_normal((WORDS, dimensions), dtype=np.float32)
    queries = rng.standard_normal((dimensions, QUERIES), dtype=np.float32)
    out = np.empty((WORDS, QUERIES), dtype=np.float32)

    def work() -> float:
        np.matmul(words, queries, out=out)
        return 2.0 * WORDS * QUERIES * dimensions

    return best_rate(work)


def copy_bandwidth() -> float:
    """Return the bytes read and written per second by copying memory that fits no cache."""
    source = np.zeros(32_000_000)
    target = np.empty_like(source)

    def work() -> float:
        np.copyto(target, source)
        return 2.0 * source.nbytes

    return best_rate(work, 0.3)


def random_rows(vectors: npt.NDArray[Any]) -> float:
    """Return the number of rows per second that can be read from random positions of
    ``vectors``.
    """
    rng = np.random.default_rng(0)
    rows = rng.integers(len(vectors), size=4096)
    out = np.empty((len(rows), vectors.shape[1]), dtype=vectors.dtype)

    def work() -> float:
        np.take(vectors, rows, axis=0, out=out, mode="clip")
        return float(len(rows))

    return best_rate(work, 0.2)


def words_of(rng: np.random.Generator) -> float:
    """Return the uniform 64-bit words per second of a generator."""

    def work() -> float:
        return float(rng.integers(0, 2**64 - 1, size=100_000, dtype=np.uint64, endpoint=True).size)

    return best_rate(work, 0.2)


def generators() -> dict[str, Callable[[], np.random.Generator]]:
    """Return the random generator of an experiment and the generator of a release, by mode."""
    return {"experiment": lambda: np.random.default_rng(0), "release": release_generator}
