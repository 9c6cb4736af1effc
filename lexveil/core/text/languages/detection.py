"""Language detection by the share of function words."""

from __future__ import annotations

from collections.abc import Mapping

from lexveil.core.text.languages import LANGUAGES, language_of

LEAST_WORDS = 20  # words below which no language is reported
LEAST_SHARE = 0.15  # share of function words; texts of every known language have at least a third
LEAST_RATIO = 1.5  # times the expected language's share: related languages share many words


def function_word_shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the share of words that are function words, by language.

    Args:
        counts: count by normal form, without punctuation.
    """
    total = sum(counts.values())
    known = {
        code: sum(counts[word] for word in counts.keys() & one.function_words)
        for code, one in LANGUAGES.items()
    }
    return {code: n / total if total else 0.0 for code, n in known.items()}


def other_language(counts: Mapping[str, int], expected: str) -> tuple[str, dict[str, float]] | None:
    """Return the language that texts seem to have, and its share and the expected language's share
    of function words; None if it is the expected language.
    """
    if sum(counts.values()) < LEAST_WORDS:
        return None
    shares = function_word_shares(counts)
    own = language_of(expected).code
    best = max(shares, key=lambda code: shares[code])
    expected_share = shares.get(own, 0.0)
    if best == own or shares[best] < LEAST_SHARE or shares[best] < LEAST_RATIO * expected_share:
        return None
    return best, {best: shares[best], own: expected_share}
