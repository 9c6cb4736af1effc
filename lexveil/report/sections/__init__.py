"""The sections of the report, in the order of the page. A new one is its module and template, and its entry here."""

from __future__ import annotations

from lexveil.report.section import Section
from lexveil.report.sections import (
    answer,
    budgets,
    corpus,
    deniability,
    equal_recovery,
    evaluation,
    guarantee,
    neighbours,
    reproduce,
    results,
    samples,
)

SECTIONS = (
    Section("answer.html.j2", "The answer", "Which run to take", answer.view),
    Section("guarantee.html.j2", "What this is", "What this is, and what it promises", guarantee.view),
    Section(
        "equal_recovery.html.j2",
        "At equal recovery",
        "What is kept where equally much is given away",
        equal_recovery.view,
    ),
    Section("results.html.j2", "Results", "Results per run", results.view, results.metrics, results.files),
    Section("samples.html.j2", "Samples", "Samples: what becomes of a text", samples.view),
    Section("evaluation.html.j2", "Utility and attacks", "Utility and attacks", evaluation.view, evaluation.metrics),
    Section("deniability.html.j2", "Plausible deniability", "Plausible deniability", deniability.view),
    Section(
        "budgets.html.j2",
        "Data sets and budgets",
        "Data sets, vocabulary coverage and budgets",
        budgets.view,
        budgets.metrics,
    ),
    Section("corpus.html.j2", "Corpus", "Corpus, n-grams and collocations", corpus.view, corpus.metrics, corpus.files),
    Section("neighbours.html.j2", "Neighbours", "Sample tokens and their neighbours", neighbours.view),
    Section("reproduce.html.j2", "Checks and parameters", "Checks, parameters, and how to reproduce", reproduce.view),
)
