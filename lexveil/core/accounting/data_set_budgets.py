"""Budgets of the texts of whole data sets, for the runs of the experiment grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Floats, Ids
from lexveil.core.accounting.budgets import divisors, document_budget, epsilon_per_token


class TokenCounts(NamedTuple):
    """Token counts of n texts, (n,) each. The budgets of the texts are computed from them.
    ``n_word_parts`` counts the words by which S1 and S2 divide.
    """

    n_words: Ids
    n_tokens: Ids
    n_perturbed: Ids
    n_word_parts: Ids


class TextBudgets(NamedTuple):
    """Budgets of n texts, (n,) each: the budget B, its divisor, and the epsilon of a token."""

    budget: Floats
    divisor: Ids
    epsilon_per_token: Floats


def divided(
    counts: TokenCounts, dataset: npt.NDArray[np.str_], strategy: str, base_epsilon: float
) -> TextBudgets:
    """Divide the budget of each text among its tokens. The budget is the same for all texts of a
    data set: the base epsilon times the data set's words per text.
    """
    budget = np.zeros(len(dataset))
    per_token = np.zeros(len(dataset))
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
    """Return budgets under which every perturbed token gets the same epsilon, whatever the length
    of its text.

    The budget of a data set is the ε that its longest text spends. Levels of recovery use these
    budgets: a budget that is the same for all texts would be divided among more tokens in long
    texts, and an adversary would recover fewer of those tokens than the level states.
    """
    budget = np.zeros(len(dataset))
    for name in np.unique(dataset):
        own = dataset == name
        budget[own] = epsilon * counts.n_perturbed[own].max(initial=0)
    per_token = np.where(counts.n_perturbed > 0, epsilon, 0.0)
    return TextBudgets(budget, counts.n_perturbed, per_token)
