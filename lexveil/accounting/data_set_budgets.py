"""Budgets of the texts of whole data sets, as the runs of the grid spend them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.accounting.budgets import document_budget, epsilon_per_token
from lexveil.levels import Level
from lexveil.types import Floats, Ids


class TokenCounts(NamedTuple):
    """What the budgets of n texts follow from, (n,) each; the last: words of the tokens that are
    perturbed.
    """

    n_words: Ids
    n_tokens: Ids
    n_perturbed: Ids
    n_perturbed_words: Ids


def spread(
    counts: TokenCounts, dataset: npt.NDArray[np.str_], strategy: str, epsilon: float
) -> tuple[Floats, Floats]:
    """Budgets (n,) and epsilons of a token (n,) of n texts: one budget for each data set.

    At a level every perturbed token gets its epsilon, however long its text is: a budget that is
    the same for all texts would be spread over more tokens in long ones, and of those an adversary
    would name less than the level says. The budget of a data set is there what its longest text
    spends.

    Args:
        epsilon: base epsilon, or a level with the epsilon that was found for it.
    """
    budget, per_token = np.zeros(len(dataset)), np.zeros(len(dataset))
    for name in np.unique(dataset):
        of_dataset = dataset == name
        n_perturbed, n_words = counts.n_perturbed[of_dataset], counts.n_perturbed_words[of_dataset]
        if isinstance(epsilon, Level):
            assert epsilon.epsilon is not None
            budget[of_dataset] = epsilon.epsilon * n_perturbed.max(initial=0)
            per_token[of_dataset] = np.where(n_perturbed > 0, epsilon.epsilon, 0.0)
        else:
            budget[of_dataset] = document_budget(epsilon, counts.n_words[of_dataset])
            per_token[of_dataset] = epsilon_per_token(
                strategy, budget[of_dataset].max(initial=0.0), n_perturbed, n_words
            )
    return budget, per_token
