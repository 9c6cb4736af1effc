"""Report section "deniability": the plausible deniability statistics N_w and S_w of every mechanism
over epsilon, as in Figure 4 of 1-Diffractor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.base.levels import BaseEpsilon, GridRun
from lexveil.core.accounting.budgets import SEGMENTATION_OF
from lexveil.lab.report import epsilon_units, formatting
from lexveil.lab.report.charts import Axis, Chart, ChartPoint, epsilon_axis, lines
from lexveil.lab.report.data import Record, ReportData
from lexveil.lab.report.table import Column, Table

QUARTILES = {"mean": "Mean", "q25": "25%", "median": "Median", "q75": "75%"}
# Statistic -> (key of its expected value, heading of that column, caption of the figure).
STATISTICS = {
    "n_w": ("n_w_exact", "Exact", "N_w: how often a word stays"),
    "s_w": ("s_w_expected", "Expected", "S_w: how many words come out of one"),
}


def heading(measured: Record, strategies: Sequence[str]) -> str:
    """Return a heading with the segmentation, the strategies that use it, and the number of words:
    "gst (S2 and S3): 100 of 4,242 words".
    """
    own = [name for name in strategies if SEGMENTATION_OF[name] == measured["segmentation"]]
    n_words = len(measured["word_rows"])
    n_shared = measured["n_shared"]
    return (
        f"{measured['segmentation']} ({formatting.listed(own)}): {n_words:,} of {n_shared:,} words"
    )


def chart(measured: Sequence[Record], statistic: str, n_draws: int) -> Chart:
    """Make a chart of a deniability statistic over epsilon in one segmentation, one line per
    mechanism, with the quartiles and the expected value.
    """
    expected, _, caption = STATISTICS[statistic]
    segmentation = measured[0]["segmentation"]
    known: dict[GridRun, Record] = {
        (record["mechanism"], segmentation, BaseEpsilon(row["epsilon"])): row
        for record in measured
        for row in record["statistics"]
        if row[statistic] is not None
    }

    def point(key: GridRun) -> ChartPoint:
        row = known[key]
        ends = (row[statistic]["q25"], row[statistic]["q75"])
        computed = None if row[expected] is None else row[expected]["mean"]
        return ChartPoint(key[2].number, row[statistic]["mean"], y_ends=ends, expected=computed)

    unit = epsilon_units.shared_unit([record["mechanism"] for record in measured])
    words = f"N_w (draws of {n_draws:,})" if statistic == "n_w" else "S_w (different words)"
    return Chart(
        name=f"{statistic.replace('_', '-')}-{segmentation}",
        title=f"{segmentation}: {caption}",
        x=epsilon_axis(f"ε of a word ({unit}, log)", (key[2].number for key in known)),
        y=Axis(words, formatting.one, limits=(0, n_draws)),
        series=lines(known, lambda key: key[0], point),
    )


def table(measured: Sequence[Record], n_draws: int) -> Table:
    """Return a table of the statistics N_w and S_w per mechanism, segmentation and epsilon: mean
    and quartiles over the words, and the expected value.
    """
    columns = [Column("mechanism", "Mechanism"), Column("segmentation", "Segmentation")]
    columns.append(Column("epsilon", "ε", formatting.epsilon))
    for (statistic, (expected, head, _)), group in zip(
        STATISTICS.items(), (f"N_w, draws of {n_draws:,}", "S_w, words"), strict=True
    ):
        columns += [
            Column(f"{statistic}_{name}", shown, formatting.one, group)
            for name, shown in QUARTILES.items()
        ]
        columns.append(Column(f"{expected}_mean", head, formatting.one, group))
    rows = [
        {
            "mechanism": record["mechanism"],
            "segmentation": record["segmentation"],
            "epsilon": row["epsilon"],
            "unit": epsilon_units.unit(record["mechanism"]),
        }
        | {
            f"{name}_{part}": number
            for statistic, (expected, _, _) in STATISTICS.items()
            for name in (statistic, expected)
            for part, number in (row[name] or {}).items()
        }
        for record in measured
        for row in record["statistics"]
    ]
    return Table("deniability", [*columns, Column("unit", "ε is in")], rows)


def refusals(measured: Sequence[Record]) -> dict[str, str]:
    """Return the message with which a mechanism rejected epsilons, once per mechanism and
    segmentation.
    """
    said = {}
    for record in measured:
        refused = [row for row in record["statistics"] if row["refused"] is not None]
        if refused:
            at = formatting.listed([formatting.epsilon(row["epsilon"]) for row in refused])
            said[f"{record['mechanism']}, {record['segmentation']}, ε {at}"] = str(
                refused[0]["refused"]
            )
    return said


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "deniability": tables, charts and plain
    values.
    """
    grid = report.params.grid
    n_draws = report.params.deniability.draws
    by_segmentation: dict[str, list[Record]] = {}
    for record in report.deniability if grid.base_epsilons else ():
        by_segmentation.setdefault(record["segmentation"], []).append(record)
    return {
        "n_draws": n_draws,
        "epsilon_in_words": epsilon_units.in_words(grid.mechanisms),
        "mixed_units": len({epsilon_units.unit(name) for name in grid.mechanisms}) > 1,
        "any_exact": any(
            row["n_w_exact"] is not None
            for record in report.deniability
            for row in record["statistics"]
        ),
        "drawn": [
            (
                heading(own[0], grid.strategies),
                [chart(own, statistic, n_draws) for statistic in STATISTICS],
            )
            for own in by_segmentation.values()
        ],
        "deniability": table(report.deniability, n_draws),
        "refusals": refusals(report.deniability),
    }
