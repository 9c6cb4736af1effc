"""Validation of a data frame by a Great Expectations suite. The result is a record for DVC and an
HTML page, or an error if a check fails.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import great_expectations as gx
import great_expectations.expectations as gxe
import pandas as pd
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.expectations.expectation import Expectation

from lexveil.base.errors import CheckFailedError
from lexveil.release.checks.data_docs import DataDocs
from lexveil.release.checks.suites import all_judged, judged, with_missing

# The end of a message about values, with the value furthest beyond a limit.
LIMIT = " ({column} {direction} {worst:.6g}, limit {limit:g})"
# Report counts only, and no values, so that not even ids leave the frame.
COUNTS_ONLY = {
    "result_format": "SUMMARY",
    "partial_unexpected_count": 0,
    "include_unexpected_rows": False,
}


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """Result of one expectation.

    Attributes:
        column: the checked column; several columns are joined by commas, None stands for the whole
            table.
        limits: min and max, if they exist.
        checked: number of checked values or rows.
        unexpected: number of values or rows that violate the expectation.
    """

    type: str
    column: str | None
    limits: dict[str, float]
    checked: int
    unexpected: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one suite on one frame. A verdict exists only if all expectations hold.

    Attributes:
        name: name of the validation, for example "plans/S1/1.0".
        expectations: results in the order of the suite.
        page: HTML page of the Data Docs.
    """

    name: str
    expectations: list[ExpectationResult]
    page: str = ""

    def record(self, summary: Mapping[str, Any]) -> dict[str, object]:
        """Return the validation's result as a dictionary for DVC. The dictionary has no time, no
        run id and no path, so the same numbers give the same bytes.
        """
        expectations = [asdict(expectation) for expectation in self.expectations]
        return {
            "success": True,
            "suite": self.name,
            "expectations": expectations,
            "summary": dict(summary),
        }


def validate(name: str, suite: gx.ExpectationSuite, frame: pd.DataFrame, docs: DataDocs) -> Verdict:
    """Validate ``frame`` by ``suite``.

    The page and results.json are written to ``docs`` whether the validation passes or fails, so
    that a failure can be inspected.

    Args:
        name: name of the validation; its slashes become folders below ``docs``.
        suite: a suite from a module of this package.
        frame: aggregated numbers and ids, one row per document or group; never text.
        docs: folder for the pages.

    Raises:
        CheckFailedError: if an expectation does not hold; the message has the number, the place,
            the limit and the way out.
        KeyError: if ``frame`` lacks a column that the suite checks.
    """
    rules: list[Expectation] = list(suite.expectations)
    frame = with_missing(frame, rules)
    judgement = (
        _context()
        .data_sources.pandas_default.read_dataframe(frame)
        .validate(suite, result_format=COUNTS_ONLY)
    )
    # The results are grouped by column, not in the order of the suite.
    outcomes = {_config(outcome).description: outcome for outcome in judgement.results}
    results = {rule.description: _result(rule, outcomes[rule.description]) for rule in rules}
    page = docs.put(
        {
            "success": bool(judgement.success),
            "name": name,
            "run_time": datetime.now(UTC).isoformat(),
            "great_expectations": gx.__version__,
            "results": [
                {
                    "success": bool(outcomes[rule.description].success),
                    "says": _says(rule),
                    **asdict(results[rule.description]),
                }
                for rule in rules
            ],
        }
    )
    broken = [rule for rule in rules if not outcomes[rule.description].success]
    if broken:
        rule = broken[0]
        fault = _fault(suite, rule, outcomes[rule.description], frame)
        more = (
            f" {len(broken) - 1} more expectations of this suite do not hold."
            if len(broken) > 1
            else ""
        )
        raise CheckFailedError(f"{name}: {fault}.{more} All results: {docs.root}/{name}/index.html")
    return Verdict(name, list(results.values()), page)


