"""Report section "reproduce": results of the data checks, parameters, and versions of libraries."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Any

import yaml

from lexveil.base.errors import CheckFailedError
from lexveil.lab.report import formatting
from lexveil.lab.report.data import Record, ReportData
from lexveil.lab.report.table import Column, Table

ABOUT = {
    "corpus": "the sampled corpus",
    "collocations": "collocations against their counts",
    "vocab": "vocabulary against every data set",
    "evaluation": "scores of every run, and that they are of the same documents",
    "outputs": "every run against its input, its plan and its ledger",
}
LIBRARIES = (
    "dvc",
    "duckdb",
    "gensim",
    "great-expectations",
    "jinja2",
    "numba",
    "numpy",
    "pandas",
    "prefect",
    "pyarrow",
    "pynndescent",
    "randomgen",
    "scikit-learn",
    "scipy",
)


def checks_table(checks: Mapping[str, Record]) -> Table:
    """Return a table of the data checks with one row per expectation suite; the plans of a strategy
    share a row.

    Args:
        checks: records by file name.

    Raises:
        CheckFailedError: if some expectation of a record does not hold.
    """
    rows: dict[str, dict[str, Any]] = {}
    for file, record in checks.items():
        expectations = record["expectations"]
        unexpected = sum(expectation["unexpected"] for expectation in expectations)
        if record["success"] is not True or unexpected:
            raise CheckFailedError(
                f"{file}: {unexpected:,} values are not as expected; run `dvc repro` to see which"
            )
        suite = record["suite"]
        about = ABOUT.get(suite)
        if suite.startswith("plans/"):  # plans/STRATEGY/EPSILON, or plans/MECHANISM/STRATEGY/LEVEL
            about = (
                "budgets of this strategy, at every "
                f"{'level' if suite.count('/') > 2 else 'base ε'}"
            )
            suite = suite.rpartition("/")[0]
        row = rows.setdefault(
            suite,
            {
                "suite": suite,
                "about": about,
                "n_records": 0,
                "n_expectations": len(expectations),
                "n_checked": 0,
            }
            | {"verdict": "✓ all hold"},
        )
        row["n_records"] += 1
        row["n_checked"] += sum(expectation["checked"] for expectation in expectations)
    columns = [
        Column("suite", "Suite"),
        Column("about", "What is checked"),
        Column("n_records", "Records", formatting.count),
        Column("n_expectations", "Expectations", formatting.count),
        Column("n_checked", "Values checked", formatting.count),
        Column("verdict", "Verdict"),
    ]
    return Table("checks", columns, list(rows.values()))


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "reproduce": tables and plain values."""
    settings = report.params.model_dump()
    return {
        "checks": checks_table(report.checks),
        "params_text": yaml.safe_dump(
            settings, sort_keys=False, default_flow_style=None, width=46
        ).strip(),
        # Leave out Python's version, because its patch level changes no result.
        "versions": {name: metadata.version(name) for name in LIBRARIES},
    }
