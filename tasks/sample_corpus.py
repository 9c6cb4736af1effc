"""Choose the documents to train on and tokenize them once: data/corpus -> corpus/*.parquet,
corpus/length.json.
"""

from __future__ import annotations

from lexveil import paths
from lexveil.collocations.sampling import count_words, sample, tokenize
from lexveil.config import load_configuration, load_params
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import write_json


def main() -> None:
    """Run the stage."""
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
