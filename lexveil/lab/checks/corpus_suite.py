"""Great Expectations suite for the sampled corpus. The checked data frame has one row per document
and comes from sql/checks/corpus_totals.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import suite_of, zero

REBUILD = (
    "`dvc repro --force sample_corpus` writes all three tables from the same documents; if the "
    "fault remains, it is a bug in tasks/sample_corpus.py"
)
BRING = (
    "Add a corpus with `lexveil data use --corpus PATH`, or use the embedded corpus with "
    "`lexveil data default`"
)
TOKENIZER = (
    "Tokens are joined by a space and collocations by '_', so this is a bug in "
    "lexveil/core/text/tokenize.py"
)
ENOUGH = (
    gxe.ExpectTableRowCountToBeBetween(
        min_value=1,
        description="There is at least one document",
        meta={"fault": "there is no document, at least 1 is needed", "way_out": BRING},
    ),
    gxe.ExpectColumnSumToBeBetween(
        column="n_tokens",
        min_value=1,
        description="There is at least one token",
        meta={"fault": "there is no token, at least 1 is needed", "way_out": BRING},
    ),
)
RULES = (
    gxe.ExpectColumnValuesToBeUnique(
        column="doc_id",
        description="No two rows have the same doc_id",
        meta={"fault": "{subject} occur more than once (doc_id)"},
    ),
    zero(
        "n_strays",
        holds="Sentences belong to sampled documents",
        fault="{subject} have sentences but are not in the sample",
    ),
    zero(
        "lacks_text",
        holds="Every document has a text",
        fault="{subject} have no text",
    ),
    zero(
        "lacks_tokens",
        holds="Every text that is more than white space has tokens",
        fault="{subject} have text but no token",
    ),
    zero(
        "is_misnumbered",
        holds="The sentences of a document are numbered from 0 without gaps",
        fault="{subject} have repeated or missing sentence numbers",
    ),
    zero(
        "n_unsplittable",
        holds="No token is empty or has white space or '_' inside",
        fault=(
            "{subject} have sentences with a token that is empty or contains '_' or white space"
        ),
        way_out=TOKENIZER,
    ),
    zero(
        "n_unnumbered",
        holds="The ids of all tokens are rows of words.parquet",
        fault=(
            "{subject} have sentences with a token id that artifacts/corpus/words.parquet does "
            "not have"
        ),
    ),
)


def corpus_suite(*, may_be_empty: bool = False) -> gx.ExpectationSuite:
    """Build the expectation suite for the sampled corpus: every document has text, every text that
    is not blank has tokens, and joined tokens can be split again.

    A document with nothing but white space has no tokens and passes.

    Args:
        may_be_empty: whether the corpus may have no documents, because training starts from a base
            model.
    """
    return suite_of("corpus", "documents", RULES if may_be_empty else (*ENOUGH, *RULES), REBUILD)
