"""Budgets of the texts of whole data sets, as the runs of the grid spend them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.accounting.budgets import divisors, document_budget, epsilon_per_token
from lexveil.types import Floats, Ids


class TokenCounts(NamedTuple):
    """Counts that the budgets of n texts follow from, (n,) each; the last: words by which S1 and S2
    divide.
    """

    n_words: Ids
    n_tokens: Ids
    n_perturbed: Ids
    n_word_parts: Ids


class TextBudgets(NamedTuple):
    """Budgets of n texts, (n,) each: B, what it is divided by, and the epsilon of a token."""

    budget: Floats
    divisor: Ids
    epsilon_per_token: Floats


def divided(
    counts: TokenCounts, dataset: npt.NDArray[np.str_], strategy: str, base_epsilon: float
) -> TextBudgets:
    """Budgets that are the same for all texts of a data set, base epsilon times its words per text,
    and are divided among the tokens of each.
    """
    budget, per_token = np.zeros(len(dataset)), np.zeros(len(dataset))
    for name in np.unique(dataset):
        own = dataset == name
        total = document_budget(base_epsilon, counts.n_words[own])
        budget[own] = total
        per_token[own] = epsilon_per_token(
            strategy, total, counts.n_perturbed[own], counts.n_word_parts[own]
        )
    divisor = divisors(strategy, counts.n_perturbed, counts.n_word_parts)
    return TextBudgets(budget, divisor, per_token)


def of_every_token(
    counts: TokenCounts, dataset: npt.NDArray[np.str_], epsilon: float
) -> TextBudgets:
    """Budgets where every perturbed token gets an epsilon, however long its text is.

    The budget of a data set is what its longest text spends. So it is at a level of recovery: a
    budget that is the same for all texts would be divided among more tokens in long ones, and of
    those an adversary would name less than the level says.
    """
    budget = np.zeros(len(dataset))
    for name in np.unique(dataset):
        own = dataset == name
        budget[own] = epsilon * counts.n_perturbed[own].max(initial=0)
    per_token = np.where(counts.n_perturbed > 0, epsilon, 0.0)
    return TextBudgets(budget, counts.n_perturbed, per_token)
