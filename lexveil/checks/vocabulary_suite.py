"""What must hold of vocabulary coverage: one row per data set and segmentation, from sql/checks/vocab_coverage.sql."""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import at_least_one_row, between, each_once, suite_of

BRING = "Bring documents with `lexveil data use --documents PATH`, or the embedded ones with `lexveil data default`"
ENLARGE = (
    "Words that are not known are treated as params.yaml: policy.oov says. Learn from more or from more similar text "
    "(`lexveil data use --corpus PATH`), lower embeddings.min_count, or lower the limit"
)


def vocab_suite(min_coverage: float) -> gx.ExpectationSuite:
    """Enough of the words of every document set have a vector, whichever way the text is cut.

    Args:
        min_coverage: smallest share of words, 0 to 1.
    """
    return suite_of(
        "vocab",
        "pairs of data set and segmentation",
        [
            at_least_one_row("There is at least one data set", "there is no data set, at least 1 is needed", BRING),
            each_once(
                ["dataset", "segmentation"],
                "Every data set is judged once per segmentation",
                "{unexpected:,} of {checked:,} pairs of data set and segmentation are judged more than once",
                "This is a fault of tasks/check_vocab.py",
            ),
            between(
                "n_words",
                "Every data set has words",
                "data set {dataset} has {worst:.0f} words, at least {limit:.0f} is needed",
                BRING,
                low=1,
            ),
            between(
                "coverage",
                f"The vocabulary knows at least {min_coverage:.1%} of the words",
                "{unexpected:,} of {checked:,} pairs of data set and segmentation have too many unknown words: "
                "artifacts/embeddings/{segmentation} knows {n_covered:,} of {n_words:,} words ({coverage:.1%}) of data "
                "set {dataset}, the limit is {limit:.1%} (params.yaml: checks.min_coverage)",
                ENLARGE,
                low=min_coverage,
            ),
        ],
        "This is a fault of tasks/check_vocab.py",
    )
