"""Plan what every text may spend, before any noise is drawn: documents -> plans/STRATEGY/EPSILON.parquet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from lexveil import paths
from lexveil.accounting.budgets import SEGMENTATION_OF, STRATEGIES, Policy, document_budget, epsilon_per_token
from lexveil.artifacts.document_sets import load_documents
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.text_rows import texts_of
from lexveil.config import PolicyParams, load_params
from lexveil.errors import RequestError
from lexveil.privatization.count import count_tokens
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import atomic_directory, write_table


def plan(texts: pa.Table, strategy: str, epsilons: Sequence[float], policy: PolicyParams, out: Path) -> None:
    """Write one plan per base epsilon into folder ``out``; rows as ``texts``, one budget per data set."""
    resolved = Policy.of(strategy, policy.stopwords, policy.punctuation, policy.oov)
    n_words, n_tokens, n_perturbed, n_perturbed_words = count_tokens(
        texts.column("text").to_pylist(), load_lexicon(SEGMENTATION_OF[strategy]), resolved
    )
    dataset = np.array(texts.column("dataset").to_pylist())
    with atomic_directory(out) as folder:
        for base_epsilon in epsilons:
            budget = np.zeros(texts.num_rows)
            per_token = np.zeros(texts.num_rows)
            for name in np.unique(dataset):
                own = dataset == name
                budget[own] = document_budget(base_epsilon, n_words[own])
                per_token[own] = epsilon_per_token(
                    strategy, budget[own].max(initial=0.0), n_perturbed[own], n_perturbed_words[own]
                )
            table = texts.drop_columns(["text"])
            for name, values in {
                "n_words": n_words,
                "n_tokens": n_tokens,
                "n_perturbed": n_perturbed,
                "budget": budget,
                "epsilon_per_token": per_token,
            }.items():
                table = table.append_column(name, pa.array(values))
            write_table(table, folder / f"{base_epsilon}.parquet")


def main() -> None:
    """Run the stage for the strategy named on the command line."""
    if len(sys.argv) != 2 or sys.argv[1] not in STRATEGIES:
        raise RequestError(f"usage: python -m tasks.plan_budgets {'|'.join(STRATEGIES)}")
    strategy = sys.argv[1]
    params = load_params()
    texts = texts_of(load_documents())
    plan(texts, strategy, params.grid.epsilons, params.policy, paths.plans(strategy))
    print(f"planned {texts.num_rows:,} texts at {len(params.grid.epsilons)} base epsilons")


if __name__ == "__main__":
    stage_main(main)
