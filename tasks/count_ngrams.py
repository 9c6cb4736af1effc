"""Pipeline stage that counts words, bigrams and trigrams: corpus/{tokens,words}.parquet ->
ngrams/{words,bigrams,trigrams}.parquet.
"""

from __future__ import annotations

from lexveil.base import paths
from lexveil.base.runtime.tables import require, write_json
from lexveil.io.config import load_configuration, load_params
from lexveil.io.execution.stage import stage_main
from lexveil.lab.collocations.counting import count


def main() -> None:
    """Run this stage of the DVC pipeline: write the n-gram counts."""
    params = load_params()
    tokens = require(paths.TOKENS, "sample_corpus")
    words = require(paths.WORDS, "sample_corpus")
    totals = count(
        tokens, words, paths.NGRAMS, params.count.min_count, load_configuration().machine
    )
    write_json(totals, paths.METRICS / "ngrams.json")


if __name__ == "__main__":
    stage_main(main, pandas=False)
