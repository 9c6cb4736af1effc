"""The exact search of noisy vectors against the machine's float32 product, and its answers against those by float32.

    uv run python -m benchmarks.search
    uv run python -m benchmarks.search --sizes --vectors lexveil/models/en/vectors.npy --tokens 143000

One thread. A batch of MADLIB (noise and search), the same search by float32 products and a float32 product alone take
turns, so that what else the machine does hits all of them; given are medians of the ratios of one turn. Rows and
distances of both searches are compared bit for bit.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before NumPy is loaded
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np

from benchmarks import material
from benchmarks.table import print_table
from lexveil.embeddings import exact_search
from lexveil.embeddings.exact_search import ExactSearch, search_way
from lexveil.mechanisms.madlib import Madlib
from lexveil.types import Vectors

SIZES = (50_000, 100_000)
EPSILONS = (0.1, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0)
BATCH = 1024
QUERIES, WORDS = 1024, 2048  # of the product alone: it stays in the cache, so it is the fastest one there is
COLUMNS = {
    "vectors": "vectors",
    "epsilon": "ε",
    "gflops": "sgemm GFLOP/s",
    "limit": "limit, tokens/CPU-s",
    "rate": "MADLIB, tokens/CPU-s",
    "of_limit": "of limit",
    "search_of_limit": "its search",
    "float_of_limit": "by float32",
    "compared": "compared",
    "different": "different",
}


def sets(options: argparse.Namespace) -> Iterator[tuple[str, Vectors]]:
    """Names and vectors to search."""
    for n_words in options.sizes:
        yield "made", material.made_vectors(n_words)
    for file in options.vectors:
        vectors, scales = np.load(file, allow_pickle=False), file.with_name("scales.npy")
        if vectors.dtype == np.int8:  # of a packaged model
            vectors = vectors * np.load(scales, allow_pickle=False)[:, None]
        yield file.stem if file.stem != "vectors" else file.parent.name, np.ascontiguousarray(vectors, dtype=np.float32)


def turns(name: str, vectors: Vectors, epsilon: float, tokens: int) -> dict[str, Any]:
    """One row of the table."""
    n_words, p = vectors.shape
    made, plain = Madlib(vectors), ExactSearch(vectors, screens=False)
    rng, ids = np.random.default_rng(0), material.zipf_tokens(tokens, n_words)
    words = np.ascontiguousarray(vectors[:WORDS])
    queries = rng.standard_normal((p, QUERIES), dtype=np.float32)
    out = np.empty((len(words), QUERIES), dtype=np.float32)
    for _ in range(int(max(exact_search.SCREEN_QUERIES, exact_search.SCREEN_WORK / vectors.size)) // BATCH + 1):
        made.search.nearest(rng.standard_normal((BATCH, p)))  # until the words are rounded
    rows, different = [], 0
    for start in range(0, tokens, BATCH):
        some = ids[start : start + BATCH]
        each = np.full(len(some), epsilon)
        times = [time.process_time()]
        for _ in range(4):
            np.matmul(words, queries, out=out)
        times.append(time.process_time())
        noise = made.noise(each, rng)
        noisy = made.vectors[some] + noise
        times.append(time.process_time())
        near = made.search.nearest_k(noisy, 1)
        times.append(time.process_time())
        expected = plain.nearest_k(noisy, 1)
        times.append(time.process_time())
        product, drawing, search, by_float32 = np.diff(times)
        flops = 8.0 * len(words) * QUERIES * p / product
        limit = flops / (2.0 * n_words * p)
        rates = [len(some) / seconds for seconds in (drawing + search, search, by_float32)]
        rows.append([flops / 1e9, limit, rates[0], *(rate / limit for rate in rates)])
        different += int(((near[0] != expected[0]) | (near[1] != expected[1])).sum())
    names = ("gflops", "limit", "rate", "of_limit", "search_of_limit", "float_of_limit")
    medians = dict(zip(names, np.median(rows, axis=0).tolist(), strict=True))
    label = {"vectors": f"{name}, {n_words:,} x {p}", "epsilon": epsilon}
    return label | medians | {"compared": tokens, "different": different}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, compare, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES), metavar="V", help="of made vectors")
    parser.add_argument(
        "--vectors", type=Path, nargs="*", default=[], metavar="FILE", help="(V, p) .npy, a packaged model's too"
    )
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS), metavar="E")
    parser.add_argument("--tokens", type=int, default=8 * BATCH, help="for each row of the table")
    options = parser.parse_args(arguments)
    print(f"{search_way()}; {options.tokens:,} tokens a row", flush=True)
    rows = [
        turns(name, vectors, epsilon, options.tokens) for name, vectors in sets(options) for epsilon in options.epsilons
    ]
    print_table(COLUMNS, rows)


if __name__ == "__main__":
    main()
