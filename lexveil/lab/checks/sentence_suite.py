"""Expectations for the sentences of a bank: one row per sentence, from
sql/checks/bank_sentences.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import suite_of, zero

REBUILD = (
    "`dvc repro --force collect_sentences` collects them again; if this stays, it is a fault of "
    "sql/sentences/bank.sql"
)


def sentence_suite(
    size: int, *, least_words: float, most_words: float, least_known: float
) -> gx.ExpectationSuite:
    """Suite for the sentences of a bank: their number, the length of each, the share of known words
    in each, and that no sentence occurs twice.

    A corpus without a sentence that is fit passes: it makes no bank.

    Args:
        size: sentences at most.
        least_words, most_words: words of a sentence.
        least_known: the share of them that the vocabulary knows, at least.
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
            meta={"fault": "{subject} are there more than once (sentence)"},
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
            description="A sentence has as many words as it may",
            meta={"fault": "{subject} have too few or too many words"},
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="coverage",
            min_value=least_known,
            description="The vocabulary knows the words of a sentence",
            meta={"fault": "{subject} have too many unknown words"},
        ),
    ]
    return suite_of("sentences", "sentences", rules, REBUILD)