def merge(name: str, verdicts: Sequence[Verdict]) -> Verdict:
    """Merge the results of one suite on several frames into one result. The numbers of checked
    values are added for each expectation.
    """
    total: dict[tuple[str, str | None], ExpectationResult] = {}
    for result in (result for verdict in verdicts for result in verdict.expectations):
        known = total.get((result.type, result.column), replace(result, checked=0, unexpected=0))
        checked = known.checked + result.checked
        unexpected = known.unexpected + result.unexpected
        total[result.type, result.column] = replace(known, checked=checked, unexpected=unexpected)
    return Verdict(name, list(total.values()))


@cache
def _context() -> EphemeralDataContext:
    """Return the Great Expectations context that all validations of a process share."""
    # Suppress the library's own progress and deprecation messages, because the last line of a
    # stage's stderr must be its error.
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(
        mode="ephemeral",
        project_config=DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
            analytics_enabled=False,
            progress_bars=ProgressBarsConfig(globally=False),
        ),
    )
    assert isinstance(context, EphemeralDataContext)
    return context


def _config(outcome: ExpectationValidationResult) -> Any:
    assert outcome.expectation_config is not None
    return outcome.expectation_config


def _says(rule: Expectation) -> str:
    """Return a sentence that describes an expectation and its limits, for Data Docs."""
    limits = _limits(rule)
    if not limits or not _is_of_values(rule):
        return str(rule.description)
    signs = {"min": ">=", "max": "<="}
    ends = [f"{signs[end]} {limit:g}" for end, limit in limits.items()]
    if limits.get("min") == limits.get("max"):
        ends = [f"= {limits['min']:g}"]
    return f"{rule.description}: {rule.column} {' and '.join(ends)}"


def _is_of_values(rule: Expectation) -> bool:
    return isinstance(rule, gxe.ExpectColumnValuesToBeBetween)


def _limits(rule: Expectation) -> dict[str, float]:
    limits = {"min": getattr(rule, "min_value", None), "max": getattr(rule, "max_value", None)}
    return {end: value for end, value in limits.items() if value is not None}


def _result(rule: Expectation, outcome: ExpectationValidationResult) -> ExpectationResult:
    numbers = outcome.result
    if "element_count" in numbers:
        counts = int(numbers["element_count"]), int(numbers["unexpected_count"])
    else:
        counts = int(numbers.get("observed_value") or 0), int(not outcome.success)
    return ExpectationResult(
        rule.expectation_type, ", ".join(judged(rule)) or None, _limits(rule), *counts
    )


def _fault(
    suite: gx.ExpectationSuite,
    rule: Expectation,
    outcome: ExpectationValidationResult,
    frame: pd.DataFrame,
) -> str:
    """Return the error message for a violated expectation, with advice."""
    # The fault message is about the expectation itself, or about each number that it needed.
    info = outcome.exception_info or {}
    if any(
        report.get("raised_exception")
        for report in (info, *info.values())
        if isinstance(report, dict)
    ):
        return (
            f"{rule.expectation_type} could not be evaluated. This is a fault of lexveil/lab/checks"
        )
    result = _result(rule, outcome)
    columns = all_judged(suite.expectations)
    missing = ", ".join(column for column in columns if frame[column].isna().any())
    facts = asdict(result) | {"missing": missing} | _furthest(result, frame)
    said = suite.meta | (rule.meta or {})
    limit = LIMIT if _is_of_values(rule) else ""
    template = f"{said['fault']}{limit}. {said['way_out']}"
    return template.replace("{subject}", said["subject"]).format(**facts)


def _furthest(result: ExpectationResult, frame: pd.DataFrame) -> dict[str, object]:
    """Return the row that is furthest beyond a limit, as a dictionary of its columns, with the
    violating value and the limit. The result is empty for expectations without limits.
    """
    if not result.limits or result.column is None or frame.empty:
        return {}
    values = frame[result.column].astype("float64")
    excess = pd.DataFrame(
        {
            end: (values - limit) * (1 if end == "max" else -1)
            for end, limit in result.limits.items()
        }
    )
    if excess.isna().all(axis=None):
        return {}
    end = excess.max().idxmax()
    row = excess[end].idxmax()
    facts = {str(key): value for key, value in frame.loc[row].items()}
    direction = "up to" if end == "max" else "down to"
    return facts | {"worst": values.loc[row], "limit": result.limits[end], "direction": direction}
