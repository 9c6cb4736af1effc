"""What every mechanism refuses."""

from __future__ import annotations

import numpy as np

from lexveil.errors import ParameterError
from lexveil.types import Floats


def check_epsilon(epsilon: Floats) -> None:
    """Raise ParameterError unless every epsilon is finite and greater than 0."""
    if not (np.isfinite(epsilon).all() and (epsilon > 0).all()):
        raise ParameterError("every epsilon of a perturbed token must be finite and greater than 0")


def check_range(name: str, value: float, low: float, high: float, *, open_ends: bool = False) -> None:
    """Raise ParameterError unless a parameter lies between its limits, which are allowed values if not open."""
    if not (low < value < high if open_ends else low <= value <= high):
        between = "lie strictly between" if open_ends else "lie between"
        raise ParameterError(f"{name} is {value}; it must {between} {low:g} and {high:g}")
