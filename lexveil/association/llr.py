"""The log-likelihood ratio.

Of a trigram it is that of one binomial: the full 2 x 2 x 2 table needs pairs with a gap, x ? z, which are not counted.
"""

from __future__ import annotations

from lexveil.association.measure import AssociationMeasure

LLR = AssociationMeasure(
    name="llr",
    column="llr",
    unit="2 × nats",
    summary="log-likelihood ratio against independent words; 10.83 is p = 0.001 of a bigram",
    source="Dunning 1993; of trigrams after it",
    bigram="""2 * (
            xy * ln(xy * n / (x * y))
            + case when x_only > 0 and y < n then x_only * ln(x_only * n / (x * (n - y))) else 0 end
            + case when y_only > 0 and x < n then y_only * ln(y_only * n / ((n - x) * y)) else 0 end
            + case when neither > 0 then neither * ln(neither * n / ((n - x) * (n - y))) else 0 end
        )""",
    trigram="""2 * (
            xyz * ln(xyz / expected)
            + case when expected < n then (n - xyz) * ln((n - xyz) / (n - expected)) else 0 end
        )""",
    low=0.0,
    high=1e18,
)
