"""Report section "sentences": runs of strategy S5, which replaces each text by sentences of a
sentence bank, next to clean texts and the majority-class baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lexveil.io.artifacts.levels import level_name, made_sentence_runs, why_skipped
from lexveil.io.config import CLEAN
from lexveil.lab.evaluation.metrics.attack import ADAPTIVE
from lexveil.lab.evaluation.metrics.base import Score
from lexveil.lab.evaluation.metrics.similarity import COSINE
from lexveil.lab.evaluation.metrics.utility import UTILITY
from lexveil.lab.report import formatting
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.evaluation_values import MAJORITY, Values
from lexveil.lab.report.records import Key
from lexveil.lab.report.table import Column, Table

SCORES: dict[str, Score] = {"utility": UTILITY, "attack": ADAPTIVE, "cosine": COSINE}
COLUMNS = (
    Column("which", "Which"),
    Column("dataset", "Data set"),
    Column("epsilon", "ε of a sentence", formatting.epsilon_found),
    Column("utility", "Utility", formatting.three, "Macro F1"),
    Column("attack", "Attack", formatting.three, "Macro F1"),
    Column("cosine", "Cosine", formatting.three),
    Column("found", "Original found", formatting.share, "By a reader who knows the method"),
    Column("among", "among", formatting.count, "By a reader who knows the method"),
    Column("content", "words named", formatting.share, "By a reader who knows the method"),
    Column("blind", "without output", formatting.share, "By a reader who knows the method"),
)


def scores_of(values: Values, key: Key) -> dict[str, float]:
    """Return the scores of a run, of clean texts or of the majority-class baseline, by column of
    the table.
    """
    known = {name: values.get((score.name, key)) for name, score in SCORES.items()}
    return {name: value.mean for name, value in known.items() if value is not None}


def rows(report: ReportData) -> list[dict[str, Any]]:
    """Return the rows of the section's table, one for each data set and run; the runs are in the
    order of params.yaml.
    """
    table_rows = []
    for dataset, values in report.sentence_values.items():
        for key, record in report.sentence_recovery.items():
            by_size = record["linkage"][dataset]
            largest = max(by_size, key=int)
            words_named = record["named"][dataset]
            about = {
                "which": f"{level_name(key[2])}, {key[2]}",
                "level": level_name(key[2]),
                "dataset": dataset,
                "epsilon": record["epsilon"],
                "found": max(by_size[largest].values()),
                "among": int(largest),
                "content": words_named["content"],
                "blind": words_named["content_without_output"],
            }
            table_rows.append(about | scores_of(values, key))
    return table_rows


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "sentences"."""
    grid = report.params.grid
    ends = [
        {"which": which, "dataset": dataset} | scores_of(values, key)
        for dataset, values in report.sentence_values.items()
        for which, key in (("clean texts", CLEAN), ("majority", MAJORITY))
    ]
    table_rows = rows(report)
    skipped = {
        f"{level_name(level)}, {level}": why
        for _, _, level in grid.sentence_runs()
        if (why := why_skipped(level)) is not None
    }
    return {
        "sentences": Table("sentences", COLUMNS, [*table_rows, *ends], n_quiet=len(ends)),
        "n_runs": len(made_sentence_runs(grid.sentence_runs())),
        "per_text": next((record["sentences"] for record in report.sentence_recovery.values()), 0),
        "skipped": skipped,
    }
