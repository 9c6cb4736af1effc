"""Association measures: how much more often words occur together than by chance.

A new measure is its entry in ``MEASURES``. The columns of the collocations, their thresholds in
params.yaml, the look-up and the help of the command line follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AssociationMeasure:
    """A measure of how much words belong together.

    Attributes:
        name: in params.yaml: collocations.measures, and after ``min_`` its threshold.
        column: in the tables of collocations, with the unit if it has one.
        unit: of its values, for people; empty if they have none.
        summary: what it tells, in one line.
        source: who introduced it.
        bigram: SQL over doubles: xy, the count of the pair; x and y, those of its words; n, all
            tokens; expected, what xy would be if the words were independent; x_only, y_only and
            neither, the other cells of the 2 x 2 table. Columns of measures before it may be used.
        trigram: the same over xyz, x, y, z, n and expected.
        low, high: what its threshold may be.
        decimals: with which it is printed.
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
        """Its threshold in params.yaml: collocations."""
        return f"min_{self.name}"


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
# Of a trigram it is the ratio of one binomial: the full 2 x 2 x 2 table needs pairs with a gap,
# which are not counted.
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

MEASURES: tuple[AssociationMeasure, ...] = (PMI, NPMI, LLR, T_SCORE)  # in the order of the columns
COLUMNS = ("count", *(measure.column for measure in MEASURES))


def rendered(query: str) -> str:
    """Fill the measures into a query of sql/collocations/.

    Args:
        query: one SELECT with any of these placeholders. ``{bigram_measures}``,
            ``{trigram_measures}``: the expressions as columns; ``{columns}``: their names;
            ``{thresholds}``: all of them reach what $min_NAME asks for, null for nothing;
            ``{absent}``: the columns as nulls; ``{ordered_by}``: the one that $by names, of a CASE
            $by.
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
