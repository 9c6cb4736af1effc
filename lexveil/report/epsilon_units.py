"""What ε is measured in. Every mechanism has a distance of its own, and ε is in 1 / its units."""

from __future__ import annotations

from collections.abc import Sequence

from lexveil.mechanisms.base import EuclideanMechanism
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.mechanisms.variants import base_of
from lexveil.report import formatting

EUCLIDEAN = EuclideanMechanism.metric


def unit(mechanism: str) -> str:
    """The unit of a mechanism's ε: "1 / embedding distance"."""
    return f"1 / {MECHANISMS[base_of(mechanism)].unit}"


def shared_unit(mechanisms: Sequence[str]) -> str:
    """The unit of an axis or column that several mechanisms share; a neutral one where theirs
    differ.
    """
    units = {unit(name) for name in mechanisms}
    return units.pop() if len(units) == 1 else "1 / distance of the mechanism"


def in_words(mechanisms: Sequence[str]) -> str:
    """The same as a sentence, which names the mechanisms of each unit if there are several."""
    units = list(dict.fromkeys(unit(name) for name in mechanisms))
    if len(units) == 1:
        return f"ε is in {units[0]}."
    named = [
        f"{shared} for {formatting.listed([name for name in mechanisms if unit(name) == shared])}"
        for shared in units
    ]
    return f"ε is in {'; '.join(named)}."
