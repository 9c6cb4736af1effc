"""Expectations for a release: for the source before any noise, and for the output as an observer
would see it.

A refusal after the noise selects among draws, so no private value may decide about it. The suite
for outputs therefore reads sql/release/documents.sql, one row per document, which has the output
and the disclosed structure of each token only.
"""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import (
    TOLERANCE,
    Rule,
    at_least_one,
    between,
    each_once,
    none_of,
    suite_of,
)

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
OURS = "this is a fault of lexveil/privatization"
GATE = "lexveil.toml: inbox.gate"
RULES = (
    at_least_one("document"),
    each_once("row"),
    none_of(
        "n_stray",
        "There is no document that was not asked for",
        "came with documents that nobody asked for",
    ),
    none_of(
        "n_stray_tokens",
        "Every token of the token log belongs to a document",
        "came with tokens in the token log that belong to no document",
    ),
    between(
        "epsilon_overrun",
        "No document spends more than the budget (relative to it, where it is above 1)",
        "spend more than the budget",
        high=TOLERANCE,
    ),
    *(
        between(
            column,
            f"The {what} that the record says was spent is that of the token log",
            f"have a record that says another {what} of epsilon spent than the token log",
            high=TOLERANCE,
        )
        for column, what in (("most_gap", "most"), ("mean_gap", "mean"))
    ),
)
PERSONAL_RULES = tuple(
    none_of(
        f"n_{kind}",
        f"No output holds what looks like {description}",
        f"hold what looks like {description}",
        f"{WITHDRAWN}. Such tokens leave where policy keeps unknown words, or are words of "
        "the vocabulary: see to "
        "policy.oov and the corpus, or set inbox.gate.pii = false",
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
    rules: list[Rule] = [at_least_one("row of counts")]
    if min_coverage is not None:
        rules.append(
            between(
                "coverage",
                "The vocabulary knows enough of the words",
                f"is too strange: the vocabulary knows {{coverage:.1%}} of the words, "
                f"{GATE}.min_coverage",
                f"{REFUSED}. Enlarge the corpus by texts like these and run `lexveil run`, or "
                "lower the limit",
                low=min_coverage,
            )
        )
    if max_unprotected is not None:
        rules.append(
            between(
                "unprotected_share",
                "Not too many tokens are unprotected",
                f"is too open: {{unprotected_share:.1%}} of the tokens are unprotected, "
                f"{GATE}.max_unprotected",
                f"{REFUSED}. Let policy perturb more, choose another strategy, or raise the limit",
                high=max_unprotected,
            )
        )
    return suite_of("source", "release", rules, f"{REFUSED}; {OURS}", "the source")


def release_suite(max_length_ratio: float | None, personal: bool) -> gx.ExpectationSuite:
    """Suite for the output of a release: no document spends more than the budget, the record is
    correct, and the output may be published.

    Args:
        max_length_ratio: largest number of words in the output of a document per token of its
            source; None for no limit.
        personal: whether to search outputs for what looks like personal data.
    """
    rules = list(RULES)
    if max_length_ratio is not None:
        rules.append(
            between(
                "length_ratio",
                "No document becomes much longer",
                "become longer than the limit of words per token of the source, "
                f"{GATE}.max_length_ratio",
                f"{WITHDRAWN}. Choose a strategy with shorter collocations, or raise the limit",
                high=max_length_ratio,
            )
        )
    rules += PERSONAL_RULES if personal else ()
    return suite_of("release", "documents", rules, f"{WITHDRAWN}; {OURS}")
