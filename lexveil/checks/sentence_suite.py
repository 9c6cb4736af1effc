"""Expectations for the sentences of a bank: one row per sentence, from
sql/checks/bank_sentences.sql.
"""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import at_most, between, each_once, none_of, suite_of

REBUILD = (
    "`dvc repro --force collect_sentences` collects them again; if this stays, it is a fault of "
    "sql/sentences/bank.sql"
)


def sentence_suite(
    size: int, *, least_words: float, most_words: float, least_known: float
) -> gx.ExpectationSuite:
    """Suite for the sentences of a bank: how many there are, how long each is, how much of it is
    known, and that each is there once.

    A corpus without a sentence that is fit passes: it makes no bank.

    Args:
        size: sentences at most.
        least_words, most_words: words of a sentence.
        least_known: the share of them that the vocabulary knows, at least.
    """
    rules = [
        at_most(size, "sentence"),
        each_once("sentence"),
        none_of("is_blank", "No sentence is empty", "are empty"),
        between(
            "n_words",
            "A sentence has as many words as it may",
            "have too few or too many words",
            low=least_words,
            high=most_words,
        ),
        between(
            "coverage",
            "The vocabulary knows the words of a sentence",
            "have too many unknown words",
            low=least_known,
        ),
    ]
    return suite_of("sentences", "sentences", rules, REBUILD)
