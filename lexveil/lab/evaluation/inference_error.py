"""Adversary's inference error and utility loss of a mechanism, measured on a list of labelled
words.

Source: Xu et al. (2021b, Vickrey), section 3, equations 2 to 5. The adversary knows the mechanism
M, its ε and the prior π of the words, sees an output w′ and draws its guess ŵ from the posterior
g(ŵ | w′) ∝ π(ŵ)·Pr[M(ŵ) = w′]. Its inference error is the probability that ŵ ≠ w:

    E = 1 - Σ_{w′} Σ_w π(w)²·Pr[M(w) = w′]² / Σ_w π(w)·Pr[M(w) = w′],
    L = Pr[label of w′ ≠ label of w].

(The printed equation 3 has Pr[M(w′) = ŵ] in its numerator, which is not a posterior.) The
vocabulary of the mechanism is the list itself, so that every output has a label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lexveil.base.types import Floats, Ids
from lexveil.core.mechanisms.deniability import draw_replacements
from lexveil.core.mechanisms.registry import Mechanism

WORDS_AT_A_TIME = 256  # number of words whose distributions are in memory at a time


class Tradeoff(NamedTuple):
    """Inference error E and utility loss L of a mechanism."""

    inference_error: float
    utility_loss: float


def measure(
    mechanism: Mechanism,
    epsilon: float,
    labels: Ids,
    prior: Floats,
    rng: np.random.Generator,
    n_draws: int = 100,
) -> Tradeoff:
    """Compute inference error E and utility loss L of a mechanism, exactly if its output
    distribution has a closed form, else estimated from random draws.

    Figures 2 and 3 of the source are means of 100 runs.

    Args:
        mechanism: a mechanism over exactly the W words of the list.
        epsilon: epsilon of every word, in 1 / units of the mechanism's metric.
        labels, prior: (W,) label of each word, and its probability; the probabilities add up to 1.
        n_draws: number of random replacements of each word, at least 2.

    Raises:
        ParameterError: if the mechanism refuses epsilon.
    """
    words = np.arange(len(prior))
    if not mechanism.has_closed_form():
        return of_draws(draw_replacements(mechanism, words, epsilon, n_draws, rng), labels, prior)
    seen = np.zeros(len(prior))
    guessed = np.zeros(len(prior))
    loss = 0.0
    for start in range(0, len(prior), WORDS_AT_A_TIME):
        ids = words[start : start + WORDS_AT_A_TIME]
        joint = prior[ids, None] * np.exp(mechanism.log_pmf(ids, np.full(len(ids), epsilon)))
        seen += joint.sum(axis=0)
        guessed += np.square(joint).sum(axis=0)
        loss += float(joint[labels[ids, None] != labels].sum())
    occurs = seen > 0
    return Tradeoff(float(1 - (guessed[occurs] / seen[occurs]).sum()), loss)


def of_draws(drawn: Ids, labels: Ids, prior: Floats) -> Tradeoff:
    """Estimate inference error E and utility loss L from random replacements of each of W words,
    ``drawn`` (W, n_draws), at least 2 replacements of each.

    The adversary guesses the word behind each draw, and knows the distribution from all other
    draws. If the adversary also used the guessed draw itself, an output that occurred once would
    reveal its word, and the estimated error would be far too small (0.76 instead of 0.91 with 100
    draws of TEM on 4,837 words). An output that no other draw has counts as guessed. The remaining
    bias shrinks with n_draws, and may have either sign.
    """
    n_words, n_draws = drawn.shape
    loss = float(prior @ (labels[drawn] != labels[:, None]).mean(axis=1))
    pairs, count = np.unique(drawn * n_words + np.arange(n_words)[:, None], return_counts=True)
    output, word = np.divmod(pairs, n_words)
    joint = prior[word] * count / n_draws
    same = prior[word] * (count - 1) / (n_draws - 1)
    # If no other word has this output, the difference of sums would leave a rounding error.
    n_words_behind = np.bincount(output[joint > 0], minlength=n_words)[output]
    others = np.where(n_words_behind > 1, np.bincount(output, joint, n_words)[output] - joint, 0.0)
    seen = same + others
    guessed = np.divide(same, seen, out=np.ones(len(seen)), where=seen > 0)
    return Tradeoff(float(1 - joint @ guessed), loss)
