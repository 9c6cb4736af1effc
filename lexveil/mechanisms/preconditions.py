"""Preconditions shared by the mechanisms."""

from __future__ import annotations

import numpy as np

from lexveil.errors import ParameterError
from lexveil.types import Floats


def check_epsilon(epsilon: Floats) -> None:
    """Raise ParameterError unless every epsilon is finite and greater than 0."""
    if not (np.isfinite(epsilon).all() and (epsilon > 0).all()):
        raise ParameterError("every epsilon of a perturbed token must be finite and greater than 0")
