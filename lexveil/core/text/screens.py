"""Screens: rules that keep some tokens out of a packaged word model, such as numbers, addresses,
user names, slurs and names.

Tokens are normal forms of words in lower case; a collocation joins its words by ``_``. A screen
uses a token and the counts of a corpus, never a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from lexveil.core.text.languages.english import STOP_WORDS
from lexveil.core.text.normal_forms import is_punctuation

# Letters, with apostrophes or hyphens between them; or an abbreviation such as u.s.
_WORD = re.compile(r"'?[^\W\d_]+(?:['-][^\W\d_]+)*'?|(?:[^\W\d_]\.){2,}")
_REPEATED = re.compile(r"(.)\1{3}")
# most letters of a word without a hyphen; anything longer is a file name, a gene or a cry
_LONGEST = 24

TITLES = frozenset(
    "mr mrs ms miss mister dr doctor prof professor sir madam lady lord rev reverend sgt "
    "capt captain".split()
)


def unlike_a_word(token: str) -> str | None:
    """Return the reason why a token is neither a word nor punctuation (number, address or other
    signs); None if the token is a word or punctuation.
    """
    for word in token.split("_"):
        if is_punctuation(word):
            continue
        if any(sign.isdigit() for sign in word):
            return "number or user name"
        if any(sign in word for sign in "@#/\\:"):
            return "address or user name"
        if (
            not _WORD.fullmatch(word)
            or _REPEATED.search(word)
            or max(map(len, re.split("['-]", word))) > _LONGEST
        ):
            return "other signs"
    return None


def has_slur(token: str, slurs: Set[str], plain: Set[str]) -> bool:
    """Return whether one of the words of a token is a slur, in singular, plural or with a
    possessive s. Words in ``plain`` are never slurs.
    """
    return any(
        form in slurs
        for word in token.split("_")
        if word not in plain
        for form in (word, word.removesuffix("'s"), word.removesuffix("s"))
    )


@dataclass(frozen=True, slots=True)
class NameLists:
    """Word lists by which a person's full name is distinguished from other pairs of words.

    Attributes:
        first, last: first names and surnames, in lower case.
        public: full names of public and invented figures, and pairs that only look like a name;
            their words are joined by ``_``.
        capitalised: for each pair of adjacent words, how often both occurred with capitals.
    """

    first: Set[str]
    last: Set[str]
    public: Set[str]
    capitalised: Mapping[tuple[str, str], int]

    def in_name(self, token: str, count: int, least_share: float) -> bool:
        """Return whether a collocation contains a full name, or a title and a surname.

        Two adjacent words are a full name if the first may be a first name, the second a surname,
        and at least ``least_share`` of their ``count`` occurrences had capitals. So "will smith" is
        a name, and "will be" is not.
        """
        if token in self.public:
            return False
        words = token.split("_")
        return any(
            f"{a}_{b}" not in self.public and self._is_name(a, b, count, least_share)
            for a, b in pairwise(words)
        )

    def _is_name(self, a: str, b: str, count: int, least_share: float) -> bool:
        b = b.removesuffix("'s")
        if a in STOP_WORDS or b in STOP_WORDS or b not in self.last:
            return False
        if a in TITLES:
            return True
        return a in self.first and self.capitalised.get((a, b), 0) >= least_share * count


@dataclass(frozen=True, slots=True)
class Candidate:
    """Candidate token for a vocabulary, with its number of occurrences in the corpus and the
    number of documents that contain it.
    """

    token: str
    count: int
    documents: int


def kept_within(candidates: Sequence[Candidate], max_tokens: int) -> list[Candidate]:
    """Select at most ``max_tokens`` candidate tokens: words before collocations, and frequent
    collocations before rare ones. Return the selected candidates by falling count.

    Ties are broken by the token itself, so the order of the candidates does not matter.
    """
    ranked = sorted(candidates, key=lambda one: ("_" in one.token, -one.count, one.token))
    return sorted(ranked[:max_tokens], key=lambda one: (-one.count, one.token))
