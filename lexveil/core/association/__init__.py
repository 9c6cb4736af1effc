"""Association measures: how much more often words occur together than by chance.

To add a measure, add one entry to ``MEASURES``. The columns of the collocations, their thresholds
in params.yaml, the look-up and the help of the command line are derived from this entry.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AssociationMeasure:
    """A measure of how strongly words are associated.

    Attributes:
        name: name in params.yaml, under collocations.measures. The name of the threshold is
            ``min_`` followed by this name.
        column: column in the tables of collocations, with the unit if it has one.
        unit: unit of the values, for people; empty if the values have no unit.
        summary: one-line description.
        source: publication that introduced the measure.
        bigram: SQL over doubles: xy, the count of the pair; x and y, the counts of its words; n,
            the count of all tokens; expected, the value of xy if the words were independent;
            x_only, y_only and neither, the other cells of the 2 x 2 table. The expression may use
            the columns of earlier measures.
        trigram: SQL over xyz, x, y, z, n and expected, defined likewise.
        low, high: least and greatest allowed threshold.
        decimals: decimals in printed values.
    """

    name: str
    column: str
    unit: str
    summary: str
    source: str
    bigram: str
    trigram: str
    low: float
    high: float
    decimals: int = 2

    @property
    def threshold(self) -> str:
        """Name of the measure's threshold in params.yaml, section collocations."""
        return f"min_{self.name}"


PMI = AssociationMeasure(
    name="pmi",
    column="pmi_bits",
    unit="bits",
    summary="log2 of count / count expected for independent words",
    source="CLMLDP section 4.1",
    bigram="log2(n * xy / (x * y))",
    trigram="log2(n * n * xyz / (x * y * z))",
    low=-1000.0,
    high=1000.0,
)
NPMI = AssociationMeasure(
    name="npmi",
    column="npmi",
    unit="",
    summary="PMI divided by its largest possible value: 1 if the words occur only together",
    source="Bouma 2009; extended to trigrams",
    bigram="pmi_bits / -log2(xy / n)",
    trigram="pmi_bits / (-2 * log2(xyz / n))",
    low=-1.0,
    high=1.0,
    decimals=3,
)
# For a trigram, the ratio compares one binomial: the full 2 x 2 x 2 table would need counts of
# pairs with a gap, which do not exist.
LLR = AssociationMeasure(
    name="llr",
    column="llr",
    unit="2 × nats",
    summary="log-likelihood ratio against independent words; 10.83 means p = 0.001 for a bigram",
    source="Dunning 1993; extended to trigrams",
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
T_SCORE = AssociationMeasure(
    name="t_score",
    column="t_score",
    unit="",
    summary="count minus the count expected for independent words, in standard errors of the count",
    source="Church, Gale, Hanks, Hindle 1991",
    bigram="(xy - expected) / sqrt(xy)",
    trigram="(xyz - expected) / sqrt(xyz)",
    low=-1e18,
    high=1e9,
)

MEASURES: tuple[AssociationMeasure, ...] = (PMI, NPMI, LLR, T_SCORE)  # in the order of the columns
COLUMNS = ("count", *(measure.column for measure in MEASURES))


def rendered(query: str) -> str:
    """Insert the SQL expressions of the association measures into a query of sql/collocations/.

    Args:
        query: one SELECT with any of these placeholders. ``{bigram_measures}``,
            ``{trigram_measures}``: the expressions as columns; ``{columns}``: the names of the
            columns; ``{thresholds}``: the condition that every measure reaches its parameter
            $min_NAME, where null sets no limit; ``{absent}``: a null for each column;
            ``{ordered_by}``: the branches of a ``CASE $by`` that select the column named by $by.
    """
    parts = {
        "bigram_measures": ",\n".join(
            f"{measure.bigram} as {measure.column}" for measure in MEASURES
        ),
        "trigram_measures": ",\n".join(
            f"{measure.trigram} as {measure.column}" for measure in MEASURES
        ),
        "columns": ", ".join(measure.column for measure in MEASURES),
        "thresholds": " and ".join(
            f"(${measure.threshold} is null or {measure.column} >= ${measure.threshold})"
            for measure in MEASURES
        ),
        "absent": ", ".join(f"null::double as {measure.column}" for measure in MEASURES),
        "ordered_by": " ".join(
            f"when '{measure.column}' then {measure.column}" for measure in MEASURES
        ),
    }
    for name, sql in parts.items():
        query = query.replace(f"{{{name}}}", sql)
    return query
