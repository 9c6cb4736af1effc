"""Inference error against utility loss of a mechanism on a list of labelled words, and the choice of ε and t by it.

Source: Xu et al. (2021b, Vickrey), section 3, equations 2 to 5 and Algorithm 2; the word lists of section 4.

The adversary knows the mechanism M, its ε and the prior π of the words, sees an output w′ and draws its guess ŵ from
the posterior g(ŵ | w′) ∝ π(ŵ)·Pr[M(ŵ) = w′]. Its inference error is the probability that ŵ ≠ w:

    E = 1 - Σ_{w′} Σ_w π(w)²·Pr[M(w) = w′]² / Σ_w π(w)·Pr[M(w) = w′],    L = Pr[label of w′ ≠ label of w].

(The printed equation 3 has Pr[M(w′) = ŵ] in its numerator, which is not a posterior.) The vocabulary of the mechanism
is the list itself, so that every output has a label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lexveil.errors import ParameterError, RequestError
from lexveil.mechanisms.deniability import BLOCK, LAWS, draw_replacements
from lexveil.mechanisms.registry import ClosedForm, Kernel
from lexveil.mechanisms.vickrey import Vickrey
from lexveil.types import Floats, Ids, Vectors

DRAWS = 100  # of each word in a run
RUNS = 100  # Figures 2 and 3
GRID = tuple(step / 20 for step in range(1, 21))  # t in Algorithm 2


@dataclass(frozen=True, slots=True)
class Sampling:
    """How often a mechanism without a closed form is drawn from: ``n_draws`` of each word in each of ``n_runs``."""

    n_draws: int = DRAWS
    n_runs: int = RUNS


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """A mechanism at one epsilon.

    Attributes:
        epsilon: in 1 / units of the mechanism's metric.
        inference_error: E, mean of the runs.
        utility_loss: L, mean of the runs.
        inference_error_sd: standard deviation over runs (n - 1); 0 where the distribution is known, NaN of one run.
        utility_loss_sd: as that.
        n_runs: 0 where the distribution is known and nothing was drawn.
    """

    epsilon: float
    inference_error: float
    utility_loss: float
    inference_error_sd: float
    utility_loss_sd: float
    n_runs: int


def exact(mechanism: ClosedForm, epsilon: float, labels: Ids, prior: Floats) -> tuple[float, float]:
    """E and L from the distribution of the mechanism; ``labels`` and ``prior`` (W,) as for ``measure``."""
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
    """E and L from ``n_draws`` of each word, at least 2; ``labels`` and ``prior`` (W,) as for ``measure``."""
    return of_draws(draw_replacements(mechanism, np.arange(len(prior)), epsilon, n_draws, rng), labels, prior)


def of_draws(drawn: Ids, labels: Ids, prior: Floats) -> tuple[float, float]:
    """E and L from replacements of each of W words, ``drawn`` (W, n_draws), at least 2 draws.

    The adversary guesses each draw, and knows the distribution from all others. If it knew it from the very draw it
    guesses, an output that came up once would give its word away, and the error come out far too small (0.76 for
    0.91 with 100 draws of TEM on 4,837 words). An output that no other draw led to counts as guessed. What is left of
    the bias shrinks with n_draws, and has either sign.
    """
    n_words, n_draws = drawn.shape
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
    """E and L of a mechanism: computed where its distribution has a closed form, else drawn.

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
    return measure_together([mechanism], epsilon, labels, rng, prior, Sampling(n_draws, n_runs))[0]


def measure_together(
    mechanisms: Sequence[Kernel],
    epsilon: float,
    labels: Ids,
    rng: np.random.Generator,
    prior: Floats | None = None,
    sampling: Sampling | None = None,
    advance: Callable[[int], None] | None = None,
) -> list[Tradeoff]:
    """What ``measure`` says of each of several mechanisms over the same words.

    Vickrey mechanisms over the same vectors that differ in t alone choose among the same candidates of the same noise,
    which costs what one of them costs. Each still has its own distribution, so each trade-off is as from draws of its
    own; only their errors go the same way, which makes t easier to compare.

    Args:
        advance: is told of each finished run.

    Other arguments and errors are those of ``measure``.
    """
    sampling = sampling or Sampling()
    n_draws, n_runs = sampling.n_draws, sampling.n_runs
    sizes = {mechanism.size for mechanism in mechanisms}
    n_words = len(labels)
    prior = np.full(n_words, 1 / n_words) if prior is None else prior
    if not sizes <= {n_words} or len(prior) != n_words:
        names = ", ".join(sorted({mechanism.name for mechanism in mechanisms}))
        raise ParameterError(
            f"mechanism {names} holds {min(sizes):,} words, and there are {n_words:,} labels and "
            f"{len(prior):,} prior probabilities; build it over the labelled words alone"
        )
    if not ((prior >= 0).all() and np.isclose(prior.sum(), 1)):
        raise ParameterError(f"the prior of words adds up to {prior.sum():g}; it must be at least 0 and add up to 1")
    if n_draws < 2 or n_runs < 1:
        raise ParameterError(f"{n_runs} runs of {n_draws} draws measure nothing; take at least 1 run of 2 draws")
    known = {
        place: Tradeoff(epsilon, *exact(mechanism, epsilon, labels, prior), 0.0, 0.0, 0)
        for place, mechanism in enumerate(mechanisms)
        if isinstance(mechanism, ClosedForm)
    }
    unknown = [mechanism for place, mechanism in enumerate(mechanisms) if place not in known]
    runs = np.empty((len(unknown), n_runs, 2))
    for run in range(n_runs if unknown else 0):
        for place, drawn in enumerate(_draw_each(unknown, epsilon, n_draws, rng)):
            runs[place, run] = of_draws(drawn, labels, prior)
        if advance is not None:
            advance(1)
    drawn_ones = (_of_runs(epsilon, one) for one in runs)
    return [known[place] if place in known else next(drawn_ones) for place in range(len(mechanisms))]


