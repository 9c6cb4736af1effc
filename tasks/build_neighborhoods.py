"""Pipeline stage that finds the nearest neighbours of every word in one embedding:
embeddings/SEGMENTATION -> neighborhoods/SEGMENTATION/.

lists/ has the exact near-word lists from which TEM and truncated Gumbel draw. The lists cover the
words that a mechanism may output, the most frequent words first; every run and worker maps them
into memory. An interrupted stage resumes where it stopped.

meta.json has the smallest and the largest distance between two words, which calibrate truncated
Gumbel. Both are exact for every method of search.
"""

from __future__ import annotations

import lexveil.base.runtime.blas  # isort: skip - before NumPy  # noqa: F401

from pathlib import Path

import numpy as np

from lexveil.base import paths
from lexveil.base.errors import LexveilError
from lexveil.base.runtime.tables import atomic_directory, write_json
from lexveil.base.types import Floats, Vectors
from lexveil.core.accounting.budgets import Policy
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.embeddings.exact_search import approximate_neighbors
from lexveil.core.embeddings.extent import largest_distance, smallest_distance
from lexveil.core.embeddings.knn_graph import nearest_others
from lexveil.core.embeddings.neighborhoods import NearTable, nearest_words
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.io.artifacts.embeddings import load_embedding
from lexveil.io.artifacts.neighborhoods import add_lists, key_of, open_lists, write_lists
from lexveil.io.config import MachineParams, Params, load_configuration, load_params
from lexveil.io.execution.checkpoints import kept_work
from lexveil.io.execution.effort import foresee
from lexveil.io.execution.stage import Progress, named_segmentation, stage_main

# Code that decides the lists: an interrupted stage resumes only with lists of the same code.
CODE = (
    "lexveil.core.embeddings.neighborhoods",
    "lexveil.core.embeddings.knn_graph",
    "lexveil.io.artifacts.neighborhoods",
)


def near_lists(
    space: WordSpace, segmentation: str, params: Params, machine: MachineParams, out: Path
) -> NearTable:
    """Compute, write and return the lists of nearest words, for the words that a mechanism may
    output.
    """
    # of the policy, only the action for punctuation decides which words have lists
    policy = Policy("perturb", params.policy.punctuation, "sample")
    vocabulary = Vocabulary.of(space.tokens, space.vectors, policy)
    vectors, key = vocabulary.vectors, key_of(vocabulary.vectors)
    n_lists = (
        len(vectors)
        if params.neighborhoods.lists is None
        else min(params.neighborhoods.lists, len(vectors))
    )
    what = f"near words {segmentation}"
    progress = Progress(f"near words {segmentation}", n_lists, "lists")
    effort = {"distances listed": n_lists * vectors.size, "words listed": len(vectors)}
    foresee(
        f"{what}: {n_lists:,} lists",
        effort,
        "Lower neighborhoods.lists or embeddings.base_tokens",
        machine,
    )
    if not n_lists:
        table = nearest_words(vectors, np.arange(0))
        write_lists(table, key, out)
        return table
    with kept_work(machine, f"build_neighborhoods/{segmentation}", CODE, [], key, n_lists) as work:
        add_lists(work / "lists", vectors, key, n_lists, on_step=progress.advance)
        lists = open_lists(work / "lists", key)
        if lists is None:
            raise LexveilError(
                f"build_neighborhoods {segmentation}: another process is building the same lists"
            )
        table = NearTable(np.array(lists.ids), np.array(lists.distances), largest_distance(vectors))
        write_lists(table, key, out)
    return table


def main() -> None:
    """Run this stage of the DVC pipeline for the segmentation named on the command line."""
    segmentation = named_segmentation("build_neighborhoods")
    params = load_params()
    machine = load_configuration().machine
    space = load_embedding(segmentation)
    vectors = np.ascontiguousarray(space.vectors)
    k = params.neighborhoods.neighbors
    search = params.neighborhoods.search
    with atomic_directory(paths.neighborhood(segmentation)) as folder:
        table = near_lists(space, segmentation, params, machine, folder / "lists")
        distances: Vectors | Floats
        if len(table) == len(vectors) and k < table.ids.shape[1]:
            ids = table.ids[:, 1 : k + 1]
            distances = table.distances[:, 1 : k + 1]
        else:
            ids, distances = nearest_others(vectors, np.arange(len(vectors)), k)
        smallest = smallest_distance(vectors, ids[:, 0]) if len(vectors) > 1 else None
        if search != "exact":
            ids, distances = approximate_neighbors(vectors, k, params.seed)
        meta = {
            "neighbors": ids.shape[1],
            "search": search,
            "smallest_distance": smallest,
            "largest_distance": largest_distance(vectors),
        }
        np.save(folder / "neighbors.npy", ids, allow_pickle=False)
        np.save(folder / "distances.npy", distances.astype(np.float32), allow_pickle=False)
        write_json(meta, folder / "meta.json")
    print(
        f"neighbours: {ids.shape[1]} for each of {len(ids):,} words, {search}; {len(table):,} "
        "lists of near words"
    )


if __name__ == "__main__":
    stage_main(main, pandas=False)
