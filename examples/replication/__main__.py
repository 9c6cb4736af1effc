"""Remake the papers' tables on public sets, and set our figures beside theirs.

    python -m examples.replication PROJECT --sets FOLDER   # makes the project and runs it
    python -m examples.replication PROJECT                  # writes the page of one that ran

FOLDER holds sets under the papers' names, such as sst2.parquet, with columns text, label, attribute
and split.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from examples.replication.claims import shapes, shapes_table
from examples.replication.literature import (
    ANY,
    MEASURES,
    PUBLISHED_CSV,
    Literature,
    beside,
    groups,
    parse,
)
from lexveil.config import CLEAN, load_params
from lexveil.evaluation.metrics.base import Score
from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.evaluation_values import Values, at_epsilons, averages
from lexveil.report.records import Key
from lexveil.report.table import Column, Table, epsilon_key

GRID = Path(__file__).with_name("grid.yaml")
OURS = "this project"
SHAPES = "Whether the results have the shape of the papers' results"
SPREAD = (
    "Spread: the standard errors of both sides together. That of a score comes from its "
    "trainings and from the number "
    "of documents asked about, that of a cosine from its texts, that of N_w and S_w from "
    "their quartiles over the "
    "words. Noise is drawn once per run, and so its luck is not in the spread. Among many "
    "comparisons some exceed it "
    "by chance."
)


def make_project(project: Path, sets: Sequence[Path], model: str) -> None:
    """Make a project over the sets with the grid of the papers, and run it."""
    lexveil = [sys.executable, "-m", "lexveil.cli"]
    if not (project / "dvc.yaml").exists():
        subprocess.run([*lexveil, "init", project], check=True)
    subprocess.run(
        [*lexveil, "data", "use", "--model", model, "--documents", *sets], cwd=project, check=True
    )
    params = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    params["grid"] |= yaml.safe_load(GRID.read_text(encoding="utf-8"))
    (project / "params.yaml").write_text(
        yaml.safe_dump(params, allow_unicode=True, sort_keys=False), encoding="utf-8"
    )
    subprocess.run([*lexveil, "run"], cwd=project, check=True)


def compared(
    values_of: Mapping[str, Values], runs: Sequence[Key], published: Sequence[Literature]
) -> Iterator[tuple[str, Table]]:
    """For each score and data set, or mean of several, of which the papers print a figure: theirs
    below ours.

    Yields:
        A caption and the table.
    """
    for score, measures in MEASURES.items():
        measured = [
            name
            for name, values in values_of.items()
            if any(known == score.name for known, _ in values)
        ]
        for datasets in [*((name,) for name in measured), *groups(published, measures, measured)]:
            table = _table(
                score, measures, datasets, averages(values_of, datasets), runs, published
            )
            if table.rows:
                yield f"{', '.join(datasets)}: {score.words}", table


def _table(
    score: Score,
    measures: Sequence[str],
    datasets: Sequence[str],
    values: Values,
    runs: Sequence[Key],
    published: Sequence[Literature],
) -> Table:
    epsilons = sorted({epsilon for _, _, epsilon in runs})
    lines = list(dict.fromkeys((mechanism, strategy) for mechanism, strategy, _ in runs))
    printed = beside(published, datasets, measures, lines, epsilons)
    rows: list[dict[str, object]] = []
    for mechanism, strategy in dict.fromkeys((row.mechanism, row.strategy) for row in printed):
        ours = {
            epsilon: values.get((score.name, (mechanism, strategy, epsilon)))
            for epsilon in epsilons
        }
        own = [
            (row.source, row.clean, row.at)
            for row in printed
            if (row.mechanism, row.strategy) == (mechanism, strategy)
        ]
        rows += [
            {
                "mechanism": mechanism,
                "strategy": strategy,
                "figures": figures,
                "clean": clean,
                **_at(known),
            }
            for figures, clean, known in [(OURS, values.get((score.name, CLEAN)), ours), *own]
        ]
    show = formatting.mean_sd(score.decimals)
    columns = [
        Column("mechanism", "mechanism"),
        Column("strategy", "strategy"),
        Column("figures", "figures of"),
        Column("clean", "clean texts", show),
        *_columns(epsilons, show),
    ]
    return Table(score.name, columns, rows)


def _columns(epsilons: Sequence[float], show: Callable[[Any], str]) -> list[Column]:
    return [Column(epsilon_key(epsilon), f"ε {epsilon:g}", show) for epsilon in epsilons]


def _at(known: Mapping[float, object]) -> dict[str, object]:
    return {epsilon_key(epsilon): value for epsilon, value in known.items()}


def budgets(report: ReportData, published: Sequence[Literature]) -> Table:
    """CLMLDP Table 8: the budget of a document at each base epsilon; of no row where every token
    has the epsilon of the grid.
    """
    ours: dict[str, dict[float, object]] = {}
    plans = report.plans if report.params.grid.budget == "document" else []
    for plan in plans:
        ours.setdefault(plan["dataset"], {})[plan["epsilon"]] = plan["budget"]
    epsilons = sorted({plan["epsilon"] for plan in plans})
    rows: list[dict[str, object]] = []
    for dataset in sorted(ours):
        for row in beside(published, [dataset], ["document_budget"], [(ANY, ANY)], epsilons):
            rows.append({"dataset": dataset, "figures": OURS, **_at(ours[dataset])})
            printed = {epsilon: figure.mean for epsilon, figure in row.at.items()}
            rows.append({"dataset": dataset, "figures": row.source, **_at(printed)})
    columns = [Column("dataset", "data set"), Column("figures", "figures of")]
    return Table("budgets", [*columns, *_columns(epsilons, formatting.two)], rows)


def markdown(caption: str, table: Table, note: str = "") -> str:
    """A table in Markdown, below its caption."""
    lines = [[column.head for column in table.columns], ["---"] * len(table.columns)]
    lines += [[cell.text for cell in row] for row in table.cells]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{caption}**\n\n{body}\n" + (f"\n{note}\n" if note else "")


def page(project: Path) -> str:
    """The page of a project that has run."""
    with contextlib.chdir(project):
        report = ReportData(load_params())
        values_of = {dataset: at_epsilons(values) for dataset, values in report.values.items()}
        runs = [
            key
            for key in report.keys
            if key in {key for values in values_of.values() for _, key in values}
        ]
        published = parse(PUBLISHED_CSV.read_text(encoding="utf-8"))
        tables: list[tuple[str, Table] | tuple[str, Table, str]] = [
            (SHAPES, shapes_table(shapes(values_of, report.deniability)), SPREAD),
            *compared(values_of, runs, published),
        ]
        if (of_documents := budgets(report, published)).rows:
            tables.append(("Document budget", of_documents))
    note = (
        "Figures of the papers are as printed, slips too, measured with other models on "
        "texts rewritten in other "
        "embeddings: compare how they change with ε, not their height. Percentages are "
        "written as shares."
    )
    return "\n".join(["# Replication\n", f"{note}\n", *(markdown(*table) for table in tables)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is to be run, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m examples.replication", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("project", type=Path)
    parser.add_argument("--sets", type=Path, metavar="FOLDER", help="public sets, *.parquet")
    parser.add_argument("--model", default="en", help="words, vectors and collocations")
    options = parser.parse_args(arguments)
    if options.sets is not None:
        names = {
            name
            for one in parse(PUBLISHED_CSV.read_text(encoding="utf-8"))
            for name in one.datasets
        }
        sets = [
            file.resolve() for file in sorted(options.sets.glob("*.parquet")) if file.stem in names
        ]
        if not sets:
            parser.error(
                f"{options.sets}: holds no set of the papers; name one {', '.join(sorted(names))}"
            )
        make_project(options.project, sets, options.model)
    out = options.project / "replication.md"
    out.write_text(page(options.project), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
