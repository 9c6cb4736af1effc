"""Great Expectations suite for the sentences of a sentence bank (the public sentences that may
replace a text). The checked data frame has one row per sentence and comes from
sql/checks/bank_sentences.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import suite_of, zero

REBUILD = (
    "`dvc repro --force collect_sentences` collects the sentences again; if the fault remains, "
    "it is a bug in sql/sentences/bank.sql"
)


def sentence_suite(
    size: int, *, least_words: float, most_words: float, least_known: float
) -> gx.ExpectationSuite:
    """Build the expectation suite for the sentences of a sentence bank: the number of sentences,
    the length and share of known words of each sentence, and that no sentence occurs twice.

    A corpus without a suitable sentence passes; no bank is made from it.

    Args:
        size: largest number of sentences.
        least_words, most_words: smallest and largest number of words of a sentence.
        least_known: smallest share of a sentence's words that the vocabulary knows.
    """
    rules = [
        gxe.ExpectTableRowCountToBeBetween(
            max_value=size,
            description=f"There are at most {size:,} sentences",
            meta={"fault": f"there are more than {size:,} sentences"},
        ),
        gxe.ExpectColumnValuesToBeUnique(
            column="sentence",
            description="No two rows have the same sentence",
            meta={"fault": "{subject} occur more than once (sentence)"},
        ),
        zero(
            "is_blank",
            holds="No sentence is empty",
            fault="{subject} are empty",
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="n_words",
            min_value=least_words,
            max_value=most_words,
            description=f"A sentence has {least_words} to {most_words} words",
            meta={"fault": "{subject} have too few or too many words"},
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="coverage",
            min_value=least_known,
            description="The vocabulary knows enough words of every sentence",
            meta={"fault": "{subject} have too many unknown words"},
        ),
    ]
    return suite_of("sentences", "sentences", rules, REBUILD)
