"""Table of metrics with one row per run, small enough for a screen. `dvc metrics show` prints and
compares the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from lexveil.lab.evaluation.metrics.attack import ADAPTIVE
from lexveil.lab.evaluation.metrics.similarity import COSINE
from lexveil.lab.evaluation.metrics.utility import UTILITY
from lexveil.lab.report.data import ReportData
from lexveil.readers.bands import CONTENT

# columns with means over the data sets that have a value
SCORES = {"cosine": COSINE, "utility": UTILITY, "attack": ADAPTIVE}
# Columns with the share of the words of a band that an adversary names.
BANDS = {"named": CONTENT, "rare": "rare"}
DECIMALS = 4


def run_rows(report: ReportData) -> dict[str, Mapping[str, float]]:
    """Return the main metrics of each run by its name MECHANISM-STRATEGY-EPSILON; values that were
    not measured are left out.
    """
    clean, runs = report.evaluated
    evaluated = {run.key: run for run in (clean, *runs)}
    recovered = {run.key: run for run in report.recovery}
    rows: dict[str, Mapping[str, float]] = {}
    for run in report.runs:
        figures: dict[str, float | None] = {}
        if run.key in recovered:
            shares = {name: recovered[run.key].share(band) for name, band in BANDS.items()}
            figures |= {
                name: None if share is None else share.share for name, share in shares.items()
            }
        figures["unchanged"] = run.metrics["share_unchanged"]
        of = evaluated[run.key]
        for name, score in SCORES.items():
            means = [
                value.mean
                for dataset in of.datasets
                if (value := of.value(dataset, score)) is not None
            ]
            figures[name] = math.fsum(means) / len(means) if means else None
        known = {
            name: round(figure, DECIMALS) for name, figure in figures.items() if figure is not None
        }
        rows["-".join(map(str, run.key))] = known
    return rows
