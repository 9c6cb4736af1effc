"""Train the embedding of one segmentation: segmented/SEGMENTATION.txt -> spaces/SEGMENTATION/.

That of words may be a model that was brought in instead (params.yaml: embeddings.word_model).
"""

from __future__ import annotations

import tasks.io.blas  # noqa: F401  # isort: skip - before NumPy

import sys
from dataclasses import asdict

import numpy as np

from tasks.errors import RequestError
from tasks.io import paths
from tasks.io.models import load_model
from tasks.io.params import load_params
from tasks.io.spaces import write_space
from tasks.io.stage import Progress, stage_main
from tasks.io.tables import require, write_json
from tasks.space.embed import train_word2vec
from tasks.space.word_space import WordSpace


def main() -> None:
    """Run the stage for the segmentation named on the command line."""
    if len(sys.argv) != 2:
        raise RequestError("usage: python -m tasks.train_embeddings word|gst|mst")
    segmentation = sys.argv[1]
    params = load_params()
    if segmentation == "word" and params.embeddings.word_model != "own":
        write(load_model(params.embeddings.word_model), segmentation, f"taken from {params.embeddings.word_model}")
        return
    if params.embeddings.workers > 1:
        print(
            f"training with {params.embeddings.workers} workers: faster, but not repeatable byte for byte", flush=True
        )
    corpus = require(paths.segmented(segmentation), f"segment_corpus@{segmentation}")
    progress = Progress(f"train {segmentation}", params.embeddings.epochs, "epochs")
    settings = asdict(params.embeddings)
    del settings["word_model"]
    space = train_word2vec(str(corpus), seed=params.seed, on_epoch=lambda _: progress.advance(1), **settings)
    write(space, segmentation, "trained")


def write(space: WordSpace, segmentation: str, how: str) -> None:
    """Write the embedding of one segmentation and its figures."""
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
    print(f"{how}: {len(space.tokens):,} vectors of {space.vectors.shape[1]} dimensions")


if __name__ == "__main__":
    stage_main(main)
