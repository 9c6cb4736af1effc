"""Pipeline stage that measures how much the disclosed structure of a text (its segmentation into
tokens) changes if one word is replaced, in public texts: corpus, embedding ->
structure/SEGMENTATION.json.

The rows of the sample are ordered by the hash of their text, so its first texts are a random
choice. Each text gets some copies with one word replaced by another word of the corpus, the same
copies for all segmentations. Without a corpus, the measurement of the base model is used, which
covers the base model's own texts and all of its tokens.
"""

from __future__ import annotations

from pathlib import Path

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.runtime.tables import read_table, require, write_json
from lexveil.core.accounting.structure import Replacements
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.io.artifacts.base_model import find_base
from lexveil.io.artifacts.lexicons import load_lexicon
from lexveil.io.artifacts.structure import first_texts, measured
from lexveil.io.config import load_params
from lexveil.io.execution.stage import stage_main

STAGE = "measure_structure"  # name of the random stream
TEXTS = 2000


def main() -> None:
    """Run this stage of the DVC pipeline: measure the sensitivity of the disclosed structure.

    Raises:
        RequestError: if the corpus has fewer than two different words.
    """
    params = load_params()
    texts = first_texts(require(paths.SAMPLE, "sample_corpus"), TEXTS)
    if not texts and (model := find_base(params.embeddings)):
        for segmentation in params.grid.segmentations:
            brought = model.structure(segmentation)
            write_json(
                None if brought is None else brought.to_dict(), paths.structure(segmentation)
            )
        print(f"there is no corpus, so the measurement of {model.card.name} is used, if it has one")
        return
    words = read_table(paths.WORDS, "sample_corpus", ["word", "count"])
    source = "texts of the corpus that the model was trained on"
    for segmentation in params.grid.segmentations:
        try:
            replacements = Replacements(
                texts,
                words.column("word").to_pylist(),
                words.column("count").to_numpy(),
                stream(params.seed, STAGE),
                params.model.language,
            )
        except ValueError as error:
            raise RequestError(f"{STAGE}: {error}; enlarge the corpus") from None
        result = measured(
            load_lexicon(segmentation, Path(), params.model.language), replacements, params, source
        )
        write_json(result.to_dict(), paths.structure(segmentation))


if __name__ == "__main__":
    stage_main(main, pandas=False)
