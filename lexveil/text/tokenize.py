"""The one tokenizer: used to count, to train and to privatize, so that the three cannot drift apart.

It is lossless. Every token knows its character span, spans are in order and do not overlap, and between them
stands nothing but white space: text = gaps and tokens interleaved. What is counted and looked up is the token's
*normal form*: lower case, NFC, straight quotes, runs of one mark shortened. A normal form contains no white space
and no ``_``, so tokens can be joined by a space and the words of a collocation by ``_`` without collisions.

Sentences end at a line break, or after ``.``, ``!``, ``?`` or ``…`` with its closing quotes when white space follows,
unless the full stop belongs to an initial or a common abbreviation. No token crosses a sentence boundary.

The language decides two things and no more: which full stops end no sentence, and at which apostrophes a word is cut
(languages/base.py). A text is cut by the language of the model that it is looked up in, never by its own.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator

from lexveil.text.languages import DEFAULT, language_of
from lexveil.text.languages.base import LONGEST, Language

# Letters and digits, and the marks that follow a base letter when text is not composed (``\w`` leaves them out).
_MARKS_AFTER = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u0670\u06d6-\u06dc\u0900-\u0903\u093a-\u094f"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f"
)
_LETTER = rf"[^\W_]|[{_MARKS_AFTER}]"
_WORD = rf"(?:{_LETTER})+"
_JOINER = r"['’\-‐‑]"
_APOSTROPHE = "['’]"
_BEFORE_WORDS, _WORDS = (
    r"""
      (?:https?://|www\.)[^\s<>"]*[^\s<>"'’”.,;:!?)\]}]   # a URL, without the punctuation after it
    | [\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+                  # an e-mail address; the bound keeps matching linear
    | [@\#][^\W\d_]\w*                                     # a handle or a tag
    | \d+(?:[.,:]\d+)+                                     # 3.14  10,000  12:30
    | (?:[^\W\d_]\.){2,}                                 # u.s.  e.g.
    """,
    rf"""
    | {_WORD}(?:{_JOINER}{_WORD})*                         # a word; don't and well-known are one each
    | \.{{2,}}|-{{2,}}|!{{2,}}|\?{{2,}}|\*{{2,}}|={{2,}}|~{{2,}}|_{{2,}}
    | \S
    """,
)


@functools.cache
def _token(language: str) -> re.Pattern[str]:
    """The expression of a token: where the language cuts at apostrophes, these alternatives come before the word."""
    rules, cuts = language_of(language), ""
    if rules.elisions:  # l'homme: l' and homme
        cuts += rf"| {_any_case(rules.elisions)}{_APOSTROPHE}(?={_LETTER})"
    if rules.trailing:  # un po' di: po'
        cuts += rf"| {_any_case(rules.trailing)}{_APOSTROPHE}(?!{_LETTER})"
    if rules.leading:  # 't huis: 't; 's-Hertogenbosch
        cuts += rf"| {_APOSTROPHE}{_any_case(rules.leading)}(?!{_LETTER})(?:{_JOINER}{_WORD})*"
    return re.compile(f"{_BEFORE_WORDS}{cuts}{_WORDS}", re.VERBOSE)


def _any_case(words: Iterable[str]) -> str:
    """An expression of these words in letters of any case, and of no other character that folds to one of them."""
    either = ("".join(f"[{letter}{letter.upper()}]" for letter in word) for word in sorted(words))
    return f"(?:{'|'.join(either)})"


_BOUNDARY = re.compile("[.!?…][\"'”’)\\]]*\\s+|[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029]\\s*")
_LAST_WORD = re.compile(r"([^\W\d_]+)\Z")
_ORDINAL = re.compile(r"(?:\A|\s)\d{1,2}\Z")
_STRAIGHT = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "„": '"', "‐": "-", "‑": "-", "…": "...", "_": "＿"}
)


def sentence_spans(text: str, language: str = DEFAULT) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence, in order; together they cover the whole text."""
    start, rules = 0, language_of(language)
    for match in _BOUNDARY.finditer(text):
        at = match.start()
        if text[at] == "." and not _ends_sentence(text, at, rules):
            continue
        yield start, match.end()
        start = match.end()
    if start < len(text):
        yield start, len(text)


def _ends_sentence(text: str, at: int, rules: Language) -> bool:
    """Whether the full stop at ``at`` ends a sentence: not after an initial (``J.``) or an abbreviation (``Dr.``)."""
    word = _LAST_WORD.search(text, max(0, at - LONGEST), at)
    if word is None:
        return not (rules.has_ordinals and _ORDINAL.search(text[max(0, at - 3) : at]))
    last = word[1]
    if len(last) == 1 and last.isupper():
        return last == rules.alone
    return folded(last) not in rules.abbreviations


def folded(word: str) -> str:
    """A word in lower case as abbreviations are compared: capitals beyond Latin-1 are in none, and stay."""
    return "".join(letter.lower() if letter <= "\xff" else letter for letter in word)


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


def sentences(text: str, language: str = DEFAULT) -> list[list[str]]:
    """Normal forms, sentence by sentence; sentences without tokens are left out."""
    form, find = _FORMS.__getitem__, _token(language).findall
    split = ([*map(form, find(text, start, end))] for start, end in sentence_spans(text, language))
    return [tokens for tokens in split if tokens]


def token_spans(text: str, language: str = DEFAULT) -> list[list[tuple[int, int]]]:
    """Character spans (start, end) of the same tokens, sentence by sentence."""
    find = _token(language).finditer
    split = ([match.span() for match in find(text, start, end)] for start, end in sentence_spans(text, language))
    return [spans for spans in split if spans]


def is_token(text: str, language: str = DEFAULT) -> bool:
    """Whether a text of this language can hold this as one token; what is elided is one before a word only."""
    form = normal_form(text)
    return sentences(text, language) == [[form]] or (form[-1] == "'" and form[:-1] in language_of(language).elisions)


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
