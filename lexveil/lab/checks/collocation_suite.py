"""Expectations for the collocations: one row per length (bigrams, trigrams), from
sql/checks/collocation_audit.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import TOLERANCE, suite_of, zero

REBUILD = (
    "`dvc repro --force build_collocations` makes them from the counts again; "
    "if this stays, it is a fault of tasks/build_collocations.py"
)
WIDEN = (
    "Lower collocations.min_pmi or collocations.min_count in params.yaml, or add text with "
    "`lexveil data use --corpus "
    "PATH`"
)

OF_ANY_LIMITS = (
    zero(
        "n_unknown",
        holds="Every word of an n-gram has been counted",
        fault="{subject} have a word that artifacts/ngrams/words.parquet does not have",
    ),
    zero(
        "n_barred",
        holds="No word of an n-gram is a connector or punctuation",
        fault="{subject} have a connector word or punctuation",
    ),
    zero(
        "n_repeated",
        holds="Every n-gram occurs once",
        fault="{subject} are there more than once",
    ),
    zero(
        "n_overcounted",
        holds="No n-gram is more frequent than one of its words",
        fault="{subject} are more frequent than one of their words",
    ),
    zero(
        "n_miscounted",
        holds="The frequency of an n-gram is its counted frequency",
        fault="{subject} have another count than in artifacts/ngrams",
    ),
    zero(
        "n_strays",
        holds="The base adds exactly the n-grams that it has and the corpus lacks",
        fault=(
            "{subject} and {n_of_base:,} of the base: some of these are missing, too "
            "many or other than the base has them"
        ),
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="pmi_difference_bits",
        max_value=TOLERANCE,
        description="PMI follows from the counts and the number of tokens",
        meta={
            "fault": "{subject} have a PMI that differs from the one that follows from the counts"
        },
    ),
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
        gxe.ExpectColumnValuesToBeUnique(
            column="ngrams",
            description="No two rows have the same ngrams",
            meta={"fault": "{subject} are there more than once (ngrams)"},
        ),
        zero(
            "n_wanting",
            holds="There is at least one bigram",
            fault=f"{{subject}} were kept, at least 1 is needed, with {count}, {pmi}",
            way_out=WIDEN,
        ),
        zero(
            "n_below_count",
            holds=f"No n-gram is rarer than {count}",
            fault=f"{{subject}} are rarer than {count}",
        ),
        zero(
            "n_below_pmi",
            holds=f"No n-gram has a PMI below {pmi}",
            fault=f"{{subject}} have a PMI below {pmi}, smallest {{min_pmi_bits:.6g}} bits",
        ),
        *OF_ANY_LIMITS,
    ]
    return suite_of("collocations", "lengths", rules, REBUILD, "of {n_rows:,} {ngrams} some")