def _same_memory(one: Vectors, other: Vectors) -> bool:
    """Whether two arrays are views of the same numbers; each mechanism has a view of its own."""
    return one.ctypes.data == other.ctypes.data and one.shape == other.shape and one.strides == other.strides


def _draw_each(
    mechanisms: Sequence[Kernel], epsilon: float, n_draws: int, rng: np.random.Generator
) -> Iterator[Ids] | list[Ids]:
    """Replacements (W, n_draws) of every word by each mechanism; of one noise where that can be."""
    ids = np.arange(mechanisms[0].size)
    family = [mechanism for mechanism in mechanisms if isinstance(mechanism, Vickrey)]
    first = family[0] if family else None
    if (
        first is None
        or len(family) < len(mechanisms)
        or any(
            not _same_memory(candidate.vectors, first.vectors)
            or (candidate.k, candidate.exclude_input) != (first.k, first.exclude_input)
            for candidate in family
        )
    ):
        return (draw_replacements(mechanism, ids, epsilon, n_draws, rng) for mechanism in mechanisms)
    drawn = np.empty((len(family), len(ids), n_draws), dtype=np.int64)
    for start in range(0, len(ids), BLOCK):
        block = np.repeat(ids[start : start + BLOCK], n_draws)
        noise = first.noise(np.full(len(block), epsilon), rng)
        near, distances = first.candidates(block, noise[:, :-1])
        for place, member in enumerate(family):
            chosen = member.choose(block, near, distances, noise[:, -1])
            drawn[place, start : start + BLOCK] = chosen.reshape(-1, n_draws)
    return list(drawn)


def _of_runs(epsilon: float, runs: Floats) -> Tradeoff:
    """Mean and deviation of E and L over runs, (n_runs, 2)."""
    error, loss = runs.mean(axis=0).tolist()
    error_sd, loss_sd = runs.std(axis=0, ddof=1).tolist() if len(runs) > 1 else (float("nan"),) * 2
    return Tradeoff(epsilon, error, loss, error_sd, loss_sd, len(runs))


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


def doubling(first: float, last: float = 1e6) -> Iterator[float]:
    """ε₀, 2ε₀, 4ε₀, … up to ``last``: the row that Algorithm 2 tries.

    Raises:
        ParameterError: if the first is not greater than 0 or above the last.
    """
    if not 0 < first <= last:
        raise ParameterError(f"the first epsilon is {first}; it must be greater than 0 and at most {last:g}")
    while first <= last:
        yield first
        first *= 2


def select(
    measured: Callable[[float, float], Tradeoff],
    max_loss: float,
    epsilons: Iterable[float],
    grid: Sequence[float] = GRID,
) -> Selection:
    """Algorithm 2: the smallest ε of a rising row that keeps the loss at t = 0, then the t of largest error there.

    ε rises until the loss at t = 0 is below ``max_loss``. At that ε, of t = 0 and the t of ``grid`` that keep the
    loss, the one with the largest inference error is chosen; of equals the first. It asks for a loss that falls as ε
    grows; the t are all tried, for the error need not change in one direction.

    Args:
        measured: (t, ε) to the trade-off.
        max_loss: C, greater than 0.
        epsilons: rising; the paper's are ``doubling(ε₀)``. Begin small, for no smaller one is tried.
        grid: the t to try besides 0; none for a mechanism without a t.

    Raises:
        ParameterError: if the largest loss is not greater than 0.
        RequestError: if no ε keeps the loss.
    """
    if not max_loss > 0:
        raise ParameterError(f"the largest utility loss is {max_loss}; it must be greater than 0")
    tried: list[tuple[float, Tradeoff]] = []
    for epsilon in epsilons:
        best = (0.0, measured(0.0, epsilon))
        tried.append(best)
        if best[1].utility_loss < max_loss:
            break
    else:
        losses = [tradeoff.utility_loss for _, tradeoff in tried]
        between = f" from {tried[0][1].epsilon:g} to {tried[-1][1].epsilon:g}" if tried else ""
        raise RequestError(
            f"no epsilon{between} keeps the utility loss below {max_loss:g}; the smallest loss was "
            f"{min(losses, default=float('nan')):g}; allow a larger one, or larger epsilons"
        )
    for t in grid:
        tried.append((t, measured(t, epsilon)))
        if tried[-1][1].utility_loss <= max_loss and tried[-1][1].inference_error > best[1].inference_error:
            best = tried[-1]
    return Selection(*best, tuple(tried))
