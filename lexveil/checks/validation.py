"""Runs a suite over a frame in a Great Expectations context: a record for DVC and Data Docs, or a failed check."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from os import fspath
from typing import Any, Protocol, cast

import great_expectations as gx
import pandas as pd
from great_expectations.core.expectation_validation_result import (
    ExpectationSuiteValidationResult,
    ExpectationValidationResult,
)
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.expectations.expectation import Expectation
from great_expectations.render.renderer.page_renderer import ExpectationSuitePageRenderer, ValidationResultsPageRenderer
from great_expectations.render.view.view import DefaultJinjaPageView

from lexveil.checks.offline_pages import index_page, offline_page
from lexveil.checks.rules import all_judged, judged, with_missing
from lexveil.errors import CheckFailed

# Counts, and none of the values behind them: not even ids leave the frame.
COUNTS_ONLY = {"result_format": "SUMMARY", "partial_unexpected_count": 0, "include_unexpected_rows": False}
NUMBERS = frozenset(
    ["element_count", "missing_count", "missing_percent", "observed_value", "unexpected_count", "unexpected_percent"]
)


class Docs(Protocol):
    """Where Data Docs are put: ``lexveil.artifacts.data_docs.DataDocs``."""

    def put(self, name: str, files: Mapping[str, str], index: Callable[[Sequence[Mapping[str, Any]]], str]) -> None:
        """Keep the files of one validation and renew the index."""
        ...

    def __fspath__(self) -> str:
        """The folder, as messages call it."""
        ...


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """One expectation that holds.

    Attributes:
        column: that it is about, several joined by commas; None for one about the whole table.
        limits: min and max, as far as there are any.
        checked: values or rows.
        unexpected: how many of them were not as expected.
    """

    type: str
    column: str | None
    limits: dict[str, float]
    checked: int
    unexpected: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one suite on one frame; it exists only if all expectations hold.

    Attributes:
        name: of the validation, e.g. "plans/S1/1.0".
        expectations: in the order of the suite.
    """

    name: str
    expectations: list[ExpectationResult]

    def record(self, summary: Mapping[str, Any]) -> dict[str, object]:
        """What DVC keeps: the same numbers give the same bytes, so no time, no run id and no path."""
        expectations = [asdict(expectation) for expectation in self.expectations]
        return {"success": True, "suite": self.name, "expectations": expectations, "summary": dict(summary)}


def validate(name: str, suite: gx.ExpectationSuite, frame: pd.DataFrame, docs: Docs) -> Verdict:
    """Judge ``frame`` by ``suite``.

    Whatever the outcome, ``docs`` then has Data Docs of it (index.html, suite.html: readable without a network) and
    results.json, so that a failure can be looked at.

    Args:
        name: of the validation; its slashes become folders below ``docs``.
        suite: from one of the modules beside this one.
        frame: aggregated numbers and ids, one row per document or group; never text.
        docs: where pages are put.

    Raises:
        CheckFailed: if an expectation does not hold: the number, the place, the limit and the way out.
        KeyError: if ``frame`` lacks a column that the suite judges.
    """
    rules: list[Expectation] = list(suite.expectations)
    frame = with_missing(frame, rules)
    result = _checkpoint(name, suite, frame)
    by_rule = {_identity(outcome): outcome for outcome in result.results}
    results = [by_rule[_identity_of(rule)] for rule in rules]
    docs.put(name, _pages(name, suite, result, results), index_page)
    broken = [(rule, outcome) for rule, outcome in zip(rules, results, strict=True) if not outcome.success]
    if broken:
        raise CheckFailed(_message(name, broken, frame, all_judged(rules), docs))
    return Verdict(name, [_entry(rule, outcome) for rule, outcome in zip(rules, results, strict=True)])


def merge(name: str, verdicts: list[Verdict]) -> Verdict:
    """One verdict over several frames of the same kind: the numbers checked are added up, rule by rule."""
    total: dict[tuple[str, str | None], ExpectationResult] = {}
    for result in (result for verdict in verdicts for result in verdict.expectations):
        known = total.get((result.type, result.column), replace(result, checked=0, unexpected=0))
        checked, unexpected = known.checked + result.checked, known.unexpected + result.unexpected
        total[result.type, result.column] = replace(known, checked=checked, unexpected=unexpected)
    return Verdict(name, list(total.values()))


def _checkpoint(name: str, suite: gx.ExpectationSuite, frame: pd.DataFrame) -> ExpectationSuiteValidationResult:
    # The library reports its own progress and deprecations; a stage's stderr is kept for its one line.
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
    context.suites.add(suite)
    rows = context.data_sources.add_pandas("aggregates").add_dataframe_asset(name)
    validation = context.validation_definitions.add(
        gx.ValidationDefinition(name=name, data=rows.add_batch_definition_whole_dataframe("all"), suite=suite)
    )
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(name=name, validation_definitions=[validation], result_format=COUNTS_ONLY)
    )
    run = RunIdentifier(run_name=name, run_time=datetime.now(UTC))
    (result,) = checkpoint.run(batch_parameters={"dataframe": frame}, run_id=run).run_results.values()
    return result


