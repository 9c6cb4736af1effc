"""What must hold of the sampled corpus: one row per document, from sql/checks/corpus_totals.sql."""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import at_least_one_in_all, at_least_one_row, each_once, none_of, suite_of

REBUILD = (
    "`dvc repro --force sample_corpus` makes all three tables from the same documents; "
    "if this stays, it is a fault of tasks/sample_corpus.py"
)
BRING = "Bring one with `lexveil data use --corpus PATH`, or the embedded one with `lexveil data default`"
TOKENIZER = "Tokens are joined by a space and collocations by '_', so this is a fault of lexveil/text/tokenize.py"


def corpus_suite(*, may_be_empty: bool = False) -> gx.ExpectationSuite:
    """Every document has text, every text with something to read has tokens, and tokens can be joined and split again.

    A document of nothing but white space has no tokens, and that is all right.

    Args:
        may_be_empty: whether there need be no document, because training begins with a base.
    """
    enough = [
        at_least_one_row("There is at least one document", "the corpus has no document, at least 1 is needed", BRING),
        at_least_one_in_all(
            "n_tokens",
            "There is at least one token",
            "the documents have no token between them, at least 1 is needed",
            BRING,
        ),
    ]
    return suite_of(
        "corpus",
        "documents",
        [
            *([] if may_be_empty else enough),
            each_once(
                ["doc_id"],
                "Every document is there once",
                "{unexpected:,} of {checked:,} documents share their doc_id with another one, limit 1 each",
                REBUILD,
            ),
            none_of(
                "n_strays",
                "Sentences belong to sampled documents",
                "{unexpected:,} of {checked:,} documents have sentences but are not in the sample "
                "(up to {worst:.0f} sentences, limit {limit:.0f})",
                REBUILD,
            ),
            none_of(
                "lacks_text",
                "Every document has a text",
                "{unexpected:,} of {checked:,} documents have no text, limit {limit:.0f}",
                REBUILD,
            ),
            none_of(
                "lacks_tokens",
                "Every text that is more than white space has tokens",
                "{unexpected:,} of {checked:,} documents have text but no token, limit {limit:.0f}",
                REBUILD,
            ),
            none_of(
                "is_misnumbered",
                "The sentences of a document are numbered from 0 without gaps",
                "{unexpected:,} of {checked:,} documents have repeated or missing sentence numbers, limit {limit:.0f}",
                REBUILD,
            ),
            none_of(
                "n_unsplittable",
                "No token is empty or has white space or '_' inside",
                "{unexpected:,} of {checked:,} documents have sentences with a token that is empty or contains '_' "
                "or white space (up to {worst:.0f} sentences, limit {limit:.0f})",
                TOKENIZER,
            ),
            none_of(
                "n_unnumbered",
                "Every token is the number of a word in words.parquet",
                "{unexpected:,} of {checked:,} documents have sentences with a number that "
                "artifacts/corpus/words.parquet does not have (up to {worst:.0f} sentences, limit {limit:.0f})",
                REBUILD,
            ),
        ],
        REBUILD,
    )
