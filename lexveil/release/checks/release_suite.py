"""Data checks for a release. One suite of expectations validates the source before any noise, and
another validates the output as an observer would see it.

To reject an output after the noise was drawn is to select among draws, so that decision must not
depend on private values.

The suite for outputs therefore reads sql/release/documents.sql, one row per document, which has
only the output and the disclosed structure of each token.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import TOLERANCE, suite_of, zero

# Patterns of personal data (RE2), by the query parameter for each pattern.
PERSONAL = {
    "emails": r"[\w.+-]+ ?@ ?[\w-]+( ?\. ?[\w-]+)+",
    "phones": r"\+ ?\d[\d ./()-]{5,}\d|(\(\d{2,5}\)|\b\d{2,5})[ ./-]{1,2}\d{3,4}[ "
    r".-]{1,2}\d{3,4}\b",
    "numbers": r"\d{6,}",
    "handles": r"(^|[^\w.+-])@\w{2,}",
    "urls": r"(?i)\b(https?|ftp) ?: ?/ ?/|\bwww ?\. ?[\w-]+ ?\.",
}
DESCRIPTIONS = {
    "emails": "an e-mail address",
    "phones": "a telephone number",
    "numbers": "6 digits or more in a row",
    "handles": "an @name",
    "urls": "a web address",
}
REFUSED = "Nothing was released and nothing was spent"
WITHDRAWN = "Nothing was released"  # the charge adds that the epsilon stays spent
OURS = "this is a fault of lexveil/release"
GATE = "lexveil.toml: inbox.gate"
RULES = (
    gxe.ExpectTableRowCountToBeBetween(
        min_value=1,
        description="There is at least one document",
        meta={"fault": "there is no document, at least 1 is needed"},
    ),
    gxe.ExpectColumnValuesToBeUnique(
        column="row",
        description="No two documents have the same row number",
        meta={"fault": "{subject} have a duplicate row number"},
    ),
    zero(
        "n_stray",
        holds="Every document was requested",
        fault="{subject} have documents that were not requested",
    ),
    zero(
        "n_stray_tokens",
        holds="Every token of the token log belongs to a document",
        fault="{subject} have tokens in the token log that belong to no document",
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_overrun",
        max_value=TOLERANCE,
        description="No document spends more than its budget (as a share of the budget if "
        "it is above 1)",
        meta={"fault": "{subject} spend more than their budget"},
    ),
    *(
        gxe.ExpectColumnValuesToBeBetween(
            column=column,
            max_value=TOLERANCE,
            description=f"The {what} of epsilon in the record equals the {what} in the token log",
            meta={
                "fault": f"{{subject}} have a record with another {what} of epsilon than "
                "the token log"
            },
        )
        for column, what in (("most_gap", "most"), ("mean_gap", "mean"))
    ),
)
PERSONAL_RULES = tuple(
    zero(
        f"n_{kind}",
        holds=f"No output contains a text that looks like {description}",
        fault=f"{{subject}} contain a text that looks like {description}",
        way_out=(
            f"{WITHDRAWN}. Such tokens are published if the policy keeps unknown "
            "words, or if the vocabulary has them: change policy.oov or the "
            "corpus, or set inbox.gate.pii = false"
        ),
    )
    for kind, description in DESCRIPTIONS.items()
)


def source_suite(min_coverage: float | None, max_unprotected: float | None) -> gx.ExpectationSuite:
    """Return the suite of checks on the counts of the source, a frame with one row. The suite runs
    before any noise is drawn.

    Args:
        min_coverage: smallest allowed share of the words that are in the vocabulary, in [0, 1];
            None for no limit.
        max_unprotected: largest share of unprotected tokens, in [0, 1]; None for no limit.
    """
    rules: list[gxe.Expectation] = [
        gxe.ExpectTableRowCountToBeBetween(
            min_value=1,
            description="There is at least one row of counts",
            meta={"fault": "there is no row of counts, at least 1 is needed"},
        )
    ]
    if min_coverage is not None:
        rules.append(
            gxe.ExpectColumnValuesToBeBetween(
                column="coverage",
                min_value=min_coverage,
                description="The vocabulary has enough of the words",
                meta={
                    "fault": "{subject} has too few known words: the vocabulary has "
                    f"{{coverage:.1%}} of the words, {GATE}.min_coverage",
                    "way_out": f"{REFUSED}. Add similar texts to the corpus and run "
                    "`lexveil run`, or lower the limit",
                },
            )
        )
    if max_unprotected is not None:
        rules.append(
            gxe.ExpectColumnValuesToBeBetween(
                column="unprotected_share",
                max_value=max_unprotected,
                description="Not too many tokens are unprotected",
                meta={
                    "fault": "{subject} has too many unprotected tokens: "
                    "{unprotected_share:.1%} of all tokens, "
                    f"{GATE}.max_unprotected",
                    "way_out": f"{REFUSED}. Change the policy so that more tokens are "
                    "perturbed, choose another strategy, or raise the limit",
                },
            )
        )
    return suite_of("source", "release", rules, f"{REFUSED}; {OURS}", "the source")


def release_suite(max_length_ratio: float | None, personal: bool) -> gx.ExpectationSuite:
    """Return the suite for the output of a release. It checks that no document spends more than its
    budget, that the record is correct, and that the output may be published.

    Args:
        max_length_ratio: largest number of words in the output of a document per token of its
            source; None for no limit.
        personal: whether to search outputs for texts that look like personal data.
    """
    rules = list(RULES)
    if max_length_ratio is not None:
        rules.append(
            gxe.ExpectColumnValuesToBeBetween(
                column="length_ratio",
                max_value=max_length_ratio,
                description="No document becomes much longer",
                meta={
                    "fault": "{subject} become longer than the limit of words per token of the "
                    "source, "
                    f"{GATE}.max_length_ratio",
                    "way_out": f"{WITHDRAWN}. Choose a strategy with shorter collocations, or "
                    f"raise the limit",
                },
            )
        )
    rules += PERSONAL_RULES if personal else ()
    return suite_of("release", "documents", rules, f"{WITHDRAWN}; {OURS}")
