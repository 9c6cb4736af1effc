"""Measured levels of protection, and measured linkage of texts, for the models that ship:
lexveil/models/levels.json and linkage.json.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from lexveil import paths
from lexveil.protection import MeasuredLevel, MeasuredLinkage

LINKAGE = paths.MODELS / "linkage.json"


def measured_levels(card_sha256: str) -> list[MeasuredLevel]:
    """Return the measured levels of the model with this card; empty for other models."""
    by_card = json.loads((paths.MODELS / "levels.json").read_text(encoding="utf-8"))
    return [MeasuredLevel(**level) for level in by_card.get(card_sha256, {}).get("levels", [])]


def level_of(
    measured: Sequence[MeasuredLevel], mechanism: str, strategy: str, level: str
) -> MeasuredLevel | None:
    """Return the figures of one mechanism, strategy and level; None if there are none."""
    sought = (mechanism, strategy, level)
    return next((one for one in measured if one[:3] == sought), None)


def measured_linkage(card_sha256: str) -> list[MeasuredLinkage]:
    """Return the measured linkage of the model with this card; empty for other models."""
    by_card = json.loads(LINKAGE.read_text(encoding="utf-8"))
    figures = by_card.get(card_sha256, {}).get("linkage", [])
    return [MeasuredLinkage(**figure) for figure in figures]
