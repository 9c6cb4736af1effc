"""Pipeline stage that measures the plausible deniability statistics N_w and S_w of each mechanism:
embeddings, word orders -> deniability/MECHANISM/.

Some words, drawn at random from the vocabulary, are replaced many times at each epsilon of the
grid, as in Figure 4 of 1-Diffractor. If the distribution has a closed form, expectations are
computed as well. In this stage a word gets the epsilon itself; in a text, a word gets its share of
the text's budget.

All mechanisms replace the same words in a segmentation, so that they can be compared. Only words in
every list set take part, even if the mechanism does not work on lists. The file identifies words by
their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lexveil.base import paths
from lexveil.base.errors import ParameterError, RequestError
from lexveil.base.runtime.tables import atomic_directory, write_json
from lexveil.base.types import Rows
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.mechanisms.deniability import choose_words, statistics
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.variants import base_of
from lexveil.io.artifacts.embeddings import load_embedding, load_word_orders
from lexveil.io.artifacts.mechanisms import ModelSpace, Prepared, prepare
from lexveil.io.artifacts.model_source import OwnRun
from lexveil.io.artifacts.project import Project
from lexveil.io.config import Params, load_params
from lexveil.io.execution.stage import Progress, stage_main

STAGE = "measure_deniability"  # name of the random streams


def shared_rows(segmentation: str, space: WordSpace, policy: Policy, sets: Sequence[str]) -> Rows:
    """Return the vocabulary rows of those words that are in every set of word orders, ascending."""
    lists = [set(load_word_orders(segmentation, name).words) for name in sets]
    rows = Vocabulary.of(space.tokens, space.vectors, policy).rows
    shared = [row for row in rows.tolist() if all(space.tokens[row] in words for words in lists)]
    return np.array(shared, dtype=np.int64)


def measure(
    prepared: Prepared, rows: Rows, epsilon: float, n_draws: int, rng: np.random.Generator
) -> dict[str, object]:
    """Measure the statistics N_w and S_w of the words at ``rows`` of the embedding, and return them
    as one row of the table.

    If the mechanism refuses the epsilon, the row has the reason and no numbers. A refused epsilon
    is no error of this stage: tokens of a text may get a larger epsilon, and a run fails if they do
    not.
    """
    try:
        row = statistics(
            prepared.mechanism, prepared.vocabulary.number[rows], epsilon, rng, n_draws
        )
    except ParameterError as error:
        row = {
            "mechanism": prepared.mechanism.name,
            "epsilon": epsilon,
            "n_words": len(rows),
            "n_draws": n_draws,
        }
        return row | {
            "n_w": None,
            "s_w": None,
            "n_w_exact": None,
            "s_w_expected": None,
            "refused": str(error),
        }
    return row | {"refused": None}


def run(mechanism: str, params: Params, out: Path) -> None:
    """Measure the statistics of a mechanism and write one file per segmentation of the grid's
    strategies into folder ``out``.

    Raises:
        ParameterError: if a parameter does not suit the mechanism or the words.
        RequestError: if no word is in every list set.
        MissingArtifactError: if an embedding or a list set was not made.
    """
    source = OwnRun(Project.find(Path()))
    noises = sorted(params.grid.base_epsilons)
    # Of the policy, only the action for punctuation decides which words take part.
    policy = Policy("perturb", params.policy.punctuation, "sample")
    segmentations = sorted({SEGMENTATION_OF[strategy] for strategy in params.grid.strategies})
    progress = Progress(f"deniability {mechanism}", len(segmentations) * len(noises), "statistics")
    with atomic_directory(out) as folder:
        for segmentation in segmentations:
            space = load_embedding(segmentation)
            shared = shared_rows(segmentation, space, policy, params.word_orders.sets)
            if not len(shared):
                raise RequestError(
                    f"{STAGE} {segmentation}: no word of the vocabulary is in every list set of "
                    "word_orders.sets; enlarge the corpus, or remove from word_orders.models "
                    "the model that shares no words with the vocabulary"
                )
            rng = stream(params.seed, STAGE, segmentation, "words")
            rows = shared[choose_words(len(shared), params.deniability.words, rng)]
            sections = params.mechanisms.of_variant(mechanism)
            words = ModelSpace(segmentation, space, policy, source)
            prepared = prepare(base_of(mechanism), words, sections)
            measured = []
            for noise in noises:
                rng = stream(params.seed, STAGE, mechanism, segmentation, str(noise))
                row = measure(prepared, rows, noise.epsilon, params.deniability.draws, rng)
                measured.append(row | {"mechanism": mechanism})
                progress.advance(1, len(rows) * params.deniability.draws)
            statement = {
                "mechanism": mechanism,
                "segmentation": segmentation,
                "metric": prepared.mechanism.metric,
                "n_vocabulary": prepared.mechanism.size,
                "n_shared": len(shared),
                "word_rows": rows.tolist(),
                "statistics": measured,
            }
            write_json(statement, folder / f"{segmentation}.json")
    progress.finish()


def main() -> None:
    """Run this stage of the DVC pipeline: measure the plausible deniability statistics."""
    params = load_params()
    for mechanism in params.grid.mechanisms:
        run(mechanism, params, paths.deniability(mechanism))


if __name__ == "__main__":
    stage_main(main, pandas=False)
