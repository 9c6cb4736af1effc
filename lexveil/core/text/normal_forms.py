"""Normal forms of tokens, by which tokens are counted and looked up.

A normal form is lower case, NFC, with straight quotes, and with runs of one mark shortened. It
contains no white space and no ``_``, so tokens can be joined by a space and the words of a
collocation by ``_`` without ambiguity.
"""

from __future__ import annotations

import unicodedata

_STRAIGHT = str.maketrans(
    {
        "’": "'",
        "‘": "'",
        "ʼ": "'",
        "“": '"',
        "”": '"',
        "„": '"',
        "‐": "-",
        "‑": "-",
        "…": "...",
        "_": "＿",
    }
)


def normal_form(surface: str) -> str:
    """Return the normal form of a written token. Nothing is cached, because a token may come from a
    private text.
    """
    form = unicodedata.normalize("NFC", surface.translate(_STRAIGHT).lower())
    if len(form) > 1 and not form[0].isalnum() and form == form[0] * len(form):
        # The number of repeated marks is a writer's habit, which an output must not reveal.
        form = {".": "...", "-": "--"}.get(form[0], form[0])
    return "".join(form.split()) or "\ufffd"


def is_punctuation(form: str) -> bool:
    """Return whether a normal form is punctuation or a currency or mathematical sign.

    Emoji, skin tones, control characters and private characters are not punctuation: they carry
    meaning, so they are treated as unknown words.
    """
    if form[:1].isalnum():  # fast path for most words
        return False
    return all(
        unicodedata.category(character) in _MARKS and character not in _SKIN_COLOURS
        for character in form
    )


def has_letters(form: str) -> bool:
    """Return whether a normal form contains a letter or a digit; only such tokens can be part of
    collocations.
    """
    return any(character.isalnum() for character in form)


def token_of(line: str) -> str:
    """Convert a line of a user's word list to a token as a vocabulary stores it. ``_`` joins the
    words of a collocation.
    """
    return "_".join(map(normal_form, line.split()))


def is_listed(token: str, words: frozenset[str]) -> bool:
    """Return whether a list of words contains a token, or a word of a token that is a
    collocation.
    """
    return token in words or not words.isdisjoint(token.split("_"))


# symbols of category Sk
_SKIN_COLOURS = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
_MARKS = frozenset(["Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sc", "Sm", "Sk"])
