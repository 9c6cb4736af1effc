"""Measured levels of protection of the models that ship, and how often texts are found again there:
lexveil/models/levels.json and linkage.json.
"""

from __future__ import annotations

import json

from lexveil import paths
from lexveil.protection import MeasuredLevel, MeasuredLinkage

LINKAGE = paths.MODELS / "linkage.json"


def measured_levels(card_sha256: str) -> list[MeasuredLevel]:
    """The levels that were measured of the model with this card; none of others."""
    by_card = json.loads((paths.MODELS / "levels.json").read_text(encoding="utf-8"))
    return [MeasuredLevel(**level) for level in by_card.get(card_sha256, {}).get("levels", [])]


def measured_linkage(card_sha256: str) -> list[MeasuredLinkage]:
    """Linkage as it was measured of the model with this card; nothing for other models."""
    by_card = json.loads(LINKAGE.read_text(encoding="utf-8"))
    figures = by_card.get(card_sha256, {}).get("linkage", [])
    return [MeasuredLinkage(**figure) for figure in figures]
