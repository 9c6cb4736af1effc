"""Plan what every text may spend, before any noise is drawn: documents -> plans/STRATEGY/EPSILON.parquet.

For a run at a level of recovery: plans/MECHANISM/STRATEGY/rLEVEL.json, documents -> the plan beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from lexveil import paths
from lexveil.accounting.budgets import SEGMENTATION_OF, STRATEGIES, Policy, document_budget, epsilon_per_token
from lexveil.artifacts.calibrations import load_calibration
from lexveil.artifacts.document_sets import load_documents
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.text_rows import texts_of
from lexveil.config import Params, load_params
from lexveil.privatization.engine.plan import count_tokens
from lexveil.runtime.stage import named_level, stage_main
from lexveil.runtime.tables import atomic_directory, write_table
from lexveil.types import Floats, Ids


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """What the budgets of n texts follow from, (n,) each.

    Attributes:
        n_perturbed_words: words of the tokens that are perturbed.
    """

    n_words: Ids
    n_tokens: Ids
    n_perturbed: Ids
    n_perturbed_words: Ids

    @classmethod
    def of(cls, texts: pa.Table, strategy: str, params: Params) -> TokenCounts:
        """Cut the texts as a strategy does, and count."""
        policy = params.policy
        resolved = Policy.of(strategy, policy.stopwords, policy.punctuation, policy.oov)
        lexicon = load_lexicon(SEGMENTATION_OF[strategy], Path(), params.model.language)
        return cls(*count_tokens(texts.column("text").to_pylist(), lexicon, resolved))

    def table(self, texts: pa.Table, budget: Floats, per_token: Floats) -> pa.Table:
        """The plan of the texts."""
        table = texts.drop_columns(["text"])
        for name, values in {
            "n_words": self.n_words,
            "n_tokens": self.n_tokens,
            "n_perturbed": self.n_perturbed,
            "budget": budget,
            "epsilon_per_token": per_token,
        }.items():
            table = table.append_column(name, pa.array(values))
        return table


def plan(texts: pa.Table, strategy: str, epsilons: Sequence[float], params: Params, out: Path) -> None:
    """Write one plan per base epsilon into folder ``out``; rows as ``texts``, one budget per data set."""
    counts = TokenCounts.of(texts, strategy, params)
    dataset = np.array(texts.column("dataset").to_pylist())
    with atomic_directory(out) as folder:
        for base_epsilon in epsilons:
            budget = np.zeros(texts.num_rows)
            per_token = np.zeros(texts.num_rows)
            for name in np.unique(dataset):
                own = dataset == name
                budget[own] = document_budget(base_epsilon, counts.n_words[own])
                per_token[own] = epsilon_per_token(
                    strategy,
                    budget[own].max(initial=0.0),
                    counts.n_perturbed[own],
                    counts.n_perturbed_words[own],
                )
            write_table(counts.table(texts, budget, per_token), folder / f"{base_epsilon}.parquet")


def plan_at_level(texts: pa.Table, strategy: str, epsilon: float, params: Params, out: Path) -> None:
    """Write the plan in which every perturbed token gets ``epsilon``, however long its text is, to file ``out``.

    A budget that is the same for all texts would be spread over more tokens in long ones, and of those a reader would
    get back less than the level says. The budget of a data set is here what its longest text spends.
    """
    counts = TokenCounts.of(texts, strategy, params)
    dataset = np.array(texts.column("dataset").to_pylist())
    budget = np.zeros(texts.num_rows)
    for name in np.unique(dataset):
        own = dataset == name
        budget[own] = epsilon * counts.n_perturbed[own].max(initial=0)
    write_table(counts.table(texts, budget, np.where(counts.n_perturbed > 0, epsilon, 0.0)), out)


def main() -> None:
    """Run the stage for the strategy, or the run at a level of recovery, named on the command line."""
    named = sys.argv[1:]
    params, texts = load_params(), texts_of(load_documents())
    if len(named) == 1 and named[0] in STRATEGIES:
        plan(texts, named[0], params.grid.epsilons, params, paths.plans(named[0]))
        print(f"planned {texts.num_rows:,} texts at {len(params.grid.epsilons)} base epsilons")
        return
    mechanism, strategy, level = named_level(
        f"usage: python -m tasks.plan_budgets {'|'.join(STRATEGIES)}, or MECHANISM STRATEGY rLEVEL"
    )
    epsilon = load_calibration(mechanism, strategy, level).epsilon
    plan_at_level(texts, strategy, epsilon, params, paths.plan_of(mechanism, strategy, level))
    print(f"planned {texts.num_rows:,} texts at epsilon {epsilon:g} of each token")


if __name__ == "__main__":
    stage_main(main, pandas=False)
