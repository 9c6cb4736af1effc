"""The nearest words of every word of one embedding: spaces/SEGMENTATION -> neighborhoods/SEGMENTATION/."""

from __future__ import annotations

import tasks.io.blas  # noqa: F401  # isort: skip - before NumPy

import sys

import numpy as np

from tasks.errors import RequestError
from tasks.io import paths
from tasks.io.params import load_params
from tasks.io.spaces import load_space
from tasks.io.stage import stage_main
from tasks.io.tables import atomic_directory, write_json
from tasks.space.search import ExactSearch, approximate_neighbors


def main() -> None:
    """Run the stage for the segmentation named on the command line."""
    if len(sys.argv) != 2:
        raise RequestError("usage: python -m tasks.build_neighborhoods word|gst|mst")
    segmentation = sys.argv[1]
    params = load_params()
    space = load_space(segmentation)
    k = params.neighborhoods.neighbors
    if params.neighborhoods.search == "exact":
        ids, distances = ExactSearch(space.vectors).neighbors(k)
    else:
        ids, distances = approximate_neighbors(space.vectors, k, params.seed)
    with atomic_directory(paths.neighborhood(segmentation)) as folder:
        np.save(folder / "neighbors.npy", ids, allow_pickle=False)
        np.save(folder / "distances.npy", distances, allow_pickle=False)
        write_json({"neighbors": ids.shape[1], "search": params.neighborhoods.search}, folder / "meta.json")
    print(f"neighbours: {ids.shape[1]} of each of {len(ids):,} words, {params.neighborhoods.search}")


if __name__ == "__main__":
    stage_main(main)
