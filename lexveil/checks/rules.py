"""How a rule is said: one expectation, the sentence for Data Docs, and what to say when it does not hold.

A fault is a template for ``str.format``. It may name ``unexpected``, ``checked``, ``worst`` and ``limit``, the
``column`` that is judged, the columns ``missing`` a value, and any column of the frame, which then stands for the row
that is furthest from the limit. Frames hold numbers and ids only, so no message can quote a text.
"""

from __future__ import annotations

from collections.abc import Sequence

import great_expectations as gx
import pandas as pd
from great_expectations.expectations.core.expect_column_sum_to_be_between import ExpectColumnSumToBeBetween
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween
from great_expectations.expectations.core.expect_column_values_to_be_unique import ExpectColumnValuesToBeUnique
from great_expectations.expectations.core.expect_compound_columns_to_be_unique import ExpectCompoundColumnsToBeUnique
from great_expectations.expectations.core.expect_table_row_count_to_be_between import ExpectTableRowCountToBeBetween
from great_expectations.expectations.expectation import Expectation

MISSING = "n_missing"  # the column that ``with_missing`` adds
TOLERANCE = 1e-9  # what sums of float64 may differ by, relative to the budget or in bits


def between(
    column: str,
    says: str,
    fault: str,
    way_out: str,
    *,
    low: float | None = None,
    high: float | None = None,
) -> Expectation:
    """Every value of ``column`` lies in [low, high]; either end may be left open. Data Docs show the limits as well."""
    ends = {"=": low} if low == high else {">=": low, "<=": high}
    limits = " and ".join(f"{sign} {end:g}" for sign, end in ends.items() if end is not None)
    return ExpectColumnValuesToBeBetween(
        column=column,
        min_value=low,
        max_value=high,
        description=f"{says}: {column} {limits}",
        meta={"fault": fault, "way_out": way_out},
    )


def none_of(column: str, says: str, fault: str, way_out: str) -> Expectation:
    """``column`` counts something that must not occur: it is 0 in every row."""
    return between(column, says, fault, way_out, low=0, high=0)


def each_once(columns: Sequence[str], says: str, fault: str, way_out: str) -> Expectation:
    """No two rows agree in all of ``columns``."""
    meta = {"fault": fault, "way_out": way_out}
    if len(columns) == 1:
        return ExpectColumnValuesToBeUnique(column=columns[0], description=says, meta=meta)
    return ExpectCompoundColumnsToBeUnique(column_list=list(columns), description=says, meta=meta)


def at_least_one_row(says: str, fault: str, way_out: str) -> Expectation:
    """The frame is not empty."""
    return ExpectTableRowCountToBeBetween(min_value=1, description=says, meta={"fault": fault, "way_out": way_out})


def at_least_one_in_all(column: str, says: str, fault: str, way_out: str) -> Expectation:
    """The counts in ``column`` add up to more than nothing."""
    return ExpectColumnSumToBeBetween(
        column=column, min_value=1, description=says, meta={"fault": fault, "way_out": way_out}
    )


def suite_of(name: str, rows: str, rules: Sequence[Expectation], way_out: str) -> gx.ExpectationSuite:
    """A suite of ``rules``, and of one more: every column they judge has a value in every row.

    Without it a missing number would pass, because an expectation about values skips what is null.

    Args:
        name: of the suite.
        rows: what one row of the frame is, in the plural, as messages call it.
        rules: in the order in which people should hear of them.
        way_out: what to do about a missing value.
    """
    complete = none_of(
        MISSING,
        f"No {rows} lack a value that is judged here",
        f"{{unexpected:,}} of {{checked:,}} {rows} have no value in {{missing}} (up to {{worst:.0f}} each, limit 0)",
        way_out,
    )
    return gx.ExpectationSuite(name=name, expectations=[*rules, complete])


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
