"""How much of each data set each vocabulary knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.records import SEGMENTATIONS
from lexveil.report.section import Section
from lexveil.report.table import Column, Table


def coverage_table(coverage: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """How much of each data set each vocabulary knows."""
    rows = [
        (dataset, segmentation, *(counts[name] for name in ("n_texts", "n_words", "n_covered", "n_oov", "coverage")))
        for dataset, by_segmentation in sorted(coverage.items())
        for segmentation, counts in sorted(by_segmentation.items(), key=lambda item: SEGMENTATIONS.index(item[0]))
    ]
    return Table(
        "coverage",
        "Words of each data set that the vocabulary knows",
        [
            Column("dataset", "Data set"),
            Column("segmentation", "Segmentation"),
            Column("n_texts", "Texts", formatting.count),
            Column("n_words", "Words", formatting.count),
            Column("n_covered", "Known", formatting.count),
            Column("n_oov", "Unknown", formatting.count),
            Column("coverage", "Coverage", formatting.share),
        ],
        rows,
        "Words inside a collocation are counted one by one; punctuation is not. Unknown words have no vector: they are "
        "treated by policy.oov of params.yaml. A larger corpus knows more.",
    )


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    return {"coverage": coverage_table(report.coverage)}


def metrics(report: ReportData) -> Mapping[str, Any]:
    """What metrics.json has of the coverage."""
    return {
        "coverage": {
            dataset: {segmentation: round(counts["coverage"], 9) for segmentation, counts in by_segmentation.items()}
            for dataset, by_segmentation in report.coverage.items()
        }
    }


SECTION = Section(
    name="coverage",
    title="Coverage",
    heading="Vocabulary coverage",
    view=view,
    metrics=metrics,
    prose="""\
{{ render_table(coverage) }}
""",
)
