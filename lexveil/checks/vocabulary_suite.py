"""Expectations for vocabulary coverage: one row per data set and segmentation, from
sql/checks/vocab_coverage.sql.
"""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import at_least_one, between, each_once, suite_of

BRING = (
    "Bring documents with `lexveil data use --documents PATH`, or the embedded ones with "
    "`lexveil data default`"
)
ENLARGE = (
    "Words that are not known are treated as params.yaml: policy.oov says. Learn from more "
    "or from more similar text "
    "(`lexveil data use --corpus PATH`), lower embeddings.min_count, or lower the limit, "
    "params.yaml: "
    "checks.min_coverage"
)
FEW = (
    "have too many unknown words: artifacts/embeddings/{segmentation} knows {n_covered:,} of "
    "{n_words:,} words "
    "({coverage:.1%}) of data set {dataset}"
)


def vocab_suite(min_coverage: float) -> gx.ExpectationSuite:
    """Suite for coverage: enough words of every data set have a vector, under every segmentation.

    Args:
        min_coverage: smallest share of words, in [0, 1].
    """
    knows = f"The vocabulary knows at least {min_coverage:.1%} of the words"
    rules = [
        at_least_one("data set", way_out=BRING),
        each_once("dataset", "segmentation"),
        between(
            "n_words",
            "Every data set has words",
            "have no words: data set {dataset}",
            low=1,
            way_out=BRING,
        ),
        between("coverage", knows, FEW, low=min_coverage, way_out=ENLARGE),
    ]
    rows = "pairs of data set and segmentation"
    return suite_of("vocab", rows, rules, "This is a fault of tasks/check_vocab.py")
