"""What must hold of a release: of its source before any noise, and of its output as an observer would see it.

A refusal after the noise chooses among draws, so nothing private may decide it: it reads sql/release/documents.sql, one
row per document, which knows the output and what is disclosed of each token.
"""

from __future__ import annotations

import great_expectations as gx
from great_expectations.expectations.expectation import Expectation

from lexveil.checks.rules import TOLERANCE, at_least_one_row, between, each_once, none_of, suite_of

# What personal data looks like, by the parameter of the query that counts it (RE2).
PERSONAL = {
    "emails": r"[\w.+-]+ ?@ ?[\w-]+( ?\. ?[\w-]+)+",
    "phones": r"\+ ?\d[\d ./()-]{5,}\d|(\(\d{2,5}\)|\b\d{2,5})[ ./-]{1,2}\d{3,4}[ .-]{1,2}\d{3,4}\b",
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
WITHDRAWN = "Nothing was released"  # and its epsilon stays spent, as the charge says


def source_suite(min_coverage: float | None, max_unprotected: float | None) -> gx.ExpectationSuite:
    """What is judged of the source by its counts, before any noise is drawn: one row.

    Args:
        min_coverage: least share of the words that the vocabulary knows.
        max_unprotected: largest share of tokens that are unprotected.
    """
    ours = f"{REFUSED}; this is a fault of lexveil/privatization"
    rules: list[Expectation] = [
        at_least_one_row("There is something to judge", "nothing was counted, at least 1 row is needed", ours)
    ]
    if min_coverage is not None:
        rules.append(
            between(
                "coverage",
                "The vocabulary knows enough of the words",
                "the vocabulary knows {worst:.1%} of the words, the limit is {limit:.1%} (params.yaml: "
                "inbox.gate.min_coverage)",
                f"{REFUSED}. Enlarge the corpus by texts like these and run `lexveil run`, or lower the limit",
                low=min_coverage,
            )
        )
    if max_unprotected is not None:
        rules.append(
            between(
                "unprotected_share",
                "Not too many tokens are unprotected",
                "{worst:.1%} of the tokens are unprotected, the limit is {limit:.1%} (params.yaml: "
                "inbox.gate.max_unprotected)",
                f"{REFUSED}. Let policy perturb more, choose another strategy, or raise the limit",
                high=max_unprotected,
            )
        )
    return suite_of("source", "release", rules, ours)


def release_suite(max_length_ratio: float | None, personal: bool) -> gx.ExpectationSuite:
    """No document spends more than the budget, the record tells the truth, and what comes out may be seen.

    Args:
        max_length_ratio: words of a document's output, per token of its source.
        personal: whether outputs are searched for what looks like personal data.
    """
    ours = f"{WITHDRAWN}; this is a fault of lexveil/privatization"
    rules: list[Expectation] = [
        at_least_one_row("There is at least one document", "the release has no document, at least 1 is needed", ours),
        each_once(
            ["row"],
            "Every document is there once",
            "{unexpected:,} of {checked:,} documents are there more than once",
            ours,
        ),
        none_of("n_stray", "There is no document that was not asked for", "{worst:,.0f} documents are stray", ours),
        none_of(
            "n_stray_tokens",
            "Every token of the token log belongs to a document",
            "{worst:,.0f} tokens of the token log belong to no document",
            ours,
        ),
        between(
            "epsilon_overrun",
            "No document spends more than the budget (relative to it, where it is above 1)",
            "{unexpected:,} of {checked:,} documents spend more than the budget "
            "({column} up to {worst:.3g}, limit {limit:g})",
            ours,
            high=TOLERANCE,
        ),
    ]
    rules += [
        between(
            column,
            f"The {what} that the record says was spent is that of the token log",
            f"the record says another {what} of epsilon spent than the token log ({{column}} {{worst:.3g}})",
            ours,
            high=TOLERANCE,
        )
        for column, what in (("most_gap", "most"), ("mean_gap", "mean"))
    ]
    if max_length_ratio is not None:
        rules.append(
            between(
                "length_ratio",
                "No document becomes much longer",
                "{unexpected:,} of {checked:,} documents become longer than the limit (up to {worst:.2f} words per "
                "token of the source, limit {limit:g}; params.yaml: inbox.gate.max_length_ratio)",
                f"{WITHDRAWN}. Choose a strategy with shorter collocations, or raise the limit",
                high=max_length_ratio,
            )
        )
    if personal:
        rules += [
            none_of(
                f"n_{kind}",
                f"No output holds what looks like {description}",
                f"{{unexpected:,}} of {{checked:,}} documents hold what looks like {description} (up to {{worst:.0f}} "
                "times)",
                f"{WITHDRAWN}. Such tokens leave where policy keeps unknown words, or are words of the vocabulary: see "
                "to policy.oov and the corpus, or set inbox.gate.pii: false",
            )
            for kind, description in DESCRIPTIONS.items()
        ]
    return suite_of("release", "documents", rules, ours)
