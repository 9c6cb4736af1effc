"""Keep the n-grams whose words belong together: ngrams -> collocations/{bigrams,trigrams}.parquet."""

from __future__ import annotations

from lexveil import paths
from lexveil.collocations.scoring import build
from lexveil.config import load_params
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import read_json, require


def main() -> None:
    """Run the stage."""
    params = load_params()
    n_tokens = read_json(paths.METRICS / "ngrams.json", "count_ngrams")["n_tokens"]
    kept = build(
        require(paths.NGRAMS, "count_ngrams"), n_tokens, paths.COLLOCATIONS, params.collocations, params.machine
    )
    print(f"collocations: {kept['bigrams']:,} bigrams, {kept['trigrams']:,} trigrams")


if __name__ == "__main__":
    stage_main(main)
