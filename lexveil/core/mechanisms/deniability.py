"""Plausible deniability statistics of a mechanism: N_w, the number of draws that return the word
itself, and S_w, the number of distinct words among the draws.

Source: Feyisetan et al. (2020); Diffractor Figure 4 draws 100 times from each of 100 words.
"""

from __future__ import annotations

import numpy as np

from lexveil.base.types import Floats, Ids
from lexveil.core.mechanisms.base import Mechanism

SAMPLED_WORDS = 100
DRAWS_OF_A_WORD = 100
WORDS_AT_A_TIME = 64  # words per block
DISTRIBUTIONS_AT_A_TIME = (
    8  # distributions per block: a few arrays of 8 x W float64, 6 MB each if W is 100,000
)


def choose_words(n_words: int, size: int, rng: np.random.Generator) -> Ids:
    """Choose ``size`` different word ids at random among ``n_words``, in ascending order; return
    all ids if there are no more than ``size``.
    """
    return np.sort(rng.choice(n_words, size=min(size, n_words), replace=False)).astype(np.int64)


def draw_replacements(
    mechanism: Mechanism, ids: Ids, epsilon: float, n_draws: int, rng: np.random.Generator
) -> Ids:
    """Draw ``n_draws`` replacements for each of n word ids, shape (n, n_draws).

    Raises:
        ParameterError: if the mechanism refuses epsilon.
    """
    drawn = np.empty((len(ids), n_draws), dtype=np.int64)
    for start in range(0, len(ids), WORDS_AT_A_TIME):
        block = np.repeat(ids[start : start + WORDS_AT_A_TIME], n_draws)
        budgets = np.full(len(block), epsilon)
        replaced = mechanism.replace(block, budgets, mechanism.noise(budgets, rng))
        drawn[start : start + WORDS_AT_A_TIME] = replaced.reshape(-1, n_draws)
    return drawn


def unchanged_counts(ids: Ids, drawn: Ids) -> Ids:
    """Return N_w for each word: how many of its draws are the word itself, shape (n,)."""
    return np.asarray((drawn == ids[:, None]).sum(axis=1), dtype=np.int64)


def distinct_counts(drawn: Ids) -> Ids:
    """Return S_w for each word: the number of distinct words among its draws, shape (n,)."""
    ordered = np.sort(drawn, axis=1)
    return np.asarray(
        (np.diff(ordered, axis=1) > 0).sum(axis=1) + min(1, drawn.shape[1]), dtype=np.int64
    )


def expectations(
    mechanism: Mechanism, ids: Ids, epsilon: float, n_draws: int
) -> tuple[Floats, Floats]:
    """Return, for each of n words, two expectations, shape (n,) each: the share of draws that
    return the word itself, Pr[M(w) = w]; and S_w, the number of distinct words among ``n_draws``
    draws, which is the sum of 1 - (1 - p_y)^n_draws over all words y.
    """
    unchanged = np.empty(len(ids))
    distinct = np.empty(len(ids))
    for start in range(0, len(ids), DISTRIBUTIONS_AT_A_TIME):
        block = ids[start : start + DISTRIBUTIONS_AT_A_TIME]
        chance = np.minimum(np.exp(mechanism.log_pmf(block, np.full(len(block), epsilon))), 1.0)
        unchanged[start : start + DISTRIBUTIONS_AT_A_TIME] = chance[np.arange(len(block)), block]
        # an output of probability 1 gives log1p(-1) = -inf and is counted once
        with np.errstate(divide="ignore"):
            distinct[start : start + DISTRIBUTIONS_AT_A_TIME] = -np.expm1(
                n_draws * np.log1p(-chance)
            ).sum(axis=1)
    return unchanged, distinct


def statistics(
    mechanism: Mechanism,
    ids: Ids,
    epsilon: float,
    rng: np.random.Generator,
    n_draws: int = DRAWS_OF_A_WORD,
) -> dict[str, object]:
    """Measure the plausible deniability of some words: draw N_w and S_w (see the module), and
    compute their expectations if the distribution has a closed form.

    Returns:
        One row of a table by mechanism and epsilon, as JSON values: mean and quartiles over the
        words, of N_w, of S_w and of their expectations (None without a closed form).

    Raises:
        ParameterError: if the mechanism refuses epsilon.
    """
    drawn = draw_replacements(mechanism, ids, epsilon, n_draws, rng)
    columns: dict[str, Floats | Ids | None] = {
        "n_w": unchanged_counts(ids, drawn),
        "s_w": distinct_counts(drawn),
        "n_w_exact": None,
        "s_w_expected": None,
    }
    if mechanism.has_closed_form():
        unchanged, columns["s_w_expected"] = expectations(mechanism, ids, epsilon, n_draws)
        columns["n_w_exact"] = unchanged * n_draws
    row = {"mechanism": mechanism.name, "epsilon": epsilon, "n_words": len(ids), "n_draws": n_draws}
    return row | {
        name: None if values is None else _summary(values) for name, values in columns.items()
    }


def _summary(values: Floats | Ids) -> dict[str, float] | None:
    if not len(values):
        return None
    low, middle, high = np.percentile(values, [25, 50, 75])
    numbers = {"mean": values.mean(), "q25": low, "median": middle, "q75": high}
    return {key: round(float(value), 9) for key, value in numbers.items()}
