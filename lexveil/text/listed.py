"""Words of a user's list, as tokens of a vocabulary."""

from __future__ import annotations

from lexveil.text.normal_forms import normal_form


def token_of(line: str) -> str:
    """A word in normal form; words of a collocation are joined by ``_``."""
    return "_".join(map(normal_form, line.split()))


def is_listed(token: str, words: frozenset[str]) -> bool:
    """Whether a token is on a list, or a collocation with a word that is."""
    return token in words or not words.isdisjoint(token.split("_"))
