"""Pipeline stage that cuts the corpus into the tokens (words or collocations) of each segmentation:
tokens + collocations -> segmented/SEGMENTATION.txt.
"""

from __future__ import annotations

import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.runtime.tables import require, write_json
from lexveil.io.artifacts.collocation_tables import load_collocations
from lexveil.io.config import load_configuration, load_params
from lexveil.io.execution.stage import stage_main
from lexveil.lab.collocations.segmenting import segment_file

SMALL = 5_000_000  # with fewer sentences, starting worker processes costs more than it saves


def main() -> None:
    """Run this stage of the DVC pipeline: segment the corpus."""
    known_collocations = load_collocations()
    tokens = require(paths.TOKENS, "sample_corpus")
    words = require(paths.WORDS, "sample_corpus")
    params = load_params()
    machine = load_configuration().machine
    if pq.read_metadata(tokens).num_rows < SMALL:
        machine = machine.alone()
    for segmentation in params.grid.segmentations:
        if segmentation not in params.needed_segmentations:
            print(
                f"params.yaml: no strategy of the grid needs {segmentation}; remove it from "
                "grid.segmentations to save its training"
            )
        collocations = None if segmentation == "word" else known_collocations
        totals = segment_file(
            tokens, words, paths.segmented(segmentation), segmentation, collocations, machine
        )
        write_json(totals, paths.METRICS / "segmented" / f"{segmentation}.json")


if __name__ == "__main__":
    stage_main(main, pandas=False)
