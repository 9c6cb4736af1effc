"""Lists of near words: what they cost beside the products that they are made of, and what is drawn from them, by V.

    uv run python -m benchmarks.near_lists
    uv run python -m benchmarks.near_lists --space artifacts/embeddings/word --sizes 50000

One thread, CPU seconds. Lists are made of some words and reckoned for all. The products are the same blocks of the same
words, multiplied and thrown away, by turns with the lists; the ratio is the median of the turns. Draws are from lists
that are there; keys, or uniform numbers, are drawn in the time.
"""

from __future__ import annotations

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import limits, material
from benchmarks.table import print_table
from lexveil.embeddings.knn_graph import QUERY_BLOCK, WORD_BLOCK
from lexveil.embeddings.neighborhoods import Neighborhoods, nearest_words
from lexveil.mechanisms.registry import build_mechanism
from lexveil.runtime.tables import write_json
from lexveil.types import Floats, Ids, Vectors

SIZES = (10_000, 50_000, 100_000, 200_000, 400_000)
WORDS = 4096  # that lists are made of, as many as a run makes at a time;
PAIRS = 400_000_000  # fewer of a vocabulary so large that these are more
TOKENS = 20_000
TURNS = 3
DRAWS: tuple[tuple[str, float, bool], ...] = (
    ("tem", 1.0, False),
    ("tem", 3.0, False),
    ("tem", 10.0, False),
    ("tem", 50.0, False),
    ("tem", 1.0, True),
    ("tem", 10.0, True),
    ("tem", 50.0, True),
    ("truncated_gumbel", 10.0, False),
)
LISTS = {
    "n_words": "V",
    "seconds": "CPU-s, all lists",
    "products": "products alone",
    "ratio": "ratio",
    "of_sgemm": "of sgemm",
}
RATES = {
    "n_words": "V",
    "mechanism": "mechanism",
    "epsilon": "ε",
    "mixed": "per document",
    "rate": "tokens/CPU-s",
    "of_noise": "of time, keys or noise",
}


def spent(work: Callable[[], object]) -> float:
    """CPU seconds of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def multiply(vectors: Vectors, words: Ids) -> None:
    """The matrix products of ``exact_graph``, and nothing else."""
    out = np.empty((QUERY_BLOCK, min(WORD_BLOCK, len(vectors))), dtype=np.float32)
    for start in range(0, len(words), QUERY_BLOCK):
        queries = vectors[words[start : start + QUERY_BLOCK]]
        for first in range(0, len(vectors), WORD_BLOCK):
            some = vectors[first : first + WORD_BLOCK]
            np.matmul(queries, some.T, out=out[: len(queries), : len(some)])


def lists_of(vectors: Vectors) -> dict[str, Any]:
    """What the lists of a vocabulary cost."""
    n_words, dimensions = vectors.shape
    words = np.random.default_rng(0).choice(n_words, size=min(WORDS, n_words, PAIRS // n_words), replace=False)
    nearest_words(vectors, words)
    turns = np.array(
        [(spent(lambda: multiply(vectors, words)), spent(lambda: nearest_words(vectors, words))) for _ in range(TURNS)]
    )
    of_all = n_words / len(words)
    products, seconds = np.median(turns, axis=0) * of_all
    return {
        "n_words": n_words,
        "seconds": float(seconds),
        "products": float(products),
        "ratio": float(np.median(turns[:, 1] / turns[:, 0])),
        "of_sgemm": 2.0 * n_words**2 * dimensions / limits.sgemm(dimensions) / float(seconds),
    }


def draws_of(vectors: Vectors) -> list[dict[str, Any]]:
    """Tokens drawn from lists that are there."""
    n_words, rows = len(vectors), list[dict[str, Any]]()
    ids = material.zipf_tokens(TOKENS, n_words)
    near = Neighborhoods(vectors)
    near.lists(ids)
    made = {}
    for name, epsilon, mixed in DRAWS:
        if name not in made:
            made[name] = build_mechanism(name, vectors, {"truncated_gumbel": {"calibration": "paper"}})
            made[name].near = near  # type: ignore[attr-defined]
        budgets = material.document_epsilons(TOKENS, epsilon) if mixed else np.full(TOKENS, epsilon)
        mechanism, rng = made[name], np.random.default_rng(0)

        def draw(mechanism: Any = mechanism, budgets: Floats = budgets, rng: np.random.Generator = rng) -> None:
            mechanism.replace(ids, budgets, mechanism.noise(budgets, rng))

        draw()
        turns = np.array([(spent(draw), spent(lambda: mechanism.noise(budgets, rng))) for _ in range(TURNS)])  # noqa: B023
        rows.append(
            {
                "n_words": n_words,
                "mechanism": name,
                "epsilon": epsilon,
                "mixed": "yes" if mixed else "",
                "rate": TOKENS / float(np.median(turns[:, 0])),
                "of_noise": float(np.median(turns[:, 1] / turns[:, 0])),
            }
        )
    return rows


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The b of value ~ V^b, fitted."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables and the exponents, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.near_lists", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="V", help="vocabulary sizes")
    parser.add_argument("--space", type=Path, help="folder of a trained space to use instead of made vectors")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--lists-only", action="store_true", help="do not draw from them")
    options = parser.parse_args(arguments)
    lists, rates = list[dict[str, Any]](), list[dict[str, Any]]()
    for n_words in options.sizes:
        vectors = material.space_vectors(options.space, n_words) if options.space else material.made_vectors(n_words)
        if vectors is None:
            print(f"V = {n_words:,}: {options.space} has fewer words; left out", flush=True)
            continue
        lists.append(lists_of(vectors))
        print_table(LISTS, lists[-1:])
        if not options.lists_only:
            new = draws_of(vectors)
            print_table(RATES, new)
            rates += new
    print_table(LISTS, lists)
    print_table(RATES, rates)
    if len(lists) > 1:
        sizes = [row["n_words"] for row in lists]
        print(f"CPU seconds of all lists grow as V^{exponent(sizes, [row['seconds'] for row in lists]):.2f}")
        for name, epsilon, mixed in DRAWS if rates else ():
            same = [r for r in rates if (r["mechanism"], r["epsilon"], r["mixed"] == "yes") == (name, epsilon, mixed)]
            grows = exponent(sizes, [1 / row["rate"] for row in same])
            print(f"CPU seconds of a token of {name}, ε = {epsilon:g}{' per document' * mixed}: V^{grows:.2f}")
    if options.json:
        write_json({"lists": lists, "rates": rates}, options.json)


if __name__ == "__main__":
    main()
