"""Train the embedding of one segmentation: segmented/SEGMENTATION.txt -> spaces/SEGMENTATION/."""

from __future__ import annotations

import tasks.io.blas  # noqa: F401  # isort: skip - before NumPy

import sys
from dataclasses import asdict

import numpy as np

from tasks.errors import RequestError
from tasks.io import paths
from tasks.io.params import load_params
from tasks.io.spaces import write_space
from tasks.io.stage import Progress, stage_main
from tasks.io.tables import require, write_json
from tasks.space.embed import train_word2vec


def main() -> None:
    """Run the stage for the segmentation named on the command line."""
    if len(sys.argv) != 2:
        raise RequestError("usage: python -m tasks.train_embeddings word|gst|mst")
    segmentation = sys.argv[1]
    params = load_params()
    if params.embeddings.workers > 1:
        print(
            f"training with {params.embeddings.workers} workers: faster, but not repeatable byte for byte", flush=True
        )
    corpus = require(paths.segmented(segmentation), f"segment_corpus@{segmentation}")
    progress = Progress(f"train {segmentation}", params.embeddings.epochs, "epochs")
    space = train_word2vec(
        str(corpus), seed=params.seed, on_epoch=lambda _: progress.advance(1), **asdict(params.embeddings)
    )
    write_space(space, paths.space(segmentation))
    words_in_token = np.array([token.count("_") + 1 for token in space.tokens])
    norms = np.linalg.norm(space.vectors, axis=1)
    metrics = {
        "n_tokens": len(space.tokens),
        "n_unigrams": int((words_in_token == 1).sum()),
        "n_bigrams": int((words_in_token == 2).sum()),
        "n_trigrams": int((words_in_token == 3).sum()),
        "tokens_covered": int(space.counts.sum()),
        # Rounded: a metric people compare, not the vectors themselves.
        "norm_median": round(float(np.median(norms)), 3),
        "norm_largest": round(float(norms.max()), 3),
    }
    write_json(metrics, paths.METRICS / "spaces" / f"{segmentation}.json")
    print(f"trained {len(space.tokens):,} vectors of {params.embeddings.dimensions} dimensions")


if __name__ == "__main__":
    stage_main(main)
