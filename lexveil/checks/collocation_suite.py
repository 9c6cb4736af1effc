"""Expectations for the collocations: one row per length (bigrams, trigrams), from
sql/checks/collocation_audit.sql.
"""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import TOLERANCE, between, each_once, none_of, suite_of

REBUILD = (
    "`dvc repro --force build_collocations` makes them from the counts again; "
    "if this stays, it is a fault of tasks/build_collocations.py"
)
WIDEN = (
    "Lower collocations.min_pmi or collocations.min_count in params.yaml, or add text with "
    "`lexveil data use --corpus "
    "PATH`"
)


def collocation_suite(min_count: int, min_pmi: float) -> gx.ExpectationSuite:
    """Suite for collocations: every n-gram reaches the limits of frequency and PMI, and the PMI
    follows from the counts.

    Args:
        min_count: smallest frequency.
        min_pmi: smallest PMI in bits.
    """
    count = f"collocations.min_count {min_count}"
    pmi = f"collocations.min_pmi {min_pmi:g} bits"
    rules = [
        each_once("ngrams"),
        none_of(
            "n_wanting",
            "There is at least one bigram",
            f"were kept, at least 1 is needed, with {count}, {pmi}",
            WIDEN,
        ),
        none_of("n_below_count", f"No n-gram is rarer than {count}", f"are rarer than {count}"),
        none_of(
            "n_below_pmi",
            f"No n-gram has a PMI below {pmi}",
            f"have a PMI below {pmi}, smallest {{min_pmi_bits:.6g}} bits",
        ),
        none_of(
            "n_unknown",
            "Every word of an n-gram has been counted",
            "have a word that artifacts/ngrams/words.parquet does not have",
        ),
        none_of(
            "n_barred",
            "No word of an n-gram is a connector or punctuation",
            "have a connector word or punctuation",
        ),
        none_of("n_repeated", "Every n-gram is there once", "are there more than once"),
        none_of(
            "n_overcounted",
            "No n-gram is more frequent than one of its words",
            "are more frequent than one of their words",
        ),
        none_of(
            "n_miscounted",
            "The frequency of an n-gram is the one that was counted",
            "have another count than in artifacts/ngrams",
        ),
        none_of(
            "n_strays",
            "What the base adds is what it has and the corpus lacks",
            "and {n_of_base:,} of the base: some of these are missing, too many or other "
            "than the base has them",
        ),
        between(
            "pmi_difference_bits",
            "PMI follows from the counts and the number of tokens",
            "have a PMI that differs from the one that follows from the counts",
            high=TOLERANCE,
        ),
    ]
    return suite_of("collocations", "lengths", rules, REBUILD, "of {n_rows:,} {ngrams} some")
