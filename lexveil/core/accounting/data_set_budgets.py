"""Privacy budgets for the texts of whole data sets, as experiments use them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Floats, Ids
from lexveil.core.accounting.budgets import divisors, document_budget, epsilon_per_token


class TokenCounts(NamedTuple):
    """Token counts of n texts, each of shape (n,), from which the texts' budgets are computed.
    ``n_word_parts`` counts the words by which strategies S1 and S2 divide a budget.
    """

    n_words: Ids
    n_tokens: Ids
    n_perturbed: Ids
    n_word_parts: Ids


class TextBudgets(NamedTuple):
    """Privacy budgets of n texts, each of shape (n,): the budget B, its divisor, and the epsilon
    of a token.
    """

    budget: Floats
    divisor: Ids
    epsilon_per_token: Floats


def divided(
    counts: TokenCounts, dataset: npt.NDArray[np.str_], strategy: str, base_epsilon: float
) -> TextBudgets:
    """Return each text's budget, divided among its tokens. All texts of a data set have the same
    budget: the base epsilon times the average words per text of the data set.
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

    The budget of a data set is the ε that its longest text spends. Protection levels, which limit
    the share of words that an adversary recovers, use these budgets: a budget that is the same for
    all texts would be divided among more tokens in long texts, so an adversary would recover fewer
    tokens there than the level states.
    """
    budget = np.zeros(len(dataset))
    for name in np.unique(dataset):
        own = dataset == name
        budget[own] = epsilon * counts.n_perturbed[own].max(initial=0)
    per_token = np.where(counts.n_perturbed > 0, epsilon, 0.0)
    return TextBudgets(budget, counts.n_perturbed, per_token)
