"""Language detection by the share of function words."""

from __future__ import annotations

from collections.abc import Mapping

from lexveil.core.text.languages import LANGUAGES, language_of

LEAST_WORDS = 20  # least number of words for which a language is reported
LEAST_SHARE = (
    0.15  # least share of function words; in texts of every known language it is at least a third
)
LEAST_RATIO = (
    1.5  # least ratio to the expected language's share: related languages have words in common
)


def function_word_shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Return, for each known language, the share of all words that are function words of this
    language.

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
    """Detect whether texts seem to be in another language than expected. Return that language,
    with its share of function words and the share of the expected language. Return None if the
    texts seem to be in the expected language, or if they have too few words to tell.
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
