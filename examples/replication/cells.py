"""Printed cells of a paper, each with our value or the reason why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from examples.replication.literature import ANY, NONE, Literature
from examples.replication.measured import Measured, key_of
from lexveil.base.levels import BaseEpsilon
from lexveil.lab.report import formatting
from lexveil.lab.report.formatting import MeanSd
from lexveil.lab.report.table import Column, Table, epsilon_key

LISTS_OF_ONE = "listsL2"
CLEAN_COLUMN = "clean texts"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Coverage of a run, which gives the reasons for missing values.

    Attributes:
        datasets: data sets of the project.
        mechanisms: mechanisms of the grid, with their variants.
        strategies, epsilons: strategies and epsilons of the grid.
    """

    datasets: frozenset[str]
    mechanisms: frozenset[str]
    strategies: frozenset[str]
    epsilons: frozenset[float]


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """One printed figure and our value.

    Attributes:
        figure: the printed figure.
        ours: our value; None if nothing was measured.
        reason: the reason for a missing value; empty if there is a value.
    """

    figure: Literature
    ours: MeanSd | None
    reason: str


def cells_of(
    figures: Sequence[Literature], known: Measured, settings: RunSettings
) -> list[PrintedCell]:
    """Return each printed figure with our value."""
    cells = []
    for figure in figures:
        ours = known.get(key_of(figure))
        reason = "" if ours is not None else reason_of(figure, settings)
        cells.append(PrintedCell(figure, ours, reason))
    return cells


def reason_of(figure: Literature, settings: RunSettings) -> str:
    """Return the reason why a printed figure has no measured counterpart."""
    absent = [name for name in figure.datasets if name not in settings.datasets]
    if absent and figure.dataset != "words":
        return f"data set {' and '.join(absent)} is not available"
    if figure.mechanism not in (ANY, NONE):
        name = f"{figure.mechanism}-{figure.variant}" if figure.variant else figure.mechanism
        bases = {one.partition("-")[0] for one in settings.mechanisms}
        if figure.mechanism not in bases and not figure.mechanism.endswith("_best"):
            return f"{figure.mechanism} is not in the grid"
        if figure.variant.startswith("lists") and name not in settings.mechanisms:
            if figure.variant == LISTS_OF_ONE:
                return "L2 equals L0 if there is one embedding; run with --full or --vectors"
            return f"{name} is not in the grid"
    if figure.epsilon and figure.epsilon not in settings.epsilons:
        return f"ε {figure.epsilon:g} is not in the grid; run with --full or --epsilons"
    if figure.strategy not in (ANY, NONE) and figure.strategy not in settings.strategies:
        return f"{figure.strategy} is not in the grid"
    if "utility" in figure.measure or figure.measure == "relative_gain":
        return "the data set has no label in this project"
    return "it was not measured"


@dataclass(frozen=True, slots=True)
class CellCount:
    """Number of printed cells of a table, and number of those cells that were reproduced."""

    place: str
    printed: int
    remade: int


def counts(cells: Sequence[PrintedCell], others: Mapping[str, tuple[int, int]]) -> list[CellCount]:
    """Count the cells by table, and then in total.

    Args:
        cells: the printed figures with our values.
        others: numbers of cells that are not figures, (printed, reproduced), by table.
    """
    printed = Counter(cell.figure.place for cell in cells)
    remade = Counter(cell.figure.place for cell in cells if cell.ours is not None)
    rows = [CellCount(place, n, remade[place]) for place, n in printed.items()]
    rows += [CellCount(place, n, done) for place, (n, done) in others.items()]
    total = CellCount("all", sum(row.printed for row in rows), sum(row.remade for row in rows))
    return [*rows, total]


def counts_table(rows: Sequence[CellCount]) -> Table:
    """Return a table with one row per printed table."""
    columns = [
        Column("place", "where"),
        Column("printed", "cells printed", formatting.count),
        Column("remade", "remade", formatting.count),
    ]
    return Table(
        "cells",
        columns,
        [{"place": row.place, "printed": row.printed, "remade": row.remade} for row in rows],
    )


def reasons_table(cells: Sequence[PrintedCell]) -> Table:
    """Return a table of the reasons for missing cells, and the number of cells for each."""
    n = Counter((cell.figure.place, cell.reason) for cell in cells if cell.reason)
    columns = [
        Column("place", "where"),
        Column("reason", "why not"),
        Column("n", "cells", formatting.count),
    ]
    rows = [
        {"place": place, "reason": reason, "n": number} for (place, reason), number in n.items()
    ]
    return Table("reasons", columns, rows)


def beside_table(cells: Sequence[PrintedCell]) -> Table:
    """Return the reproduced cells of one printed table; each row of ours is followed by the paper's
    row.

    A row without a reproduced cell is left out; its reason is in ``reasons_table``.
    """
    lines: dict[tuple[str, ...], list[PrintedCell]] = {}
    clean: dict[tuple[str, str], PrintedCell] = {}
    for cell in cells:
        figure = cell.figure
        task = (figure.dataset, figure.measure)
        if figure.mechanism == NONE:
            clean[task] = cell
        else:
            row = (*task, figure.mechanism, figure.variant, figure.strategy)
            lines.setdefault(row, []).append(cell)
    epsilons = sorted({cell.figure.epsilon for own in lines.values() for cell in own})
    rows = list[dict[str, object]]()
    for line, own in lines.items():
        base = clean.pop((line[0], line[1]), None)
        shown = own if base is None else [*own, base]
        if any(cell.ours is not None for cell in shown):
            rows += _two_rows(line, own, base)
    for (dataset, measure), cell in clean.items():
        if cell.ours is not None:
            rows += _two_rows((dataset, measure, "", "", ""), [], cell)
    heads = {
        "dataset": "data set",
        "measure": "measure",
        "mechanism": "mechanism",
        "variant": "variant",
        "strategy": "strategy",
        "figures": "figures of",
    }
    columns = [Column(key, head) for key, head in heads.items()]
    columns.append(Column("clean", CLEAN_COLUMN, written))
    columns += [
        Column(epsilon_key(BaseEpsilon(epsilon)), f"ε {epsilon:g}" if epsilon else "value", written)
        for epsilon in epsilons
    ]
    return Table("beside", columns, rows)


def _two_rows(
    line: tuple[str, ...], own: Sequence[PrintedCell], base: PrintedCell | None
) -> list[dict[str, object]]:
    names = dict(zip(("dataset", "measure", "mechanism", "variant", "strategy"), line, strict=True))
    source = next(cell.figure for cell in (*own, base) if cell is not None)
    ours = {epsilon_key(BaseEpsilon(cell.figure.epsilon)): cell.ours for cell in own}
    theirs = {epsilon_key(BaseEpsilon(cell.figure.epsilon)): cell.figure.share for cell in own}
    model = "" if source.model == NONE else f", {source.model}"
    return [
        {**names, "figures": "ours", "clean": base.ours if base else None, **ours},
        {
            **dict.fromkeys(names, ""),
            "figures": f"{source.paper}{model}",
            "clean": base.figure.share if base else None,
            **theirs,
        },
    ]


def written(value: MeanSd) -> str:
    """Format a figure with as many digits as it needs: 0.513, 12.4, 1,731."""
    size = abs(value.mean)
    if size >= 1000:
        places = 0
    elif size >= 10:
        places = 1
    elif 0 < size < 0.01:
        places = 5
    else:
        places = 3
    return formatting.mean_sd(places)(value)
