"""Pipeline stage that chooses the documents to train on and tokenizes them once: data/corpus ->
corpus/*.parquet, corpus/length.json.
"""

from __future__ import annotations

from lexveil.base import paths
from lexveil.base.runtime.tables import write_json
from lexveil.io.config import load_configuration, load_params
from lexveil.io.execution.stage import stage_main
from lexveil.lab.collocations.sampling import count_words, sample, tokenize


def main() -> None:
    """Run this stage of the DVC pipeline: sample and tokenize the corpus."""
    params = load_params()
    machine = load_configuration().machine
    drawn = sample(paths.CORPUS, paths.SAMPLE, params, machine)
    n_sentences = tokenize(paths.SAMPLE, paths.TOKENS, paths.WORDS, machine, params.model.language)
    write_json(
        {"n_documents": sum(drawn.values()), "n_words": count_words(paths.WORDS)},
        paths.CORPUS_LENGTH,
    )
    mix = ", ".join(f"{name} {n:,}" for name, n in drawn.items()) if set(drawn) != {""} else ""
    print(
        f"sampled {sum(drawn.values()):,} documents{mix and f' ({mix})'}, {n_sentences:,} sentences"
    )


if __name__ == "__main__":
    stage_main(main, pandas=False)
