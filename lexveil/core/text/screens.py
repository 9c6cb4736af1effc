"""Screens: tokens that a packaged model leaves out, such as numbers, addresses, user names, slurs
and names.

Tokens are normal forms of words in lower case; those of a collocation are joined by ``_``. A screen
looks at a token and at counts of a corpus, never at a text.
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
# letters of a word without a hyphen; a longer one is the name of a file or a gene, or a cry
_LONGEST = 24

TITLES = frozenset(
    "mr mrs ms miss mister dr doctor prof professor sir madam lady lord rev reverend sgt "
    "capt captain".split()
)


def unlike_a_word(token: str) -> str | None:
    """Return the reason why a token is neither a word nor punctuation (number, address or other
    signs); None if it is one.
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
    """Whether one of the token's words is a slur, in singular, plural or with a possessive s, and
    is not in ``plain``.
    """
    return any(
        form in slurs
        for word in token.split("_")
        if word not in plain
        for form in (word, word.removesuffix("'s"), word.removesuffix("s"))
    )


@dataclass(frozen=True, slots=True)
class NameLists:
    """Word lists that distinguish the full name of a person from other pairs of words.

    Attributes:
        first, last: first names and surnames, in lower case.
        public: full names of public and invented figures, and pairs that only look like a name;
            words joined by ``_``.
        capitalised: the number of adjacent occurrences with capitals, by pair of words.
    """

    first: Set[str]
    last: Set[str]
    public: Set[str]
    capitalised: Mapping[tuple[str, str], int]

    def in_name(self, token: str, count: int, least_share: float) -> bool:
        """Whether a collocation holds a full name, or a title and a surname.

        Two adjacent words are a full name if the first may be a first name and the second a
        surname, and at least ``least_share`` of the ``count`` occurrences had capitals: "will
        smith" has them, "will be" has not.
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
    """A token with its number of occurrences in the corpus and the number of documents that contain
    it.
    """

    token: str
    count: int
    documents: int


def kept_within(candidates: Sequence[Candidate], max_tokens: int) -> list[Candidate]:
    """Select at most ``max_tokens`` candidates, words first, then the most frequent collocations;
    return them by falling count.

    The token itself decides ties, so the order of the candidates does not matter.
    """
    ranked = sorted(candidates, key=lambda one: ("_" in one.token, -one.count, one.token))
    return sorted(ranked[:max_tokens], key=lambda one: (-one.count, one.token))
