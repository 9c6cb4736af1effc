"""The t-score."""

from __future__ import annotations

from lexveil.association.measure import AssociationMeasure

T_SCORE = AssociationMeasure(
    name="t_score",
    column="t_score",
    unit="",
    summary="how far the count is above that of independent words, in its own standard errors",
    source="Church, Gale, Hanks, Hindle 1991",
    bigram="(xy - expected) / sqrt(xy)",
    trigram="(xyz - expected) / sqrt(xyz)",
    low=-1e18,
    high=1e9,
)
