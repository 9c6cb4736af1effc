"""Pipeline stage that finds recovery levels that no run can reach (shares of words that an
adversary names even without an output), before an embedding is trained: segmented -> limits.json.

An adversary who sees no output knows the frequencies of words and of word pairs, and the words that
stay unchanged. The share of words that this adversary names is the least recovery of any mechanism
at any epsilon. It depends on the tokens of an embedding and their counts, which are known before
the vectors are trained.
"""

from __future__ import annotations

import numpy as np

from lexveil.base import paths
from lexveil.base.runtime.run_events import SKIPPED_LINE
from lexveil.base.runtime.tables import read_json, require, write_json
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.embeddings.base import joined
from lexveil.core.embeddings.training_defaults import default_min_count
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.io.artifacts.base_model import base_space, find_base, with_base
from lexveil.io.artifacts.model_store import load_words_of
from lexveil.io.config import MachineParams, Params, load_configuration, load_params
from lexveil.io.execution.stage import stage_main
from lexveil.lab.collocations.adjacent_tokens import count_bigrams
from lexveil.lab.collocations.token_counts import count_tokens
from lexveil.readers.counted_words import CountedWords, below_least


def counted_tokens(segmentation: str, params: Params, machine: MachineParams) -> WordSpace:
    """Return the future vocabulary of a segmentation's embedding, with token counts and with
    vectors of dimension 0.

    Tokens of equal counts may be in another order than in the embedding.

    Raises:
        MissingArtifactError: if the corpus was not segmented.
        ParameterError: if params.yaml names a base model that does not exist.
    """
    options = params.embeddings
    if segmentation == "word" and options.word_model != "own":
        return load_words_of(options.word_model, "embeddings.word_model")
    of_corpus = paths.METRICS / "segmented" / f"{segmentation}.json"
    n_tokens = read_json(of_corpus, "segment_corpus")["n_tokens"]
    tokens, counts = count_tokens(
        require(paths.segmented(segmentation), "segment_corpus"),
        options.min_count or default_min_count(n_tokens),
        machine,
        plain_copy=options.plain_copy and segmentation != "word",
    )
    own = without_vectors(WordSpace(tokens, np.empty((len(tokens), 0), np.float32), counts))
    model = find_base(options)
    if model is None:
        return own
    return joined(own, without_vectors(base_space(options, model, segmentation)))[0]


def without_vectors(space: WordSpace) -> WordSpace:
    """Return the tokens and counts of an embedding, with vectors of dimension 0 in place of its
    own.
    """
    return WordSpace(space.tokens, np.empty((len(space.tokens), 0), np.float32), space.counts)


def least_recovery(strategy: str, params: Params, machine: MachineParams) -> dict[str, float]:
    """Return the share of the perturbed words that an adversary names without seeing any output, by
    frequency band.

    Raises:
        MissingArtifactError, ParameterError: as in ``counted_tokens``.
    """
    segmentation = SEGMENTATION_OF[strategy]
    chosen = params.policy
    policy = Policy.of(strategy, chosen.stopwords, chosen.punctuation, chosen.oov)
    space = without_vectors(counted_tokens(segmentation, params, machine))
    corpus = require(paths.segmented(segmentation), "segment_corpus")
    counted = count_bigrams(corpus, space.tokens, machine)
    bigrams = with_base(counted, space.tokens, segmentation, find_base(params.embeddings))
    vocabulary = Vocabulary.of(space.tokens, space.vectors, policy)
    return CountedWords.of(space, vocabulary, bigrams, policy, params.model.language).least()


def run(params: Params, machine: MachineParams) -> dict[str, dict[str, float]]:
    """Return the least recovery (share of words that an adversary names without an output) of each
    strategy of the grid, by frequency band; empty if no run is at a recovery level. Log the levels
    that are below the least recovery.

    Raises:
        MissingArtifactError, ParameterError: as in ``counted_tokens``.
    """
    grid = params.grid
    if not grid.levels:
        return {}
    least: dict[str, dict[str, float]] = {
        strategy: least_recovery(strategy, params, machine) for strategy in grid.strategies
    }
    for strategy, bands in least.items():
        nearest = bands[grid.recovery_band]
        print(f"{strategy}: an adversary who sees no output names {nearest:.1%}")
        below = [str(level) for level in sorted(grid.levels) if level.share <= nearest]
        if below:
            why = below_least(nearest, grid.recovery_band)
            print(
                f"{SKIPPED_LINE}{strategy} {', '.join(below)} of mechanisms over all words: {why}"
            )
    return least


def main() -> None:
    """Run this stage of the DVC pipeline: write limits.json."""
    write_json(run(load_params(), load_configuration().machine), paths.LIMITS)


if __name__ == "__main__":
    stage_main(main, pandas=False)
