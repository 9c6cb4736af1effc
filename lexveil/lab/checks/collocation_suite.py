"""Expectations for the collocations: one row per length (bigrams, trigrams), from
sql/checks/collocation_audit.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import TOLERANCE, suite_of

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
    gxe.ExpectColumnValuesToBeBetween(
        column="n_unknown",
        min_value=0,
        max_value=0,
        description="Every word of an n-gram has been counted",
        meta={"fault": "{subject} have a word that artifacts/ngrams/words.parquet does not have"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="n_barred",
        min_value=0,
        max_value=0,
        description="No word of an n-gram is a connector or punctuation",
        meta={"fault": "{subject} have a connector word or punctuation"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="n_repeated",
        min_value=0,
        max_value=0,
        description="Every n-gram occurs once",
        meta={"fault": "{subject} are there more than once"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="n_overcounted",
        min_value=0,
        max_value=0,
        description="No n-gram is more frequent than one of its words",
        meta={"fault": "{subject} are more frequent than one of their words"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="n_miscounted",
        min_value=0,
        max_value=0,
        description="The frequency of an n-gram is its counted frequency",
        meta={"fault": "{subject} have another count than in artifacts/ngrams"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="n_strays",
        min_value=0,
        max_value=0,
        description="The base adds exactly the n-grams that it has and the corpus lacks",
        meta={
            "fault": "{subject} and {n_of_base:,} of the base: some of these are missing, too "
            "many or other than the base has them"
        },
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
        gxe.ExpectColumnValuesToBeBetween(
            column="n_wanting",
            min_value=0,
            max_value=0,
            description="There is at least one bigram",
            meta={
                "fault": f"{{subject}} were kept, at least 1 is needed, with {count}, {pmi}",
                "way_out": WIDEN,
            },
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="n_below_count",
            min_value=0,
            max_value=0,
            description=f"No n-gram is rarer than {count}",
            meta={"fault": f"{{subject}} are rarer than {count}"},
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="n_below_pmi",
            min_value=0,
            max_value=0,
            description=f"No n-gram has a PMI below {pmi}",
            meta={
                "fault": f"{{subject}} have a PMI below {pmi}, smallest {{min_pmi_bits:.6g}} bits"
            },
        ),
        *OF_ANY_LIMITS,
    ]
    return suite_of("collocations", "lengths", rules, REBUILD, "of {n_rows:,} {ngrams} some")
