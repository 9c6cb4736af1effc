"""Rules: an expectation, a sentence about it for Data Docs, and a message if it does not hold.

A fault is a template for ``str.format`` that follows the subject of the suite. The template may use
``unexpected``, ``checked``, ``worst`` and ``limit``, and any column of the frame, whose value is
then that of the row furthest from the limit. Frames hold numbers and ids only, so no message can
quote a text.
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
TOLERANCE = 1e-9  # allowed rounding error of float64 sums, relative to the budget or in bits
SUBJECT = "{subject}"  # placeholder for the subject of a fault
LIMIT = " ({column} {direction} {worst:.6g}, limit {limit:g})"


class Rule(NamedTuple):
    """An expectation of Great Expectations with its arguments and messages, before a suite inserts
    the subject of the fault.
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
    """Rule: every value of ``column`` lies in [low, high]; None leaves an end open. Data Docs also
    show the limits.

    Args:
        says: the sentence that holds.
        fault: message about a violation, which follows the subject.
        way_out: advice for a violation; None takes the advice of the suite.
    """
    ends = {"=": low} if low == high else {">=": low, "<=": high}
    limits = " and ".join(f"{sign} {end:g}" for sign, end in ends.items() if end is not None)
    terms = {"column": column, "min_value": low, "max_value": high}
    says = f"{says}: {column} {limits}"
    return Rule(ExpectColumnValuesToBeBetween, terms, says, f"{SUBJECT} {fault}{LIMIT}", way_out)


def none_of(column: str, says: str, fault: str, way_out: str | None = None) -> Rule:
    """Rule: ``column``, which counts something that must not occur, is 0 in every row."""
    return between(column, says, fault, way_out, low=0, high=0)


def each_once(*columns: str, way_out: str | None = None) -> Rule:
    """Rule: no two rows agree in all of ``columns``."""
    names = ", ".join(columns)
    says = f"No two rows have the same {names}"
    fault = f"{SUBJECT} are there more than once ({names})"
    if len(columns) == 1:
        return Rule(ExpectColumnValuesToBeUnique, {"column": names}, says, fault, way_out)
    return Rule(
        ExpectCompoundColumnsToBeUnique, {"column_list": list(columns)}, says, fault, way_out
    )


def at_least_one(what: str, column: str | None = None, way_out: str | None = None) -> Rule:
    """Rule: the frame has a row, or the counts in ``column`` add up to at least 1."""
    says = f"There is at least one {what}"
    fault = f"there is no {what}, at least 1 is needed"
    if column is None:
        return Rule(ExpectTableRowCountToBeBetween, {"min_value": 1}, says, fault, way_out)
    return Rule(
        ExpectColumnSumToBeBetween, {"column": column, "min_value": 1}, says, fault, way_out
    )


def at_most(limit: int, what: str) -> Rule:
    """Rule: the frame has no more rows than ``limit``."""
    says = f"There are at most {limit:,} {what}s"
    fault = f"there are more than {limit:,} {what}s"
    return Rule(ExpectTableRowCountToBeBetween, {"max_value": limit}, says, fault, None)


def suite_of(
    name: str, rows: str, rules: Sequence[Rule], way_out: str, subject: str | None = None
) -> gx.ExpectationSuite:
    """Return a suite of ``rules``, and one more rule: every column that they check has a value in
    every row.

    Without that rule a missing number would pass, because expectations about values skip null.

    Args:
        name: name of the suite.
        rows: noun in the plural for the rows of the frame, for messages.
        rules: rules in the order in which people should read their faults.
        way_out: advice for rules that have none of their own.
        subject: subject of the faults; None takes the number of violating rows.
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
    """Return ``frame`` with a column that counts, for each row, the checked columns without a
    value.
    """
    return frame.assign(**{MISSING: frame[all_judged(rules)].isna().sum(axis=1)})


def all_judged(rules: Sequence[Expectation]) -> list[str]:
    """Return the columns of a frame that at least one rule checks."""
    return sorted({column for rule in rules for column in judged(rule)} - {MISSING})


def judged(rule: Expectation) -> list[str]:
    """Return the columns that a rule checks; none for a rule about the whole table."""
    if isinstance(rule, ExpectCompoundColumnsToBeUnique):
        return [str(column) for column in rule.column_list]
    column = getattr(rule, "column", None)
    return [] if column is None else [str(column)]
