"""Choice of the unigram adversary for a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lexveil.base.types import Floats, Vectors
from lexveil.core.mechanisms.base import Mechanism
from lexveil.readers.adversary import Adversary
from lexveil.readers.estimate import EstimatedAdversary
from lexveil.readers.lists import ListsAdversary
from lexveil.readers.tem import TemAdversary
from lexveil.readers.tem_context import CausalContextAdversary, TemContextAdversary

# Adversary class by ``law``, the name of a distribution's form; all take mechanism, prior and
# range.
ADVERSARIES: dict[str, Callable[[Any, Floats, tuple[float, float]], Adversary]] = {
    "tem": TemAdversary,
    "tem_context": TemContextAdversary,
    "tem_context by a language model": CausalContextAdversary,
    "lists": ListsAdversary,
}


def build_adversary(
    mechanism: Mechanism,
    prior: Floats,
    epsilon_range: tuple[float, float],
    near: Callable[[], Vectors] | None = None,
) -> Adversary:
    """Build the unigram adversary of any registered mechanism, with or without rank remapping.

    Sums over all pairs of words are estimated from some of the pairs
    (docs/explanation/recovery.md).

    Args:
        prior: (V,) probability of each word, greater than 0, adding up to 1.
        epsilon_range: the smallest and largest token budget that the adversary must decode.
        near: function that returns ``estimate.near_of(mechanism)``, for callers that build several
            adversaries of a mechanism.

    Raises:
        ParameterError: if the range is empty, or the mechanism refuses an epsilon of the range or
            has no vectors.
    """
    by_closed_form = ADVERSARIES.get(mechanism.law)
    if by_closed_form is None:
        return EstimatedAdversary(mechanism, prior, epsilon_range, near)
    return by_closed_form(mechanism, prior, epsilon_range)
