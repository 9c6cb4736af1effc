"""Great Expectations suite for collocations. The checked data frame has one row per n-gram length
(bigrams, trigrams) and comes from sql/checks/collocation_audit.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import TOLERANCE, suite_of, zero

REBUILD = (
    "`dvc repro --force build_collocations` builds the collocations from the counts again; if "
    "the fault remains, it is a bug in tasks/build_collocations.py"
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
        fault="{subject} contain a connector or punctuation",
    ),
    zero(
        "n_repeated",
        holds="Every n-gram occurs once",
        fault="{subject} occur more than once",
    ),
    zero(
        "n_overcounted",
        holds="No n-gram is more frequent than one of its words",
        fault="{subject} are more frequent than one of the words in them",
    ),
    zero(
        "n_miscounted",
        holds="The frequency of an n-gram is its counted frequency",
        fault="{subject} have a count that differs from the count in artifacts/ngrams",
    ),
    zero(
        "n_strays",
        holds="The base model adds exactly those of its n-grams that the corpus lacks",
        fault=(
            "{subject} and {n_of_base:,} from the base model; some n-grams of the base model "
            "are missing, altered or wrongly added"
        ),
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="pmi_difference_bits",
        max_value=TOLERANCE,
        description="The PMI of an n-gram follows from the counts and the number of tokens",
        meta={"fault": "{subject} have a PMI that does not follow from the counts"},
    ),
)


def collocation_suite(min_count: int, min_pmi: float) -> gx.ExpectationSuite:
    """Build the expectation suite for collocations: every n-gram reaches the thresholds of
    frequency and pointwise mutual information (PMI), and its PMI agrees with the counts.

    Args:
        min_count: smallest allowed frequency.
        min_pmi: smallest allowed PMI in bits.
    """
    count = f"collocations.min_count {min_count}"
    pmi = f"collocations.min_pmi {min_pmi:g} bits"
    rules = [
        gxe.ExpectColumnValuesToBeUnique(
            column="ngrams",
            description="No two rows have the same ngrams",
            meta={"fault": "{subject} occur more than once (ngrams)"},
        ),
        zero(
            "n_wanting",
            holds="There is at least one bigram",
            fault=f"{{subject}} passed the thresholds {count} and {pmi}; at least 1 is needed",
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
