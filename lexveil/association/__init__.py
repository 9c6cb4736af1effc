"""Association measures: how much more often words occur together than by chance.

A new measure is its file and its entry in ``MEASURES``. The columns of the collocations, their thresholds in
params.yaml, the look-up and the help of the command line follow from it.
"""

from __future__ import annotations

from lexveil.association.llr import LLR
from lexveil.association.measure import AssociationMeasure
from lexveil.association.npmi import NPMI
from lexveil.association.pmi import PMI
from lexveil.association.t_score import T_SCORE

MEASURES: tuple[AssociationMeasure, ...] = (PMI, NPMI, LLR, T_SCORE)  # in the order of the columns
COLUMNS = ("count", *(measure.column for measure in MEASURES))


def rendered(query: str) -> str:
    """Fill the measures into a query of sql/collocations/.

    Args:
        query: one SELECT with any of these placeholders. ``{bigram_measures}``, ``{trigram_measures}``: the expressions
            as columns; ``{columns}``: their names; ``{thresholds}``: all of them reach what $min_NAME asks for, null
            for nothing; ``{absent}``: the columns as nulls; ``{ordered_by}``: the one that $by names, of a CASE $by.
    """
    parts = {
        "bigram_measures": ",\n".join(f"{measure.bigram} as {measure.column}" for measure in MEASURES),
        "trigram_measures": ",\n".join(f"{measure.trigram} as {measure.column}" for measure in MEASURES),
        "columns": ", ".join(measure.column for measure in MEASURES),
        "thresholds": " and ".join(
            f"(${measure.threshold} is null or {measure.column} >= ${measure.threshold})" for measure in MEASURES
        ),
        "absent": ", ".join(f"null::double as {measure.column}" for measure in MEASURES),
        "ordered_by": " ".join(f"when '{measure.column}' then {measure.column}" for measure in MEASURES),
    }
    for name, sql in parts.items():
        query = query.replace(f"{{{name}}}", sql)
    return query
