"""The sections of the report, in the order of the page. A new one is its file and its entry here."""

from __future__ import annotations

from lexveil.report.section import Section
from lexveil.report.sections import (
    answer,
    budgets,
    checks,
    collocations,
    corpus,
    coverage,
    deniability,
    equal_recovery,
    evaluation,
    glance,
    guarantee,
    neighbours,
    recovery,
    reproduce,
    results,
    samples,
)

SECTIONS: tuple[Section, ...] = (
    answer.SECTION,
    guarantee.SECTION,
    glance.SECTION,
    equal_recovery.SECTION,
    results.SECTION,
    recovery.SECTION,
    samples.SECTION,
    evaluation.SECTION,
    deniability.SECTION,
    budgets.SECTION,
    coverage.SECTION,
    corpus.SECTION,
    collocations.SECTION,
    neighbours.SECTION,
    checks.SECTION,
    reproduce.SECTION,
)
