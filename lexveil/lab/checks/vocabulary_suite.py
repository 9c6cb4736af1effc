"""Great Expectations suite for vocabulary coverage. The checked data frame has one row per data set
and segmentation (way of cutting a text into tokens) and comes from sql/checks/vocab_coverage.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import suite_of

BRING = (
    "Add documents with `lexveil data use --documents PATH`, or use the embedded documents "
    "with `lexveil data default`"
)
ENLARGE = (
    "Unknown words are treated as params.yaml: policy.oov says. Train on more or more similar "
    "text (`lexveil data use --corpus PATH`), lower embeddings.min_count, or lower the limit, "
    "params.yaml: checks.min_coverage"
)
FEW = (
    "have too many unknown words: artifacts/embeddings/{segmentation} knows {n_covered:,} of "
    "{n_words:,} words "
    "({coverage:.1%}) of data set {dataset}"
)


def vocab_suite(min_coverage: float) -> gx.ExpectationSuite:
    """Build the expectation suite for vocabulary coverage: enough words of every data set have an
    embedding vector, under every segmentation of the texts into tokens.

    Args:
        min_coverage: smallest share of words with a vector, in [0, 1].
    """
    knows = f"The vocabulary knows at least {min_coverage:.1%} of the words"
    rules = [
        gxe.ExpectTableRowCountToBeBetween(
            min_value=1,
            description="There is at least one data set",
            meta={"fault": "there is no data set, at least 1 is needed", "way_out": BRING},
        ),
        gxe.ExpectCompoundColumnsToBeUnique(
            column_list=["dataset", "segmentation"],
            description="No two rows have the same dataset, segmentation",
            meta={"fault": "{subject} occur more than once (dataset, segmentation)"},
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="n_words",
            min_value=1,
            description="Every data set has words",
            meta={"fault": "{subject} have no words: data set {dataset}", "way_out": BRING},
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="coverage",
            min_value=min_coverage,
            description=knows,
            meta={"fault": "{subject} " + FEW, "way_out": ENLARGE},
        ),
    ]
    rows = "pairs of data set and segmentation"
    return suite_of("vocab", rows, rules, "This is a bug in tasks/check_vocab.py")
