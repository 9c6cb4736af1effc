"""Greedy lists, exact and by pynndescent: how good they are, and how long they take.

    uv run python -m benchmarks.lists
    uv run python -m benchmarks.lists --space artifacts/embeddings/word --sizes 20000

CPU seconds of all threads together. The first call of pynndescent compiles for half a minute or more; it is made
before the clock starts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import limits, material
from benchmarks.table import print_table
from lexveil.embeddings.word_orders import NEAR, Search, greedy_orders, mean_step, share_near
from lexveil.runtime.tables import write_json

SIZES = (20_000, 100_000)
SEARCHES: tuple[Search, ...] = ("exact", "pynndescent")
MEASURED = 5_000  # words whose nearest word is looked for
COLUMNS = {
    "n_words": "V",
    "search": "search",
    "mean_step": "mean step",
    "random_step": "of a random order",
    "share_near": f"nearest within {NEAR}",
    "cpu_seconds": "CPU-s",
    "products": "in V² products",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the lists, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lists", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="V", help="vocabulary sizes")
    parser.add_argument("--space", type=Path, help="folder of a trained space to use instead of made vectors")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    greedy_orders(material.made_vectors(2000), [0], "pynndescent")
    rows: list[dict[str, Any]] = []
    for n_words in options.sizes:
        vectors = material.space_vectors(options.space, n_words) if options.space else material.made_vectors(n_words)
        if vectors is None:
            print(f"V = {n_words:,}: {options.space} has fewer words; left out", flush=True)
            continue
        measured = np.sort(np.random.default_rng(0).choice(n_words, min(MEASURED, n_words), replace=False))
        shuffled = np.random.default_rng(0).permutation(n_words).astype(np.int32)
        for search in SEARCHES:
            start = time.process_time()
            orders = greedy_orders(vectors, [0], search)
            spent = time.process_time() - start
            rows.append(
                {
                    "n_words": n_words,
                    "dimensions": vectors.shape[1],
                    "search": search,
                    "mean_step": mean_step(vectors, orders[0]),
                    "random_step": mean_step(vectors, shuffled),
                    "share_near": share_near(vectors, orders, measured)[0],
                    "cpu_seconds": spent,
                    "products": spent * limits.sgemm(vectors.shape[1]) / (2.0 * n_words**2 * vectors.shape[1]),
                }
            )
            print_table(COLUMNS, rows[-1:])
    print_table(COLUMNS, rows)
    if options.json:
        write_json({"rows": rows}, options.json)


if __name__ == "__main__":
    main()
