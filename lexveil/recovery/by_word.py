"""The adversary by the word of any mechanism."""

from __future__ import annotations

from lexveil.errors import ParameterError
from lexveil.mechanisms.base import ClosedForm, Kernel
from lexveil.recovery.adversary import Adversary, TableAdversary
from lexveil.types import Floats


def build_adversary(mechanism: Kernel, prior: Floats, epsilon_range: tuple[float, float]) -> Adversary:  # noqa: ARG001
    """The reader who knows the mechanism and how frequent words are.

    Args:
        mechanism: any one that is registered, with rank remapping or without.
        prior: (V,) how likely each word is, greater than 0, adding up to 1.
        epsilon_range: the smallest and largest budget of a token that it is asked about.

    Raises:
        ParameterError: if the mechanism has no closed form.
    """
    if isinstance(mechanism, ClosedForm):
        return TableAdversary(mechanism, prior)
    raise ParameterError(f"{mechanism.name} has no closed form")
