"""The nearest words of every word of one embedding: embeddings/SEGMENTATION -> neighborhoods/SEGMENTATION/.

meta.json tells the smallest and the largest distance of two words, which truncated Gumbel is calibrated by, both exact
whatever the search; and where the search is approximate, how often it finds the nearest word of a noisy vector. That is
another question than how well it does among words: noise carries the vector far away from all of them.
"""

from __future__ import annotations

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy

import sys
from typing import Any

import numpy as np

from lexveil import paths
from lexveil.artifacts.embeddings import load_embedding
from lexveil.config import load_params
from lexveil.embeddings.approximate_search import ApproximateSearch
from lexveil.embeddings.exact_search import ExactSearch, approximate_neighbors
from lexveil.embeddings.extent import largest_distance, smallest_distance
from lexveil.errors import RequestError
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.noise.streams import stream
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import atomic_directory, write_json
from lexveil.types import Vectors

NOISE = (1.0, 10.0, 50.0)  # epsilon of the noisy queries
SAMPLE = 500  # words that they are made from


def noisy_recall(vectors: Vectors, seed: int, segmentation: str) -> dict[str, float]:
    """By epsilon, the share of noisy vectors (MADLIB's) of random words whose nearest word the index finds."""
    exact, approximate = ExactSearch(vectors), ApproximateSearch(vectors, seed)
    noise = Madlib(vectors).noise
    found = {}
    for epsilon in NOISE:
        rng = stream(seed, "build_neighborhoods", segmentation, str(epsilon))
        words = rng.integers(len(vectors), size=SAMPLE)
        queries = vectors[words] + noise(np.full(SAMPLE, epsilon), rng)
        found[str(epsilon)] = float((approximate.nearest(queries) == exact.nearest(queries)).mean())
    return found


def main() -> None:
    """Run the stage for the segmentation named on the command line."""
    if len(sys.argv) != 2:
        raise RequestError("usage: python -m tasks.build_neighborhoods word|gst|mst")
    segmentation = sys.argv[1]
    params = load_params()
    vectors = np.ascontiguousarray(load_embedding(segmentation).vectors)
    k, search = params.neighborhoods.neighbors, params.neighborhoods.search
    if search == "exact":
        ids, distances = ExactSearch(vectors).neighbors(k)
    else:
        ids, distances = approximate_neighbors(vectors, k, params.seed)
    meta: dict[str, Any] = {"neighbors": ids.shape[1], "search": search, "smallest_distance": None}
    if len(vectors) > 1:
        meta["smallest_distance"] = smallest_distance(vectors)
    meta["largest_distance"] = largest_distance(vectors)
    if search != "exact":
        meta["recall_of_noisy_queries"] = noisy_recall(vectors, params.seed, segmentation)
        meta["noisy_queries"] = SAMPLE
    with atomic_directory(paths.neighborhood(segmentation)) as folder:
        np.save(folder / "neighbors.npy", ids, allow_pickle=False)
        np.save(folder / "distances.npy", distances, allow_pickle=False)
        write_json(meta, folder / "meta.json")
    print(f"neighbours: {ids.shape[1]} of each of {len(ids):,} words, {search}")


if __name__ == "__main__":
    stage_main(main)
