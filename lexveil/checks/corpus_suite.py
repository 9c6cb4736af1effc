"""Expectations for the sampled corpus: one row per document, from sql/checks/corpus_totals.sql."""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import at_least_one, each_once, none_of, suite_of

REBUILD = (
    "`dvc repro --force sample_corpus` makes all three tables from the same documents; "
    "if this stays, it is a fault of tasks/sample_corpus.py"
)
BRING = (
    "Bring one with `lexveil data use --corpus PATH`, or the embedded one with `lexveil "
    "data default`"
)
TOKENIZER = (
    "Tokens are joined by a space and collocations by '_', so this is a fault of "
    "lexveil/text/tokenize.py"
)
ENOUGH = (at_least_one("document", way_out=BRING), at_least_one("token", "n_tokens", way_out=BRING))
RULES = (
    each_once("doc_id"),
    none_of(
        "n_strays",
        "Sentences belong to sampled documents",
        "have sentences but are not in the sample",
    ),
    none_of("lacks_text", "Every document has a text", "have no text"),
    none_of(
        "lacks_tokens",
        "Every text that is more than white space has tokens",
        "have text but no token",
    ),
    none_of(
        "is_misnumbered",
        "The sentences of a document are numbered from 0 without gaps",
        "have repeated or missing sentence numbers",
    ),
    none_of(
        "n_unsplittable",
        "No token is empty or has white space or '_' inside",
        "have sentences with a token that is empty or contains '_' or white space",
        TOKENIZER,
    ),
    none_of(
        "n_unnumbered",
        "Every token is the number of a word in words.parquet",
        "have sentences with a number that artifacts/corpus/words.parquet does not have",
    ),
)


def corpus_suite(*, may_be_empty: bool = False) -> gx.ExpectationSuite:
    """Suite for the corpus: every document has text, every text with something to read has tokens,
    and tokens can be joined and split again.

    A document with nothing but white space has no tokens and passes.

    Args:
        may_be_empty: whether the corpus may have no documents, because training starts from a base
            model.
    """
    return suite_of("corpus", "documents", RULES if may_be_empty else (*ENOUGH, *RULES), REBUILD)
