"""Language detection by function words: fast, with two shares as its result."""

from __future__ import annotations

from collections.abc import Mapping

from lexveil.text.languages import LANGUAGES, language_of

LEAST_WORDS = 20  # of which anything is said
LEAST_SHARE = 0.15  # of the words; texts of every language known here have a third and more
LEAST_RATIO = 1.5  # to the share of the language that was expected: related languages share many


def function_word_shares(counts: Mapping[str, int]) -> dict[str, float]:
    """The share of words that are function words, by language; ``counts`` are of normal forms,
    without punctuation.
    """
    total = sum(counts.values())
    known = {
        code: sum(counts[word] for word in counts.keys() & one.function_words)
        for code, one in LANGUAGES.items()
    }
    return {code: n / total if total else 0.0 for code, n in known.items()}


def other_language(counts: Mapping[str, int], expected: str) -> tuple[str, dict[str, float]] | None:
    """The language that texts look like if it is not the expected one, and the share of both; else
    None.
    """
    if sum(counts.values()) < LEAST_WORDS:
        return None
    shares, own = function_word_shares(counts), language_of(expected).code
    best = max(shares, key=lambda code: shares[code])
    expected_share = shares.get(own, 0.0)
    if best == own or shares[best] < LEAST_SHARE or shares[best] < LEAST_RATIO * expected_share:
        return None
    return best, {best: shares[best], own: expected_share}
