"""Suites of Great Expectations with messages that state what is wrong, where, and what to do.

An expectation has a sentence that should hold (``description``) for Data Docs. Its ``meta`` has a
``fault``, the message if the sentence does not hold, and may have a ``way_out``, the advice. Both
are templates for ``str.format``. They may use ``subject``, ``unexpected``, ``checked``, ``worst``
and ``limit``, and any column of the frame. The value of a column is its value in the row furthest
from the limit. Frames hold numbers and ids only, so no message can quote a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import great_expectations as gx
import great_expectations.expectations as gxe
import pandas as pd
from great_expectations.expectations.expectation import Expectation

MISSING = "n_missing"  # the column that ``with_missing`` adds
TOLERANCE = 1e-9  # allowed rounding error of float64 sums, relative to the budget or in bits


def suite_of(
    name: str,
    rows: str,
    expectations: Sequence[Expectation],
    way_out: str,
    subject: str | None = None,
) -> gx.ExpectationSuite:
    """Return a suite of ``expectations``, and add one more expectation: every column that they
    check has a value in every row.

    Without that expectation a missing number would pass, because expectations about values skip
    null.

    Args:
        name: name of the suite.
        rows: noun in the plural for the rows of the frame, for messages.
        expectations: the expectations, in the order in which their faults should be reported.
        way_out: advice for expectations without advice of their own.
        subject: subject of the faults; None takes the number of violating rows.
    """
    counted = f"{{unexpected:,}} of {{checked:,}} {rows}"
    complete = zero(
        MISSING,
        holds=f"No {rows} lack a value that the suite checks",
        fault=f"{counted} have no value in {{missing}}",
    )
    return gx.ExpectationSuite(
        name=name,
        expectations=[*map(copy, expectations), complete],
        meta={"subject": subject or counted, "way_out": way_out},
    )


def zero(
    column: str, *, holds: str, fault: str, way_out: str | None = None
) -> gxe.ExpectColumnValuesToBeBetween:
    """Return the expectation that a column of fault counts is 0 in every row.

    Args:
        holds: the sentence that should hold, for Data Docs.
        fault, way_out: as in the ``meta`` of an expectation.
    """
    meta = {"fault": fault} if way_out is None else {"fault": fault, "way_out": way_out}
    return gxe.ExpectColumnValuesToBeBetween(
        column=column, min_value=0, max_value=0, description=holds, meta=meta
    )


def with_missing(frame: pd.DataFrame, expectations: Sequence[Expectation]) -> pd.DataFrame:
    """Return ``frame`` with an additional column: for each row, the number of missing values in the
    columns that the expectations check.
    """
    return frame.assign(**{MISSING: frame[all_judged(expectations)].isna().sum(axis=1)})


def all_judged(expectations: Sequence[Expectation]) -> list[str]:
    """Return the columns of a frame that at least one expectation checks."""
    return sorted({column for each in expectations for column in judged(each)} - {MISSING})


def judged(expectation: Expectation) -> list[str]:
    """Return the columns that an expectation checks. The list is empty for an expectation about the
    whole table.
    """
    if isinstance(expectation, gxe.ExpectCompoundColumnsToBeUnique):
        return [str(column) for column in expectation.column_list]
    column = getattr(expectation, "column", None)
    return [] if column is None else [str(column)]
