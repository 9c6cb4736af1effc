"""Budget shares: classes of tokens that get a larger or smaller part of a document's budget.

A public rule determines the class from the token alone: the token is a stop word, a number, or on a
public list. So a token has the same class in every text. The ε of a token is public; it reveals the
token's class, and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from lexveil.base.errors import ParameterError
from lexveil.base.types import Ids
from lexveil.core.accounting.budgets import Codes
from lexveil.core.text.languages.english import STOP_WORDS
from lexveil.core.text.normal_forms import is_listed

# if several classes fit a token, the last one applies
CLASSES = ("other", "stopwords", "numbers", "listed")
OTHER, STOPWORDS, NUMBERS, LISTED = range(len(CLASSES))
WHOLE = 100  # parts of the budget for a token that belongs to no class; shares are whole hundredths
LARGEST = 10.0

MEANING = {
    "stopwords": "stop words",
    "numbers": "numbers",
    "listed": "words of a public list, and collocations that contain such a word",
}


def parts_of(share: Any) -> int:
    """Convert a budget share to a whole number of hundredths.

    Raises:
        ValueError: if the share is not a whole number of hundredths from 0.01 to 10.
    """
    is_number = isinstance(share, Real) and not isinstance(share, bool)
    parts = round(float(share) * WHOLE) if is_number and 0 < share <= LARGEST else 0
    if parts < 1 or abs(share * WHOLE - parts) > 1e-9 * WHOLE:
        raise ValueError(
            f"must be a number from 0.01 to {LARGEST:g} in steps of 0.01; the share of every "
            "other token is 1"
        )
    return parts


def is_number(token: str) -> bool:
    """Return whether a token in normal form contains a digit and no letter."""
    return any(map(str.isdigit, token)) and not any(map(str.isalpha, token))


@dataclass(frozen=True, slots=True, repr=False)
class ShareClasses:
    """Share class of each token of a vocabulary, and the budget parts of each class.

    Attributes:
        codes: (V,) the class of each token, as an index into ``CLASSES``.
        parts: (4,) parts of the budget for a token of each class; a token that belongs to no class
            gets ``WHOLE``.
    """

    codes: Codes
    parts: Ids

    @property
    def most(self) -> int:
        """Largest number of budget parts that a single token can have."""
        return int(self.parts.max())

    def of(self, rows: Ids) -> Codes:
        """Return the (n,) class of each token, given its vocabulary row; a token outside the
        vocabulary has the row -1.
        """
        return np.where(rows >= 0, self.codes[rows], np.int8(OTHER)).astype(np.int8)

    def sizes(self, rows: Ids) -> dict[str, int]:
        """Count the tokens of each share class among some vocabulary rows."""
        counts = np.bincount(self.codes[rows], minlength=len(CLASSES)).tolist()
        return dict(zip(CLASSES, counts, strict=True))


@dataclass(frozen=True, slots=True)
class BudgetShares:
    """Budget shares by class of token (stop words, numbers, words of a public list), with the
    public list.

    Attributes:
        stopwords, numbers, listed: share of a token of each class, in hundredths of the share of a
            token that belongs to no class.
        words: the public list, in normal form; words of a collocation are joined by ``_``.
        list_sha256: SHA-256 of the list's file; None without a list.
    """

    stopwords: int = WHOLE
    numbers: int = WHOLE
    listed: int = WHOLE
    words: frozenset[str] = frozenset()
    list_sha256: str | None = None

    @property
    def parts(self) -> Ids:
        """(4,) number of budget parts for a token of each class."""
        return np.array([WHOLE, self.stopwords, self.numbers, self.listed], dtype=np.int64)

    @property
    def differing(self) -> dict[str, float]:
        """Return the share of each class whose share is not 1."""
        part_by_class = dict(zip(CLASSES, self.parts.tolist(), strict=True))
        return {name: parts / WHOLE for name, parts in part_by_class.items() if parts != WHOLE}

    def as_dict(self) -> dict[str, float | str | None]:
        """Return the share of each class, and the hash of the public list."""
        part_by_class = zip(CLASSES[1:], self.parts.tolist()[1:], strict=True)
        return {name: parts / WHOLE for name, parts in part_by_class} | {
            "list_sha256": self.list_sha256
        }

    def class_of(self, token: str, function_words: frozenset[str] = STOP_WORDS) -> int:
        """Return the share class of a token, as an index into ``CLASSES``. The class depends only
        on the token, the public list and the language.
        """
        if is_listed(token, self.words):
            return LISTED
        if is_number(token):
            return NUMBERS
        return STOPWORDS if token in function_words else OTHER

    def over(
        self, tokens: Sequence[str], function_words: frozenset[str] = STOP_WORDS
    ) -> ShareClasses:
        """Return the share class of each token of a vocabulary.

        Args:
            tokens: the vocabulary.
            function_words: the function words of its language.
        """
        codes = (self.class_of(token, function_words) for token in tokens)
        return ShareClasses(np.fromiter(codes, dtype=np.int8, count=len(tokens)), self.parts)

    def require_several(self, classes: ShareClasses, rows: Ids) -> None:
        """Raise if a budget share belongs to a single word only, because its ε would then identify
        the word.

        Args:
            rows: rows of the words that can be perturbed.

        Raises:
            ParameterError: if only one word has a certain share.
        """
        sizes = classes.sizes(rows)
        for parts in np.unique(self.parts).tolist():
            names = [
                name for name, own in zip(CLASSES, self.parts.tolist(), strict=True) if own == parts
            ]
            if sum(sizes[name] for name in names) == 1:
                raise ParameterError(
                    "release.shares: only one word of the vocabulary gets the share "
                    f"{parts / WHOLE:g} "
                    f"({' and '.join(names)}), so that the epsilon spent on this word would "
                    "identify it. Set the share of its class to that of another class, or list "
                    "more words"
                )
