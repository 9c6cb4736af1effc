"""Rules: an expectation, its sentence for Data Docs, and the message if it does not hold.

A fault is a template for ``str.format`` that follows who it is about (the ``subject`` of a suite).
It may name ``unexpected``, ``checked``, ``worst`` and ``limit``, and any column of the frame, which
then stands for the row that is furthest from the limit. Frames hold numbers and ids only, so no
message can quote a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import great_expectations as gx
import pandas as pd
from great_expectations.expectations.core.expect_column_sum_to_be_between import (
    ExpectColumnSumToBeBetween,
)
from great_expectations.expectations.core.expect_column_values_to_be_between import (
    ExpectColumnValuesToBeBetween,
)
from great_expectations.expectations.core.expect_column_values_to_be_unique import (
    ExpectColumnValuesToBeUnique,
)
from great_expectations.expectations.core.expect_compound_columns_to_be_unique import (
    ExpectCompoundColumnsToBeUnique,
)
from great_expectations.expectations.core.expect_table_row_count_to_be_between import (
    ExpectTableRowCountToBeBetween,
)
from great_expectations.expectations.expectation import Expectation

MISSING = "n_missing"  # the column that ``with_missing`` adds
TOLERANCE = 1e-9  # what sums of float64 may differ by, relative to the budget or in bits
SUBJECT = "{subject}"  # stands for who a fault is about
LIMIT = " ({column} {direction} {worst:.6g}, limit {limit:g})"


class Rule(NamedTuple):
    """An expectation of Great Expectations and its terms, before its suite says who its fault is
    about.
    """

    kind: type[Expectation]
    terms: dict[str, Any]
    says: str
    fault: str
    way_out: str | None


def between(
    column: str,
    says: str,
    fault: str,
    way_out: str | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
) -> Rule:
    """Every value of ``column`` lies in [low, high]; either end may be left open. Data Docs show
    the limits as well.

    Args:
        says: what holds.
        fault: what does not, after who it is about.
        way_out: what to do; None is what the suite says.
    """
    ends = {"=": low} if low == high else {">=": low, "<=": high}
    limits = " and ".join(f"{sign} {end:g}" for sign, end in ends.items() if end is not None)
    terms = {"column": column, "min_value": low, "max_value": high}
    says = f"{says}: {column} {limits}"
    return Rule(ExpectColumnValuesToBeBetween, terms, says, f"{SUBJECT} {fault}{LIMIT}", way_out)


def none_of(column: str, says: str, fault: str, way_out: str | None = None) -> Rule:
    """``column`` counts something that must not occur: it is 0 in every row."""
    return between(column, says, fault, way_out, low=0, high=0)


def each_once(*columns: str, way_out: str | None = None) -> Rule:
    """No two rows agree in all of ``columns``."""
    names = ", ".join(columns)
    says, fault = (
        f"No two rows have the same {names}",
        f"{SUBJECT} are there more than once ({names})",
    )
    if len(columns) == 1:
        return Rule(ExpectColumnValuesToBeUnique, {"column": names}, says, fault, way_out)
    return Rule(
        ExpectCompoundColumnsToBeUnique, {"column_list": list(columns)}, says, fault, way_out
    )


def at_least_one(what: str, column: str | None = None, way_out: str | None = None) -> Rule:
    """There is a row, or the counts in ``column`` add up to more than nothing."""
    says, fault = f"There is at least one {what}", f"there is no {what}, at least 1 is needed"
    if column is None:
        return Rule(ExpectTableRowCountToBeBetween, {"min_value": 1}, says, fault, way_out)
    return Rule(
        ExpectColumnSumToBeBetween, {"column": column, "min_value": 1}, says, fault, way_out
    )


def suite_of(
    name: str, rows: str, rules: Sequence[Rule], way_out: str, subject: str | None = None
) -> gx.ExpectationSuite:
    """A suite of ``rules``, and of one more: every column they judge has a value in every row.

    Without it a missing number would pass, because an expectation about values skips what is null.

    Args:
        name: of the suite.
        rows: what one row of the frame is, in the plural, as messages call it.
        rules: in the order in which people should hear of them.
        way_out: what to do, where a rule says nothing else.
        subject: who faults are about; None is how many of the rows.
    """
    counted = f"{{unexpected:,}} of {{checked:,}} {rows}"
    complete = none_of(
        MISSING, f"No {rows} lack a value that is judged here", "have no value in {missing}"
    )
    complete = complete._replace(fault=complete.fault.replace(SUBJECT, counted))
    expectations = []
    for rule in (*rules, complete):
        meta = {
            "fault": rule.fault.replace(SUBJECT, subject or counted),
            "way_out": rule.way_out or way_out,
        }
        expectations.append(rule.kind(**rule.terms, description=rule.says, meta=meta))
    return gx.ExpectationSuite(name=name, expectations=expectations)


def with_missing(frame: pd.DataFrame, rules: Sequence[Expectation]) -> pd.DataFrame:
    """``frame`` with the column that counts, row by row, the judged columns without a value."""
    return frame.assign(**{MISSING: frame[all_judged(rules)].isna().sum(axis=1)})


def all_judged(rules: Sequence[Expectation]) -> list[str]:
    """The columns of a frame that some rule is about."""
    return sorted({column for rule in rules for column in judged(rule)} - {MISSING})


def judged(rule: Expectation) -> list[str]:
    """The columns a rule is about; none for a rule about the whole table."""
    if isinstance(rule, ExpectCompoundColumnsToBeUnique):
        return [str(column) for column in rule.column_list]
    column = getattr(rule, "column", None)
    return [] if column is None else [str(column)]
