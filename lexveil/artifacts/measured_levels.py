"""The measured levels of protection of the models that ship: lexveil/models/levels.json."""

from __future__ import annotations

import json

from lexveil import paths
from lexveil.protection import MeasuredLevel


def measured_levels(card_sha256: str) -> list[MeasuredLevel]:
    """The levels that were measured of the model with this card; none of others."""
    by_card = json.loads((paths.MODELS / "levels.json").read_text(encoding="utf-8"))
    return [MeasuredLevel(**level) for level in by_card.get(card_sha256, {}).get("levels", [])]
