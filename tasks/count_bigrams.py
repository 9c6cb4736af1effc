"""Pipeline stage that counts how often each token of an embedding directly follows each other
token: segmented -> bigrams/SEGMENTATION/.

If training starts from a base model, the counts of the base model are added.
"""

from __future__ import annotations

from lexveil.base import paths
from lexveil.base.runtime.tables import atomic_directory, require
from lexveil.io.artifacts.base_model import find_base, with_base
from lexveil.io.artifacts.embeddings import load_words, write_bigrams
from lexveil.io.config import load_configuration, load_params
from lexveil.io.execution.stage import named_segmentation, stage_main
from lexveil.lab.collocations.adjacent_tokens import count_bigrams


def main() -> None:
    """Run this stage of the DVC pipeline for the segmentation named on the command line."""
    segmentation = named_segmentation("count_bigrams")
    params = load_params()
    tokens = load_words(segmentation)
    corpus = require(paths.segmented(segmentation), "segment_corpus")
    counted = with_base(
        count_bigrams(corpus, tokens, load_configuration().machine),
        tokens,
        segmentation,
        find_base(params.embeddings),
    )
    with atomic_directory(paths.bigrams(segmentation)) as folder:
        write_bigrams(counted, folder)
    print(f"{len(counted.ids):,} pairs of {len(tokens):,} tokens")


if __name__ == "__main__":
    stage_main(main, pandas=False)
