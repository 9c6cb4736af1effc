"""Write the report: metrics, checks, plans, embeddings -> report/{index.html,metrics.json,runs.csv,pmi.csv}."""

from __future__ import annotations

from pathlib import Path

from lexveil import paths
from lexveil.config import Params, load_params
from lexveil.report.data import ReportData
from lexveil.report.page import render
from lexveil.report.sections import SECTIONS
from lexveil.report.table import to_csv
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import atomic_file, write_json


def run(params: Params, out: Path) -> None:
    """Read every artifact that ``params`` names and write the files of the report into folder ``out``.

    Raises:
        MissingArtifact: if one is not there yet.
        CheckFailed: if a check did not hold, or two plans contradict each other.
    """
    report = ReportData(params)
    page = render(report, SECTIONS)
    texts, metrics = {"index.html": page}, dict[str, object]()
    for section in SECTIONS:
        texts |= {name: to_csv(*table) for name, table in section.files(report).items()}
        metrics |= section.metrics(report)
    for name, text in texts.items():
        with atomic_file(out / name) as partial:
            partial.write_text(text, encoding="utf-8", newline="\n")
    write_json(metrics, out / "metrics.json")
    print(f"report: {len(report.runs)} runs, {len(page.encode()) / 1000:,.0f} kB -> {out / 'index.html'}")


def main() -> None:
    """Run the stage."""
    run(load_params(), paths.REPORT)


if __name__ == "__main__":
    stage_main(main, pandas=False)
