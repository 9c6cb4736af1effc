"""Pipeline stage that writes the HTML report: metrics, checks, plans, embeddings ->
report/{index.html,*.csv}, runs/.
"""

from __future__ import annotations

from pathlib import Path

from lexveil.base import paths
from lexveil.base.runtime.tables import atomic_directory, atomic_file, write_json
from lexveil.io.config import MachineParams, Params, load_configuration, load_params
from lexveil.io.execution.stage import stage_main
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.page import render
from lexveil.lab.report.run_rows import run_rows
from lexveil.lab.report.sections import SECTIONS
from lexveil.lab.report.table import to_csv


def run(params: Params, machine: MachineParams, out: Path, runs: Path) -> None:
    """Write the HTML report of the experiment that ``params`` describes into folder ``out``, and
    the metrics of each run into folder ``runs``.

    Raises:
        MissingArtifactError: if an artifact does not exist yet.
        CheckFailedError: if a check did not hold, or two plans have different budgets for the same
            texts.
    """
    report = ReportData(params, machine)
    page = render(report, SECTIONS)
    texts = {"index.html": page}
    for section in SECTIONS:
        texts |= {name: to_csv(*table) for name, table in section.files(report).items()}
    for name, text in texts.items():
        with atomic_file(out / name) as partial:
            partial.write_text(text, encoding="utf-8", newline="\n")
    with atomic_directory(runs) as folder:
        for name, figures in run_rows(report).items():
            write_json(figures, folder / f"{name}.json")
    print(
        f"report: {len(report.runs)} runs, {len(page.encode()) / 1000:,.0f} kB -> "
        f"{out / 'index.html'}"
    )


def main() -> None:
    """Run this stage of the DVC pipeline: write the report."""
    run(load_params(), load_configuration().machine, paths.REPORT, paths.RUNS)


if __name__ == "__main__":
    stage_main(main, pandas=False)
