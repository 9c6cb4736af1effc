"""Choose the documents to learn from and tokenize them once: data/corpus -> corpus/{sample,tokens,words}.parquet."""

from __future__ import annotations

from lexveil import paths
from lexveil.collocations.sampling import sample, tokenize
from lexveil.config import load_params
from lexveil.runtime.stage import stage_main


def main() -> None:
    """Run the stage."""
    params = load_params()
    drawn = sample(paths.CORPUS, paths.SAMPLE, params)
    n_sentences = tokenize(paths.SAMPLE, paths.TOKENS, paths.WORDS, params.machine)
    mix = ", ".join(f"{name} {n:,}" for name, n in drawn.items()) if set(drawn) != {""} else ""
    print(f"sampled {sum(drawn.values()):,} documents{mix and f' ({mix})'}, {n_sentences:,} sentences")


if __name__ == "__main__":
    stage_main(main)
