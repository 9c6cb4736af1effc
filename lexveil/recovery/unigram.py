"""Choice of the unigram adversary for a mechanism."""

from __future__ import annotations

from collections.abc import Callable

from lexveil.mechanisms.base import Mechanism
from lexveil.mechanisms.base_measure import BaseMeasure
from lexveil.mechanisms.tem import Tem
from lexveil.mechanisms.tem_context import TemContext
from lexveil.mechanisms.word_lists import OnLists
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.estimate import EstimatedAdversary
from lexveil.recovery.lists import ListsAdversary
from lexveil.recovery.tem import TemAdversary
from lexveil.recovery.tem_context import CausalContextAdversary, TemContextAdversary
from lexveil.types import Floats, Vectors


def build_adversary(
    mechanism: Mechanism,
    prior: Floats,
    epsilon_range: tuple[float, float],
    near: Callable[[], Vectors] | None = None,
) -> Adversary:
    """Build the unigram adversary of any registered mechanism, with rank remapping or without.

    Sums over all pairs of words are estimated from some of them (docs/explanation/recovery.md).

    Args:
        prior: (V,) probability of each word, greater than 0, adding up to 1.
        epsilon_range: the smallest and largest budget of a token that the adversary must decode.
        near: returns ``estimate.near_of(mechanism)``, for callers that build several adversaries of
            a mechanism.

    Raises:
        ParameterError: if the range is empty, the mechanism refuses an epsilon of it, or it has no
            vectors.
    """
    if isinstance(mechanism, TemContext):
        of_bigrams = isinstance(mechanism.mass, BaseMeasure)
        return (TemContextAdversary if of_bigrams else CausalContextAdversary)(
            mechanism, prior, epsilon_range
        )
    if isinstance(mechanism, Tem):
        return TemAdversary(mechanism, prior, epsilon_range)
    if isinstance(mechanism, OnLists):
        return ListsAdversary(mechanism, prior)
    return EstimatedAdversary(mechanism, prior, epsilon_range, near)
