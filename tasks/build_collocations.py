"""Pipeline stage that selects the n-grams that are collocations: ngrams ->
collocations/{bigrams,trigrams}.parquet.

Collocations that only the base model has (params.yaml: embeddings.base) are written to
base_{bigrams,trigrams}.parquet in the same folder.
"""

from __future__ import annotations

from lexveil.base import paths
from lexveil.base.runtime.tables import read_json, require
from lexveil.io.artifacts.base_model import base_collocations, find_base, require_language
from lexveil.io.config import load_configuration, load_params
from lexveil.io.execution.stage import stage_main
from lexveil.lab.collocations.scoring import build


def main() -> None:
    """Run this stage of the DVC pipeline: write the tables of collocations."""
    params = load_params()
    n_tokens = read_json(paths.METRICS / "ngrams.json", "count_ngrams")["n_tokens"]
    model = find_base(params.embeddings)
    require_language(model, params.model.language)
    kept = build(
        require(paths.NGRAMS, "count_ngrams"),
        n_tokens,
        paths.COLLOCATIONS,
        params.collocations,
        load_configuration().machine,
        None if model is None else base_collocations(params.embeddings, model),
    )
    print(f"collocations: {kept['bigrams']:,} bigrams, {kept['trigrams']:,} trigrams")
    if model is not None:
        print(
            f"from the base model {model.card.name}: {kept['base_bigrams']:,} further bigrams, "
            f"{kept['base_trigrams']:,} further trigrams"
        )


if __name__ == "__main__":
    stage_main(main, pandas=False)
