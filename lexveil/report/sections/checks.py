"""What the expectations said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.errors import CheckFailed
from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.records import Check
from lexveil.report.section import Section
from lexveil.report.table import Column, Table

ABOUT = {
    "corpus": "the sampled corpus",
    "collocations": "collocations against their counts",
    "vocab": "vocabulary against every data set",
    "evaluation": "scores of every run, and that they are of the same documents",
    "outputs": "every run against its input, its plan and its ledger",
}


def checks_table(checks: Sequence[Check]) -> Table:
    """One row per suite; the plans of a strategy share one.

    Raises:
        CheckFailed: if a record does not say that all held.
    """
    rows: dict[str, list[int]] = {}
    for check in checks:
        expectations = check.record["expectations"]
        unexpected = sum(expectation["unexpected"] for expectation in expectations)
        if check.record["success"] is not True or unexpected:
            raise CheckFailed(f"{check.file}: {unexpected:,} values are not as expected; run `dvc repro` to see which")
        suite = check.record["suite"]
        name = suite.rpartition("/")[0] if suite.startswith("plans/") else suite
        row = rows.setdefault(name, [0, len(expectations), 0])
        row[0] += 1
        row[2] += sum(expectation["checked"] for expectation in expectations)
    return Table(
        "checks",
        "Every suite and what it said",
        [
            Column("suite", "Suite"),
            Column("about", "What is checked"),
            Column("n_records", "Records", formatting.count),
            Column("n_expectations", "Expectations", formatting.count),
            Column("n_checked", "Values checked", formatting.count),
            Column("verdict", "Verdict"),
        ],
        [(name, ABOUT.get(name) or _of_plans(name), *row, "✓ all hold") for name, row in rows.items()],
    )


def _of_plans(suite: str) -> str:
    """What the suite of some plans is about: plans/STRATEGY, or plans/MECHANISM/STRATEGY of runs at levels."""
    return "budgets of this strategy, at every " + ("level" if suite.count("/") > 1 else "base ε")


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    return {"checks": checks_table(list(report.checks.values()))}


SECTION = Section(
    name="checks",
    title="Checks",
    heading="Checks",
    view=view,
    prose="""\
<p>A stage whose expectations do not hold stops the run, so this page exists only if all of them held.
The <a href="../data_docs/index.html">Data Docs</a> show every expectation; <code>lexveil run</code> writes them beside the checks
that it runs.</p>
{{ render_table(checks, csv=false) }}
""",
)
