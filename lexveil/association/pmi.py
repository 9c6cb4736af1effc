"""Pointwise mutual information, by which sentences are cut."""

from __future__ import annotations

from lexveil.association.measure import AssociationMeasure

PMI = AssociationMeasure(
    name="pmi",
    column="pmi_bits",
    unit="bits",
    summary="log2 of how much more often the words occur together than independent words would",
    source="CLMLDP section 4.1",
    bigram="log2(n * xy / (x * y))",
    trigram="log2(n * n * xyz / (x * y * z))",
    low=-1000.0,
    high=1000.0,
)
