"""The most frequent collocations, and those of highest PMI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.section import Section
from lexveil.report.table import Column, Table


def collocation_table(name: str, caption: str, rows: Sequence[tuple[str, int, float]]) -> Table:
    """Collocations with their counts and PMI; ``rows`` are (words joined by a space, count, bits)."""
    return Table(
        name,
        caption,
        [
            Column("collocation", "Collocation"),
            Column("count", "Count", formatting.count),
            Column("pmi_bits", "PMI (bits)", formatting.two),
        ],
        rows,
    )


def top_tables(rows: Sequence[tuple[Any, ...]]) -> tuple[list[Table], list[tuple[str, int]]]:
    """The lists of collocations, and the smallest count that took part in those by PMI.

    Args:
        rows: of sql/report/collocations.sql.
    """
    tables = []
    for ngrams in ("bigrams", "trigrams"):
        for place, name, what in ((5, "by-pmi", "highest PMI among the frequent"), (6, "by-count", "most frequent")):
            own = {row[place]: row[1:4] for row in rows if row[0] == ngrams and row[place] is not None}
            caption = f"{ngrams.capitalize()}: {what}"
            tables.append(collocation_table(f"{ngrams}-{name}", caption, [own[at] for at in sorted(own)]))
    return tables, sorted({(row[0], row[4]) for row in rows})


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    tables, thresholds = top_tables(report.collocations.top)
    return {"thresholds": thresholds, "top_collocations": tables}


SECTION = Section(
    name="collocations",
    title="Collocations",
    heading="Top collocations",
    view=view,
    prose="""\
{% if thresholds %}
<p>PMI is highest for what was seen least, where it is mostly chance. The lists by PMI therefore hold only what is as
frequent as the most frequent tenth: {% for ngrams, threshold in thresholds %}{{ ngrams }} that occur at least {{ threshold|count }} times{{ ", " if not loop.last }}{% endfor %}.</p>
{% else %}
<p>The corpus gave none.</p>
{% endif %}
<div class="pair">
{% for table in top_collocations %}{{ render_table(table) }}{% endfor %}
</div>
""",
)
