"""Count how often each token of an embedding stands right after another one: segmented ->
bigrams/SEGMENTATION/.

If training starts from a base model, the counts of the base model are added.
"""

from __future__ import annotations

import numpy as np

from lexveil import paths
from lexveil.artifacts.base_model import find_base
from lexveil.artifacts.bigrams import write_bigrams
from lexveil.artifacts.embeddings import load_words
from lexveil.collocations.adjacent_tokens import count_bigrams
from lexveil.config import load_configuration, load_params
from lexveil.runtime.stage import named_segmentation, stage_main
from lexveil.runtime.tables import atomic_directory, require


def main() -> None:
    """Run the stage for the segmentation named on the command line."""
    segmentation = named_segmentation("count_bigrams")
    params = load_params()
    tokens = load_words(segmentation)
    base = find_base(params.embeddings)
    counted = count_bigrams(
        require(paths.segmented(segmentation), "segment_corpus"),
        tokens,
        load_configuration().machine,
    )
    if base is not None and (of_base := base.bigrams(segmentation)) is not None:
        row_of = {token: row for row, token in enumerate(tokens)}
        rows = np.array(
            [row_of.get(token, -1) for token in base.space(segmentation).tokens], dtype=np.int64
        )
        counted = counted.with_counts(of_base.renumbered(rows, len(tokens)))
    with atomic_directory(paths.bigrams(segmentation)) as folder:
        write_bigrams(counted, folder)
    print(f"{len(counted.ids):,} pairs of {len(tokens):,} tokens")


if __name__ == "__main__":
    stage_main(main, pandas=False)
