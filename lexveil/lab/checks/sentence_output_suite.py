"""Expectations for the outputs of a run of sentences: one row per document, from
sql/checks/sentence_outputs.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import TOLERANCE, suite_of, zero

# columns that are 0, what holds then, and what is wrong else
NOTHING = {
    "is_lost": ("Every document of the input is there", "of the input are not in the output"),
    "is_stray": ("There is no document that the input does not have", "are not in the input"),
    "n_miscarried": (
        "Split, label, attribute and number of texts are those of the input",
        "have another split, label, attribute or number of texts than the input",
    ),
    "sentences_gap": (
        "Every text becomes as many sentences, whatever it says",
        "have another number of sentences than every text",
    ),
    "sentences_out_gap": (
        "The sentences of a document are those of its token log",
        "have another number of sentences than their token log",
    ),
    "words_out_gap": (
        "The words of a document are those of its token log",
        "have another number of words than their token log",
    ),
    "n_unclear": ("The token log has sentences alone", "have something else in their token log"),
    "n_foreign": ("Every sentence is one of the bank", "have a sentence that the bank does not"),
    "n_misplaced": (
        "The token log numbers the sentences of a text from 0",
        "have other positions in their token log",
    ),
    "n_mispriced": (
        "Each sentence has the epsilon of the level",
        "have a sentence with another epsilon than that of the level",
    ),
    "n_unprotected": ("No token of a text is kept", "have unprotected tokens"),
}


def sentence_output_suite(stage: str) -> gx.ExpectationSuite:
    """Suite for one run of sentences: the output has the documents of the input, each text has the
    required number of sentences of the bank, and each sentence has the epsilon of the level.

    Args:
        stage: the stage that makes it.
    """
    rules = [
        gxe.ExpectCompoundColumnsToBeUnique(
            column_list=["dataset", "doc_id"],
            description="No two rows have the same dataset, doc_id",
            meta={"fault": "{subject} are there more than once (dataset, doc_id)"},
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
            meta={"fault": "{subject} say another epsilon than their token log"},
        ),
    ]
    way_out = (
        f"`dvc repro --force {stage}` writes them again; if this stays, it is a fault of "
        "lexveil/release/adapters/stage_sentences.py"
    )
    return suite_of("outputs", "documents", rules, way_out)
