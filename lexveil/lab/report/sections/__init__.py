"""The sections of the report, in the order of the page. To add a section, write its module and its
template, and add it to ``SECTIONS``.
"""

from __future__ import annotations

from lexveil.lab.report.section import PageSection
from lexveil.lab.report.sections import (
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
    sentences,
)

SECTIONS = (
    PageSection("answer.html.j2", "The answer", "Which run to take", answer.view),
    PageSection(
        "guarantee.html.j2", "What this is", "What this is, and what it promises", guarantee.view
    ),
    PageSection(
        "equal_recovery.html.j2",
        "At equal recovery",
        "What is kept at equal recovery",
        equal_recovery.view,
    ),
    PageSection(
        "sentences.html.j2", "Sentences", "Sentences in the place of texts", sentences.view
    ),
    PageSection("results.html.j2", "Results", "Results per run", results.view, results.files),
    PageSection("samples.html.j2", "Samples", "Samples: what becomes of a text", samples.view),
    PageSection("evaluation.html.j2", "Scores", "Utility and attacks", evaluation.view),
    PageSection(
        "deniability.html.j2", "Plausible deniability", "Plausible deniability", deniability.view
    ),
    PageSection("budgets.html.j2", "Budgets", "Data sets, coverage and budgets", budgets.view),
    PageSection("corpus.html.j2", "Corpus", "Corpus and collocations", corpus.view, corpus.files),
    PageSection(
        "neighbours.html.j2", "Neighbours", "Sample tokens and their neighbours", neighbours.view
    ),
    PageSection(
        "reproduce.html.j2", "Reproduce", "Checks, parameters, and how to reproduce", reproduce.view
    ),
)
