"""Units of the privacy parameter ε in the report. Each mechanism has its own distance; the unit of
ε is 1 / the unit of that distance.
"""

from __future__ import annotations

from collections.abc import Sequence

from lexveil.core.mechanisms.base import EuclideanMechanism
from lexveil.core.mechanisms.registry import MECHANISMS
from lexveil.core.mechanisms.variants import base_of
from lexveil.lab.report import formatting

EUCLIDEAN = EuclideanMechanism.metric


def unit(mechanism: str) -> str:
    """Return the unit of a mechanism's ε, for example "1 / embedding distance"."""
    return f"1 / {MECHANISMS[base_of(mechanism)].unit}"


def shared_unit(mechanisms: Sequence[str]) -> str:
    """Return the unit of ε for an axis or column that several mechanisms share; a neutral unit if
    the units of the mechanisms differ.
    """
    units = {unit(name) for name in mechanisms}
    return units.pop() if len(units) == 1 else "1 / distance of the mechanism"


def in_words(mechanisms: Sequence[str]) -> str:
    """Return a sentence about the unit of ε, which names the mechanisms of each unit if there are
    several units.
    """
    units = list(dict.fromkeys(unit(name) for name in mechanisms))
    if len(units) == 1:
        return f"ε is in {units[0]}."
    names = [
        f"{shared} for {formatting.listed([name for name in mechanisms if unit(name) == shared])}"
        for shared in units
    ]
    return f"ε is in {'; '.join(names)}."
