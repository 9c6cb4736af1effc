"""Expectations for a release: for the source before any noise, and for the output as an observer
would see it.

A refusal after the noise selects among draws, so no private value may decide about it. The suite
for outputs therefore reads sql/release/documents.sql, one row per document, which has the output
and the disclosed structure of each token only.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import TOLERANCE, suite_of

# Patterns of personal data (RE2), by the parameter of the query that counts them.
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
        description="No two rows have the same row",
        meta={"fault": "{subject} are there more than once (row)"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="n_stray",
        min_value=0,
        max_value=0,
        description="There is no document that was not asked for",
        meta={"fault": "{subject} came with documents that nobody asked for"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="n_stray_tokens",
        min_value=0,
        max_value=0,
        description="Every token of the token log belongs to a document",
        meta={"fault": "{subject} came with tokens in the token log that belong to no document"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_overrun",
        max_value=TOLERANCE,
        description="No document spends more than the budget (relative to it, where it is above 1)",
        meta={"fault": "{subject} spend more than the budget"},
    ),
    *(
        gxe.ExpectColumnValuesToBeBetween(
            column=column,
            max_value=TOLERANCE,
            description=f"The {what} that the record says was spent is that of the token log",
            meta={
                "fault": f"{{subject}} have a record that says another {what} of epsilon spent "
                f"than the token log"
            },
        )
        for column, what in (("most_gap", "most"), ("mean_gap", "mean"))
    ),
)
PERSONAL_RULES = tuple(
    gxe.ExpectColumnValuesToBeBetween(
        column=f"n_{kind}",
        min_value=0,
        max_value=0,
        description=f"No output holds what looks like {description}",
        meta={
            "fault": f"{{subject}} hold what looks like {description}",
            "way_out": f"{WITHDRAWN}. Such tokens leave where policy keeps unknown words, or are "
            f"words of "
            "the vocabulary: see to "
            "policy.oov and the corpus, or set inbox.gate.pii = false",
        },
    )
    for kind, description in DESCRIPTIONS.items()
)


def source_suite(min_coverage: float | None, max_unprotected: float | None) -> gx.ExpectationSuite:
    """Suite for the counts of the source, before any noise is drawn: one row.

    Args:
        min_coverage: smallest share of words that the vocabulary must know, in [0, 1]; None for no
            limit.
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
                description="The vocabulary knows enough of the words",
                meta={
                    "fault": f"{{subject}} is too strange: the vocabulary knows {{coverage:.1%}} "
                    f"of the words, "
                    f"{GATE}.min_coverage",
                    "way_out": f"{REFUSED}. Enlarge the corpus by texts like these and run "
                    f"`lexveil run`, or "
                    "lower the limit",
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
                    "fault": f"{{subject}} is too open: {{unprotected_share:.1%}} of the tokens "
                    f"are unprotected, "
                    f"{GATE}.max_unprotected",
                    "way_out": f"{REFUSED}. Let policy perturb more, choose another strategy, or "
                    f"raise the limit",
                },
            )
        )
    return suite_of("source", "release", rules, f"{REFUSED}; {OURS}", "the source")


def release_suite(max_length_ratio: float | None, personal: bool) -> gx.ExpectationSuite:
    """Suite for the output of a release: no document spends more than its budget, the record is
    correct, and the output may be published.

    Args:
        max_length_ratio: largest number of words in the output of a document per token of its
            source; None for no limit.
        personal: whether to search outputs for what looks like personal data.
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
