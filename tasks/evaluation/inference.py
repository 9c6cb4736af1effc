"""Inference error against utility loss of a mechanism on a list of labelled words, and the choice of ε and t by it.

Source: Xu et al. (2021b, Vickrey), section 3, equations 2 to 5 and Algorithm 2; the word lists of section 4.

The adversary knows the mechanism M, its ε and the prior π of the words, sees an output w′ and draws its guess ŵ from
the posterior g(ŵ | w′) ∝ π(ŵ)·Pr[M(ŵ) = w′]. Its inference error is the probability that ŵ ≠ w:

    E = 1 - Σ_{w′} Σ_w π(w)²·Pr[M(w) = w′]² / Σ_w π(w)·Pr[M(w) = w′],    L = Pr[label of w′ ≠ label of w].

(The printed equation 3 has Pr[M(w′) = ŵ] in its numerator, which is not a posterior.) The vocabulary of the mechanism
is the list itself, so that every output has a label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tasks.errors import ParameterError, RequestError
from tasks.privacy.mechanism import ClosedForm, Kernel
from tasks.privacy.statistics import LAWS, draw_replacements

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DRAWS = 100  # of each word in a run
RUNS = 100  # Figures 2 and 3
GRID = tuple(step / 20 for step in range(1, 21))  # t in Algorithm 2


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """A mechanism at one epsilon.

    Attributes:
        epsilon: in 1 / units of the mechanism's metric.
        inference_error: E, mean of the runs.
        utility_loss: L, mean of the runs.
        inference_error_sd: standard deviation over runs (n - 1); 0 where the law is known, NaN of one run.
        utility_loss_sd: as that.
        n_runs: 0 where the law is known and nothing was drawn.
    """

    epsilon: float
    inference_error: float
    utility_loss: float
    inference_error_sd: float
    utility_loss_sd: float
    n_runs: int


def exact(mechanism: ClosedForm, epsilon: float, labels: Ids, prior: Floats) -> tuple[float, float]:
    """E and L from the law of the mechanism; ``labels`` and ``prior`` (W,) as for ``measure``."""
    seen, guessed, loss = np.zeros(len(prior)), np.zeros(len(prior)), 0.0
    for start in range(0, len(prior), LAWS):
        ids = np.arange(start, min(start + LAWS, len(prior)))
        joint = prior[ids, None] * np.exp(mechanism.log_pmf(ids, np.full(len(ids), epsilon)))
        seen += joint.sum(axis=0)
        guessed += np.square(joint).sum(axis=0)
        loss += float(joint[labels[ids, None] != labels].sum())
    occurs = seen > 0
    return float(1 - (guessed[occurs] / seen[occurs]).sum()), loss


def sampled(
    mechanism: Kernel, epsilon: float, labels: Ids, prior: Floats, rng: np.random.Generator, n_draws: int = DRAWS
) -> tuple[float, float]:
    """E and L from ``n_draws`` of each word, at least 2; ``labels`` and ``prior`` (W,) as for ``measure``.

    The adversary is asked about each draw, and knows the law from all others. If it knew the law from the very draw it
    is asked about, an output that came up once would give its word away, and the error come out far too small (0.76 for
    0.91 with 100 draws of TEM on 4,837 words). An output that no other draw led to counts as guessed. What is left of
    the bias shrinks with n_draws, and has either sign.
    """
    n_words = len(prior)
    drawn = draw_replacements(mechanism, np.arange(n_words), epsilon, n_draws, rng)
    loss = float(prior @ (labels[drawn] != labels[:, None]).mean(axis=1))
    pairs, count = np.unique(drawn * n_words + np.arange(n_words)[:, None], return_counts=True)
    output, word = np.divmod(pairs, n_words)
    joint = prior[word] * count / n_draws
    same = prior[word] * (count - 1) / (n_draws - 1)
    # Where the others are none, the difference of sums would leave a rounding error.
    n_words_behind = np.bincount(output[joint > 0], minlength=n_words)[output]
    others = np.where(n_words_behind > 1, np.bincount(output, joint, n_words)[output] - joint, 0.0)
    seen = same + others
    guessed = np.divide(same, seen, out=np.ones(len(seen)), where=seen > 0)
    return float(1 - joint @ guessed), loss


def measure(
    mechanism: Kernel,
    epsilon: float,
    labels: Ids,
    rng: np.random.Generator,
    prior: Floats | None = None,
    n_draws: int = DRAWS,
    n_runs: int = RUNS,
) -> Tradeoff:
    """E and L of a mechanism: computed where its law has a closed form, else drawn.

    Args:
        mechanism: over the W words of the list and no others.
        epsilon: what every word gets.
        labels: (W,) label of each word.
        rng: what runs draw from.
        prior: (W,) how likely each word is, adding up to 1; uniform if None.
        n_draws: of each word in a run, at least 2.
        n_runs: at least 1.

    Raises:
        ParameterError: if the list is not the mechanism's vocabulary, the prior is none, or epsilon is refused.
    """
    n_words = mechanism.size
    prior = np.full(n_words, 1 / n_words) if prior is None else prior
    if not len(labels) == len(prior) == n_words:
        raise ParameterError(
            f"mechanism {mechanism.name} holds {n_words:,} words, and there are {len(labels):,} labels and "
            f"{len(prior):,} prior probabilities; build it over the labelled words alone"
        )
    if not ((prior >= 0).all() and np.isclose(prior.sum(), 1)):
        raise ParameterError(f"the prior of words adds up to {prior.sum():g}; it must be at least 0 and add up to 1")
    if n_draws < 2 or n_runs < 1:
        raise ParameterError(f"{n_runs} runs of {n_draws} draws measure nothing; take at least 1 run of 2 draws")
    if isinstance(mechanism, ClosedForm):
        error, loss = exact(mechanism, epsilon, labels, prior)
        return Tradeoff(epsilon, error, loss, 0.0, 0.0, 0)
    runs = np.array([sampled(mechanism, epsilon, labels, prior, rng, n_draws) for _ in range(n_runs)])
    error, loss = runs.mean(axis=0).tolist()
    error_sd, loss_sd = runs.std(axis=0, ddof=1).tolist() if n_runs > 1 else (float("nan"),) * 2
    return Tradeoff(epsilon, error, loss, error_sd, loss_sd, n_runs)


@dataclass(frozen=True, slots=True)
class Selection:
    """What Algorithm 2 chose.

    Attributes:
        t: the tuning parameter; 0 is MADLIB, and what a mechanism without one has.
        chosen: the trade-off at it.
        tried: (t, trade-off) in the order of trying, the chosen one included.
    """

    t: float
    chosen: Tradeoff
    tried: tuple[tuple[float, Tradeoff], ...]


def select(
    measured: Callable[[float, float], Tradeoff],
    max_loss: float,
    first_epsilon: float,
    grid: Sequence[float] = GRID,
    max_epsilon: float = 1e6,
) -> Selection:
    """Algorithm 2: the smallest ε of a doubling row that keeps the loss at t = 0, then the t of largest error there.

    ε is doubled until the loss at t = 0 is below ``max_loss``. At that ε, of t = 0 and the t of ``grid`` that keep the
    loss, the one with the largest inference error is chosen; of equals the first. It asks for a loss that falls as ε
    grows; the t are all tried, for the error need not change in one direction.

    Args:
        measured: (t, ε) to the trade-off.
        max_loss: C, greater than 0.
        first_epsilon: ε₀; small, for no smaller one is tried.
        grid: the t to try besides 0; none for a mechanism without a t.
        max_epsilon: where to give up.

    Raises:
        ParameterError: if a limit is not greater than 0, or the first epsilon above ``max_epsilon``.
        RequestError: if no ε up to ``max_epsilon`` keeps the loss.
    """
    if not (max_loss > 0 and 0 < first_epsilon <= max_epsilon):
        raise ParameterError(
            f"the largest utility loss is {max_loss} and the first epsilon {first_epsilon}; both must be greater than "
            f"0, and the second at most {max_epsilon:g}"
        )
    tried: list[tuple[float, Tradeoff]] = []
    epsilon = first_epsilon
    while True:
        best = (0.0, measured(0.0, epsilon))
        tried.append(best)
        if best[1].utility_loss < max_loss:
            break
        epsilon *= 2
        if epsilon > max_epsilon:
            least = min(one.utility_loss for _, one in tried)
            raise RequestError(
                f"no epsilon from {first_epsilon:g} to {max_epsilon:g} keeps the utility loss below {max_loss:g}; "
                f"the smallest loss was {least:g}; allow a larger one"
            )
    for t in grid:
        tried.append((t, measured(t, epsilon)))
        if tried[-1][1].utility_loss <= max_loss and tried[-1][1].inference_error > best[1].inference_error:
            best = tried[-1]
    return Selection(*best, tuple(tried))
