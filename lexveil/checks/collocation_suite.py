"""What must hold of the collocations: one row per length (bigrams, trigrams), from sql/checks/collocation_audit.sql."""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import TOLERANCE, between, each_once, none_of, suite_of

REBUILD = (
    "`dvc repro --force build_collocations` makes them from the counts again; "
    "if this stays, it is a fault of tasks/build_collocations.py"
)


def collocation_suite(min_count: int, min_pmi: float) -> gx.ExpectationSuite:
    """Every n-gram is as frequent and as surprising as asked for, and its PMI follows from the counts.

    Args:
        min_count: smallest frequency.
        min_pmi: in bits.
    """
    few = f"min_count {min_count}, min_pmi {min_pmi:g} bits"
    return suite_of(
        "collocations",
        "lengths",
        [
            each_once(["ngrams"], "Each length is judged once", "{unexpected:,} lengths are listed twice", REBUILD),
            none_of(
                "n_wanting",
                "There is at least one bigram",
                f"{{n_rows:,}} {{ngrams}} were kept ({few}), at least 1 is needed",
                "Lower collocations.min_pmi or collocations.min_count in params.yaml, or add text with "
                "`lexveil data use --corpus PATH`",
            ),
            none_of(
                "n_below_count",
                f"No n-gram is rarer than min_count, {min_count}",
                f"{{n_below_count:,}} of {{n_rows:,}} {{ngrams}} are rarer than collocations.min_count, {min_count}",
                REBUILD,
            ),
            none_of(
                "n_below_pmi",
                f"No n-gram has a PMI below min_pmi, {min_pmi:g} bits",
                "{n_below_pmi:,} of {n_rows:,} {ngrams} have a PMI below collocations.min_pmi "
                f"(smallest {{min_pmi_bits:.6g}} bits, limit {min_pmi:g})",
                REBUILD,
            ),
            none_of(
                "n_unknown",
                "Every word of an n-gram has been counted",
                "{n_unknown:,} of {n_rows:,} {ngrams} contain a word that artifacts/ngrams/words.parquet does not have",
                REBUILD,
            ),
            none_of(
                "n_barred",
                "No word of an n-gram is a connector or punctuation",
                "{n_barred:,} of {n_rows:,} {ngrams} contain a connector word or punctuation, limit 0",
                REBUILD,
            ),
            none_of(
                "n_repeated",
                "Every n-gram is there once",
                "{n_repeated:,} of {n_rows:,} {ngrams} are there more than once, limit 0",
                REBUILD,
            ),
            none_of(
                "n_overcounted",
                "No n-gram is more frequent than one of its words",
                "{n_overcounted:,} of {n_rows:,} {ngrams} are more frequent than one of their words, limit 0",
                REBUILD,
            ),
            none_of(
                "n_miscounted",
                "The frequency of an n-gram is the one that was counted",
                "{n_miscounted:,} of {n_rows:,} {ngrams} have another count than in artifacts/ngrams, limit 0",
                REBUILD,
            ),
            none_of(
                "n_strays",
                "What the base adds is what it has and the corpus lacks",
                "{n_strays:,} {ngrams} of the base are missing, too many or other than the base has them "
                "({n_of_base:,} were added, limit 0)",
                REBUILD,
            ),
            between(
                "pmi_difference_bits",
                "PMI follows from the counts and the number of tokens",
                "the PMI of {ngrams} differs from the one that follows from the counts "
                "({column} up to {worst:.3g} in {n_rows:,} rows, limit {limit:g})",
                REBUILD,
                high=TOLERANCE,
            ),
        ],
        REBUILD,
    )