def _identity_of(rule: Expectation) -> tuple[str, tuple[str, ...]]:
    return rule.expectation_type, tuple(judged(rule))


def _identity(result: ExpectationValidationResult) -> tuple[str, tuple[str, ...]]:
    # Results come back grouped by column, not in the order of the suite.
    assert result.expectation_config is not None
    kwargs = result.expectation_config.kwargs
    columns = kwargs.get("column_list") or ([kwargs["column"]] if "column" in kwargs else [])
    return result.expectation_config.type, tuple(columns)


def _limits(rule: Expectation) -> dict[str, float]:
    limits = {"min": getattr(rule, "min_value", None), "max": getattr(rule, "max_value", None)}
    return {end: value for end, value in limits.items() if value is not None}


def _counts(result: ExpectationValidationResult) -> tuple[int, int]:
    """How many were checked, and how many of them were not as expected."""
    numbers = result.result
    if "element_count" in numbers:
        return int(numbers["element_count"]), int(numbers["unexpected_count"])
    return int(numbers.get("observed_value") or 0), int(not result.success)


def _entry(rule: Expectation, result: ExpectationValidationResult) -> ExpectationResult:
    return ExpectationResult(rule.expectation_type, ", ".join(judged(rule)) or None, _limits(rule), *_counts(result))


def _message(
    name: str,
    broken: list[tuple[Expectation, ExpectationValidationResult]],
    frame: pd.DataFrame,
    known: list[str],
    docs: Docs,
) -> str:
    rule, result = broken[0]
    meta = rule.meta or {}
    if _has_raised(result) or not {"fault", "way_out"} <= meta.keys():
        fault, way_out = f"{rule.expectation_type} could not be evaluated", "This is a fault of lexveil/checks"
    else:
        checked, unexpected = _counts(result)
        facts = {
            "column": ", ".join(judged(rule)),
            "checked": checked,
            "unexpected": unexpected,
            "missing": ", ".join(column for column in known if frame[column].isna().any()),
        } | _furthest(rule, frame)
        fault, way_out = meta["fault"].format(**facts), meta["way_out"].format(**facts)
    more = f" {len(broken) - 1} more of this suite's expectations do not hold." if len(broken) > 1 else ""
    return f"{name}: {fault}. {way_out}.{more} All results: {fspath(docs)}/{name}/index.html"


def _has_raised(result: ExpectationValidationResult) -> bool:
    # One report for the expectation, or one for each number it needed.
    info = result.exception_info or {}
    return any(report.get("raised_exception") for report in (info, *info.values()) if isinstance(report, dict))


def _furthest(rule: Expectation, frame: pd.DataFrame) -> dict[str, object]:
    """The row that is furthest beyond a limit, with its value and the limit; empty for rules without limits."""
    limits, columns = _limits(rule), judged(rule)
    if not limits or len(columns) != 1 or frame.empty:
        return {}
    values = frame[columns[0]].astype("float64")
    excess = pd.DataFrame({end: (values - limit) * (1 if end == "max" else -1) for end, limit in limits.items()})
    if excess.isna().all(axis=None):
        return {}
    end = excess.max().idxmax()
    row = excess[end].idxmax()
    return {str(key): value for key, value in frame.loc[row].items()} | {"worst": values.loc[row], "limit": limits[end]}


@cache
def _view() -> Any:
    """One view for all pages of a process: compiling its templates takes longer than rendering them."""
    return DefaultJinjaPageView()


def _pages(
    name: str,
    suite: gx.ExpectationSuite,
    result: ExpectationSuiteValidationResult,
    results: list[ExpectationValidationResult],
) -> dict[str, str]:
    # Any: the library's renderers carry no annotations.
    view = _view()
    results_renderer: Any = ValidationResultsPageRenderer()
    suite_renderer: Any = ExpectationSuitePageRenderer()
    plain = _plain(name, result, results)
    about = f"Judged at {plain['run_time'][:19]} UTC by Great Expectations {gx.__version__}"
    rendered = {
        "index.html": view.render(results_renderer.render(result)),
        "suite.html": view.render(suite_renderer.render(suite)),
    }
    pages = {file: offline_page(page, name, about) for file, page in rendered.items()}
    return pages | {"results.json": json.dumps(plain, indent=2, sort_keys=True) + "\n"}


def _plain(
    name: str, result: ExpectationSuiteValidationResult, results: list[ExpectationValidationResult]
) -> dict[str, Any]:
    """The checkpoint's result without tracebacks and without anything that could hold a value of the frame."""
    entries = []
    for outcome in results:
        known = cast(dict[str, Any], outcome.to_json_dict())
        config = known["expectation_config"]
        kwargs = {key: value for key, value in config["kwargs"].items() if key != "batch_id"}
        entries.append(
            {
                "success": known["success"],
                "expectation": {"type": config["type"], "kwargs": kwargs, "description": config.get("description")},
                "result": {key: value for key, value in known["result"].items() if key in NUMBERS},
            }
        )
    return {
        "success": bool(result.success),
        "name": name,
        "run_time": result.meta["run_id"].run_time.isoformat(),
        "great_expectations": gx.__version__,
        "statistics": dict(result.statistics),
        "results": entries,
    }
