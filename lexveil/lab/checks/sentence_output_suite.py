"""Great Expectations suite for the output of a run with strategy S5, which replaces each text by
public sentences. The checked data frame has one row per document and comes from
sql/checks/sentence_outputs.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import TOLERANCE, suite_of, zero

# columns that must be 0: the sentence that holds then, and the fault otherwise
NOTHING = {
    "is_lost": (
        "Every document of the input is in the output",
        "of the input are not in the output",
    ),
    "is_stray": ("Every document of the output is in the input", "are not in the input"),
    "n_miscarried": (
        "Split, label, attribute and number of texts equal the values in the input",
        "have a split, label, attribute or number of texts that differs from the input",
    ),
    "sentences_gap": (
        "Every text becomes the same number of sentences, whatever the text says",
        "have texts with a wrong number of sentences",
    ),
    "sentences_out_gap": (
        "The output of a document has as many sentences as its token log",
        "have a number of sentences that differs from their token log",
    ),
    "words_out_gap": (
        "The output of a document has as many words as its token log",
        "have a number of words that differs from their token log",
    ),
    "n_unclear": (
        "The token log holds sentences only",
        "have entries in their token log that are not sentences",
    ),
    "n_foreign": (
        "Every sentence of the output is in the bank",
        "have a sentence that is not in the bank",
    ),
    "n_misplaced": (
        "The token log numbers the sentences of a text from 0",
        "have wrong positions in their token log",
    ),
    "n_mispriced": (
        "Each sentence has the epsilon of the level",
        "have a sentence with an epsilon that differs from the level's",
    ),
    "n_unprotected": ("No token of a text is kept", "have unprotected tokens"),
}


def sentence_output_suite(stage: str) -> gx.ExpectationSuite:
    """Build the expectation suite for the output of a run with strategy S5: the output has the
    documents of the input, each text has the required number of sentences from the sentence bank,
    and each sentence has the epsilon of the run's protection level.

    Args:
        stage: name of the DVC stage that writes the output.
    """
    rules = [
        gxe.ExpectCompoundColumnsToBeUnique(
            column_list=["dataset", "doc_id"],
            description="No two rows have the same dataset, doc_id",
            meta={"fault": "{subject} occur more than once (dataset, doc_id)"},
        ),
        *(
            zero(
                column,
                holds=holds,
                fault=f"{{subject}} {wrong}",
            )
            for column, (holds, wrong) in NOTHING.items()
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="epsilon_difference",
            max_value=TOLERANCE,
            description="The epsilon that a document spends is the sum over its sentences",
            meta={
                "fault": "{subject} have an epsilon that differs from the sum in their token log"
            },
        ),
    ]
    way_out = (
        f"`dvc repro --force {stage}` writes the outputs again; if the fault remains, it is a "
        "bug in lexveil/release/adapters/stage_sentences.py"
    )
    return suite_of("outputs", "documents", rules, way_out)
