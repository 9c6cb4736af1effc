"""Pipeline stage that trains the language model for perplexities: corpus/{tokens,words}.parquet ->
language_model/.

The language model is trained on the public corpus, never on the documents that are rewritten.
Documents of the sample are ordered by their ids, which are hashes of their texts, so that the first
ones are a random part of it. If params.yaml: evaluation.language_model names an external model, or
the corpus has no sentence, nothing is trained, and meta.json says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.runtime.tables import atomic_directory, read_table, require, write_json
from lexveil.core.language_models.kneser_ney import train
from lexveil.core.language_models.language_model import NgramModel
from lexveil.io.artifacts.language_models import read_sentences, write_language_model
from lexveil.io.config import load_params
from lexveil.io.execution.stage import stage_main

ORDER = 3


def run(tokens: Path, words: Sequence[str], max_tokens: int, out: Path) -> dict[str, Any]:
    """Train the language model, write it into folder ``out``, and return facts about its training.

    The model knows the words of its training sentences only.

    Args:
        words: words of the corpus, by word id.
        max_tokens: largest number of training tokens.

    Raises:
        ParameterError: if the corpus has no sentence.
    """
    ids, offsets = read_sentences(tokens, max_tokens)
    known, numbers = np.unique(ids, return_inverse=True)
    model = train(numbers, offsets, len(known), ORDER)
    about = {
        "language_model": NgramModel.name,
        "is_trained": True,
        "order": ORDER,
        "n_tokens": len(ids),
        "n_sentences": len(offsets) - 1,
        "n_ngrams": [len(order.keys) for order in model.orders],
    }
    write_language_model(model, [words[number] for number in known.tolist()], about, out)
    return about


def main() -> None:
    """Run this stage of the DVC pipeline: train the language model."""
    settings = load_params().evaluation
    why = None
    if settings.language_model != NgramModel.name:
        why = "an external model, so nothing is trained"
    elif not pq.read_metadata(require(paths.TOKENS, "sample_corpus")).num_rows:
        why = "there is no corpus, so no language model is trained, and perplexity is not measured"
    if why is not None:
        with atomic_directory(paths.LANGUAGE_MODEL) as folder:
            write_json(
                {"language_model": settings.language_model, "is_trained": False},
                folder / "meta.json",
            )
        print(f"language model {settings.language_model}: {why}")
        return
    words = read_table(paths.WORDS, "sample_corpus", ["word"]).column("word").to_pylist()
    trained = run(paths.TOKENS, words, settings.language_model_tokens, paths.LANGUAGE_MODEL)
    n_ngrams = ", ".join(f"{n:,}" for n in trained["n_ngrams"])
    print(
        f"language model: {trained['n_tokens']:,} tokens; n-grams of length 1 to {ORDER}: "
        f"{n_ngrams}"
    )


if __name__ == "__main__":
    stage_main(main, pandas=False)
