"""Normalized pointwise mutual information."""

from __future__ import annotations

from lexveil.association.measure import AssociationMeasure

NPMI = AssociationMeasure(
    name="npmi",
    column="npmi",
    unit="",
    summary="PMI as a share of the largest that is possible: 1 where the words occur only together",
    source="Bouma 2009; of trigrams after it",
    bigram="pmi_bits / -log2(xy / n)",
    trigram="pmi_bits / (-2 * log2(xyz / n))",
    low=-1.0,
    high=1.0,
    decimals=3,
)
