"""What of a token is counted and looked up: its normal form, and what kind of token a normal form is.

A normal form is lower case, NFC, with straight quotes, and runs of one mark shortened. It contains no white space and
no ``_``, so tokens can be joined by a space and the words of a collocation by ``_`` without collisions.
"""

from __future__ import annotations

import unicodedata

_STRAIGHT = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "„": '"', "‐": "-", "‑": "-", "…": "...", "_": "＿"}
)


class _NormalForms(dict[str, str]):
    """Normal form by surface form, worked out once per distinct surface (a dictionary look-up per token after that)."""

    LIMIT = 1_000_000  # surfaces kept, so that memory does not grow with the corpus

    def __missing__(self, surface: str) -> str:
        if len(self) >= self.LIMIT:
            self.clear()
        form = self[surface] = _normal(surface)
        return form


def _normal(surface: str) -> str:
    form = unicodedata.normalize("NFC", surface.translate(_STRAIGHT).lower())
    if len(form) > 1 and not form[0].isalnum() and form == form[0] * len(form):
        # How often a mark is repeated is the writer's own habit.
        form = {".": "...", "-": "--"}.get(form[0], form[0])
    return "".join(form.split()) or "\ufffd"


_FORMS = _NormalForms()


def normal_form(surface: str) -> str:
    """The normal form of one token as written."""
    return _FORMS[surface]


def is_punctuation(form: str) -> bool:
    """Whether a normal form is punctuation or a currency or mathematical sign.

    Pictures, their skin colours, control and private characters are not: they say something, so they are treated as
    unknown words.
    """
    if form[:1].isalnum():  # most words, quickly
        return False
    return all(unicodedata.category(character) in _MARKS and character not in _SKIN_COLOURS for character in form)


def has_letters(form: str) -> bool:
    """Whether a normal form has a letter or a digit; only such tokens take part in collocations."""
    return any(character.isalnum() for character in form)


_SKIN_COLOURS = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")  # symbols of category Sk
_MARKS = frozenset(["Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sc", "Sm", "Sk"])
