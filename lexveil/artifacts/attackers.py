"""Reading and writing of attack models: a folder per data set with the weights and biases of each
layer, without pickles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lexveil import paths
from lexveil.artifacts.embeddings import read_arrays, write_arrays
from lexveil.evaluation.metrics.membership import PaperAttacker
from lexveil.runtime.tables import atomic_directory, require

STAGE = "train_attackers"
N_LAYERS = 3


def write_attackers(trained: Mapping[str, Sequence[PaperAttacker]], out: Path) -> None:
    """Write the attack models of each data set into folder ``out``; the models of one data set are
    stacked in one array.
    """
    with atomic_directory(out) as folder:
        for dataset, models in trained.items():
            (folder / dataset).mkdir()
            arrays = {
                f"{name}_{number + 1}": np.stack([model.layers[number][part] for model in models])
                for number in range(N_LAYERS)
                for part, name in enumerate(("weights", "biases"))
            }
            write_arrays(folder / dataset, arrays)


def load_attackers(dataset: str) -> list[PaperAttacker]:
    """Return the attack models of one data set, in the order of their training.

    Raises:
        MissingArtifactError: if they were not trained.
    """
    folder = require(paths.ATTACKERS / dataset, STAGE)
    weights, biases = (
        read_arrays(folder, *(f"{name}_{number + 1}" for number in range(N_LAYERS)))
        for name in ("weights", "biases")
    )
    layers = [list(zip(*arrays, strict=True)) for arrays in zip(weights, biases, strict=True)]
    return [PaperAttacker(0, list(model)) for model in zip(*layers, strict=True)]
