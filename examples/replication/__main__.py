"""Remake the papers' tables on public sets, and set our figures beside theirs.

    python -m examples.replication PROJECT --sets FOLDER     # makes the project, runs it, writes PROJECT/replication.md
    python -m examples.replication PROJECT                   # of a project that has run: writes the page alone

FOLDER holds sets under the papers' names, such as sst2.parquet, with columns text, label, attribute and split.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from examples.replication.claims import shapes, shapes_table
from examples.replication.literature import ANY, MEASURES, PUBLISHED_CSV, Literature, beside, groups, parse
from lexveil.config import load_params
from lexveil.evaluation.metrics.base import Score
from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.evaluation_values import CLEAN, Key, Values, at_epsilons, averages
from lexveil.report.table import Column, Table

GRID = Path(__file__).with_name("grid.yaml")
OURS = "this project"


def make_project(project: Path, sets: Sequence[Path], model: str) -> None:
    """Make a project over the sets with the grid of the papers, and run it."""
    lexveil = [sys.executable, "-m", "lexveil.cli"]
    if not (project / "dvc.yaml").exists():
        subprocess.run([*lexveil, "init", project], check=True)
    subprocess.run([*lexveil, "data", "use", "--model", model, "--documents", *sets], cwd=project, check=True)
    params = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    params["grid"] |= yaml.safe_load(GRID.read_text(encoding="utf-8"))
    (project / "params.yaml").write_text(yaml.safe_dump(params, allow_unicode=True, sort_keys=False), encoding="utf-8")
    subprocess.run([*lexveil, "run"], cwd=project, check=True)


def compared(values_of: Mapping[str, Values], runs: Sequence[Key], published: Sequence[Literature]) -> Iterator[Table]:
    """For each score and data set, or mean of several, of which the papers print a figure: theirs below ours."""
    for score, measures in MEASURES.items():
        measured = [name for name, values in values_of.items() if any(known == score.name for known, _ in values)]
        for datasets in [*((name,) for name in measured), *groups(published, measures, measured)]:
            table = _table(score, measures, datasets, averages(values_of, datasets), runs, published)
            if table is not None:
                yield table


def _table(
    score: Score,
    measures: Sequence[str],
    datasets: Sequence[str],
    values: Values,
    runs: Sequence[Key],
    published: Sequence[Literature],
) -> Table | None:
    epsilons = sorted({epsilon for _, _, epsilon in runs})
    lines = list(dict.fromkeys((mechanism, strategy) for mechanism, strategy, _ in runs))
    printed = beside(published, datasets, measures, lines, epsilons)
    rows = []
    for mechanism, strategy in dict.fromkeys((row.mechanism, row.strategy) for row in printed):
        each = [values.get((score.name, (mechanism, strategy, epsilon))) for epsilon in epsilons]
        rows.append((mechanism, strategy, OURS, values.get((score.name, CLEAN)), *each))
        for row in printed:
            if (row.mechanism, row.strategy) == (mechanism, strategy):
                rows.append(
                    (mechanism, strategy, row.source, row.clean, *(row.at.get(epsilon) for epsilon in epsilons))
                )
    show = formatting.mean_sd_one if score.decimals == 1 else formatting.mean_sd
    columns = [Column(name, name) for name in ("mechanism", "strategy", "figures of")]
    columns += [Column("clean", "clean texts", show)]
    columns += [Column(f"{epsilon:g}", f"ε {epsilon:g}", show) for epsilon in epsilons]
    return Table(score.name, f"{', '.join(datasets)}: {score.words}", columns, rows) if rows else None


def budgets(report: ReportData, published: Sequence[Literature]) -> Iterator[Table]:
    """CLMLDP Table 8: the budget of a document at each base epsilon."""
    ours = {(plan.dataset, plan.epsilon): plan.budget for plan in report.plans}
    epsilons = sorted({epsilon for _, epsilon in ours})
    rows: list[tuple[str | float | None, ...]] = []
    for dataset in sorted({dataset for dataset, _ in ours}):
        for row in beside(published, [dataset], ["document_budget"], [(ANY, ANY)], epsilons):
            rows.append((dataset, OURS, *(ours[dataset, epsilon] for epsilon in epsilons)))
            at = (row.at[epsilon].mean if epsilon in row.at else None for epsilon in epsilons)
            rows.append((dataset, row.source, *at))
    columns = [Column("dataset", "data set"), Column("figures", "figures of")]
    columns += [Column(f"{epsilon:g}", f"ε {epsilon:g}", formatting.two) for epsilon in epsilons]
    if rows:
        yield Table("budgets", "Document budget", columns, rows)


def markdown(table: Table) -> str:
    """A table in Markdown, below its caption."""
    lines = [[column.head for column in table.columns], ["---"] * len(table.columns)]
    lines += [[cell.text for cell in row] for row in table.cells]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{table.caption}**\n\n{body}\n" + (f"\n{table.note}\n" if table.note else "")


def page(project: Path) -> str:
    """The page of a project that has run."""
    with contextlib.chdir(project):
        report = ReportData(load_params())
        values_of = {dataset: at_epsilons(values) for dataset, values in report.values.items()}
        runs = [key for key in report.keys if key in {key for values in values_of.values() for _, key in values}]
        published = parse(PUBLISHED_CSV.read_text(encoding="utf-8"))
        tables = [
            shapes_table(shapes(values_of, report.deniability)),
            *compared(values_of, runs, published),
            *budgets(report, published),
        ]
    note = (
        "Figures of the papers are as printed, slips too, measured with other models on texts rewritten in other "
        "embeddings: compare how they change with ε, not their height. Percentages are written as shares."
    )
    return "\n".join(["# Replication\n", f"{note}\n", *map(markdown, tables)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is to be run, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m examples.replication", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("project", type=Path)
    parser.add_argument("--sets", type=Path, metavar="FOLDER", help="public sets, *.parquet")
    parser.add_argument("--model", default="en", help="words, vectors and collocations")
    options = parser.parse_args(arguments)
    if options.sets is not None:
        names = {name for one in parse(PUBLISHED_CSV.read_text(encoding="utf-8")) for name in one.datasets}
        sets = [file.resolve() for file in sorted(options.sets.glob("*.parquet")) if file.stem in names]
        if not sets:
            parser.error(f"{options.sets}: holds no set of the papers; name one {', '.join(sorted(names))}")
        make_project(options.project, sets, options.model)
    out = options.project / "replication.md"
    out.write_text(page(options.project), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
