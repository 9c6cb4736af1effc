"""Mechanisms over a list of words: their rows of ε, their trade-offs, and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lexveil.artifacts.mechanisms import build_over
from lexveil.config import MechanismParams
from lexveil.errors import ParameterError, RequestError
from lexveil.evaluation.inference_error import Sampling, Tradeoff, measure, measure_together, select
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.registry import Kernel
from lexveil.types import Ids, Vectors

STEPS = 4  # ε in a row that is looked for
FEWEST, MOST = 2.0**-20, 2.0**20  # ε that are looked at


@dataclass(frozen=True, slots=True)
class Candidate:
    """A mechanism over the words. ``t``: 0 for madlib, None for a mechanism that has none."""

    mechanism: str
    t: float | None
    kernel: Kernel

    @property
    def label(self) -> str:
        """What a legend says."""
        return self.mechanism if self.t is None or self.mechanism == "madlib" else f"{self.mechanism} t = {self.t:g}"


def families(
    names: Sequence[str], ts: Sequence[float], vectors: Vectors, params: MechanismParams
) -> dict[str, list[Candidate]]:
    """Candidates by the mechanism that is tuned, t rising; those of one mechanism share a row of ε, and noise.

    Vickrey begins with t = 0, which is madlib and stands for it, unless the input is left out of the candidates.
    """
    made: dict[str, list[Candidate]] = {}
    whole = "vickrey" in names and not params.vickrey.exclude_input
    for name in names:
        if name == "vickrey":
            made[name] = []
            for t in sorted({0.0, *ts}):
                own = params.model_copy(update={"vickrey": params.vickrey.model_copy(update={"t": t, "k": 2})})
                shown_as = "madlib" if whole and t == 0 else name
                made[name].append(Candidate(shown_as, t, build_over(name, vectors, own)))
        elif not (name == "madlib" and whole):
            made[name] = [Candidate(name, 0.0 if name == "madlib" else None, build_over(name, vectors, params))]
    return made


def row_of_epsilons(kernel: Kernel, labels: Ids, max_loss: float, rng: np.random.Generator) -> list[float]:
    """STEPS doubling ε of which the last but one is the first that keeps the loss, as far as few draws can tell.

    Those that the mechanism refuses are left out.

    Raises:
        RequestError: if the loss is kept by none, or by all.
    """

    def loss(epsilon: float) -> float:
        # Two draws of each word: a standard error of at most 0.5/√(2W), half a percent of 5,000 words.
        return measure(kernel, epsilon, labels, rng, n_draws=2, n_runs=1).utility_loss

    epsilon, least = 1.0, math.inf
    while epsilon > FEWEST and _accepts(kernel, epsilon) and loss(epsilon) < max_loss:
        epsilon /= 2
    while epsilon < MOST:
        if _accepts(kernel, epsilon):
            least = min(least, loss(epsilon))
            if least < max_loss:
                break
        epsilon *= 2
    if not FEWEST < epsilon < MOST:
        raise RequestError(
            f"{kernel.name}: no epsilon from {FEWEST:g} to {MOST:g} has a utility loss below {max_loss:g} that a "
            f"smaller one has not; the smallest found was {least:g}; allow another loss, or say which --epsilons to try"
        )
    row = [epsilon * 2.0 ** (step - STEPS + 2) for step in range(STEPS)]
    return [one for one in row if _accepts(kernel, one)]


def _accepts(kernel: Kernel, epsilon: float) -> bool:
    try:
        kernel.noise(np.full(1, epsilon), stream(0, "tune", "does it accept"))
    except ParameterError:
        return False
    return True


Row = tuple[Candidate, Tradeoff]


def measure_all(
    made: dict[str, list[Candidate]],
    row_of: dict[str, list[float]],
    labels: Ids,
    seed: int,
    sampling: Sampling,
    advance: Callable[[int], None],
) -> dict[str, list[Row]]:
    """The trade-off of every candidate at every ε of its row, by the mechanism that is tuned, in that order.

    Args:
        advance: is told of each finished run.
    """
    found: dict[str, list[Row]] = {}
    for name, family in made.items():
        kernels = [candidate.kernel for candidate in family]
        found[name] = []
        for epsilon in row_of[name]:
            rng = stream(seed, "tune", name, repr(epsilon))
            done = measure_together(kernels, epsilon, labels, rng, None, sampling, advance)
            found[name] += zip(family, done, strict=True)
    return found


def rows_of(name: str, found: dict[str, list[Row]]) -> list[Row]:
    """The rows of a mechanism; those of madlib may stand in vickrey's."""
    return found[name] if name in found else [row for row in found["vickrey"] if row[0].mechanism == name]


def choose(rows: Sequence[Row], max_loss: float) -> tuple[Row | None, str | None]:
    """What Algorithm 2 chooses of one mechanism's rows, and if it is nothing, why."""
    by_t = {(row.t or 0.0, tradeoff.epsilon): (row, tradeoff) for row, tradeoff in rows}
    epsilons = sorted({epsilon for _, epsilon in by_t})
    grid = sorted({t for t, _ in by_t} - {0.0})
    try:
        selected = select(lambda t, epsilon: by_t[t, epsilon][1], max_loss, epsilons, grid)
    except RequestError as error:
        return None, str(error)
    return by_t[selected.t, selected.chosen.epsilon], None


def of_largest_error(rows: Sequence[Row], max_loss: float) -> Row | None:
    """The row of largest inference error among those that keep the loss, whatever its ε; None if none keeps it.

    Algorithm 2 does not look beyond the smallest ε that keeps the loss at t = 0, where another t may do better.
    """
    keeping = [row for row in rows if row[1].utility_loss <= max_loss]
    return max(keeping, key=lambda row: row[1].inference_error, default=None)
