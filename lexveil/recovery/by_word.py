"""The adversary by the word of any mechanism."""

from __future__ import annotations

from collections.abc import Sequence

from lexveil.mechanisms.base import Kernel
from lexveil.mechanisms.tem import Tem
from lexveil.mechanisms.word_lists import OnLists
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.estimate import EstimatedAdversary, Lists, Quick
from lexveil.recovery.lists import ListsAdversary
from lexveil.recovery.tem import TemAdversary
from lexveil.types import Floats


def build_adversary(
    mechanism: Kernel,
    prior: Floats,
    epsilon_range: tuple[float, float],
    at: Sequence[float] = (),
    *,
    quick: Quick | None = None,
    lists: Lists | None = None,
) -> Adversary:
    """The reader who knows the mechanism and how frequent words are.

    Args:
        mechanism: any one that is registered, with rank remapping or without.
        prior: (V,) how likely each word is, greater than 0, adding up to 1.
        epsilon_range: the smallest and largest budget of a token that it is asked about.
        at: budgets within that are not to be interpolated.
        quick: about as good a reader in a fraction of the time, for what is expected of some thousand public words:
            what is summed over all pairs of words is estimated from some of them (docs/explanation/recovery.md).
            What it keeps serves the next reader of the same mechanism.
        lists: opens lists of near words of the mechanism's vectors; who needs some that are not there makes them.

    Raises:
        ParameterError: if the range is empty, the mechanism refuses an epsilon of it, or it has no vectors.
    """
    if isinstance(mechanism, Tem):
        return TemAdversary(mechanism, prior, epsilon_range, at, quick=quick is not None)
    if isinstance(mechanism, OnLists):
        return ListsAdversary(mechanism, prior)
    return EstimatedAdversary(mechanism, prior, epsilon_range, at, quick=quick, lists=lists)
