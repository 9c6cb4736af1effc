"""Strategies: how a text's budget is divided among its tokens (CLMLDP section 5.2, Table 8), and
what is perturbed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from lexveil.errors import ParameterError
from lexveil.levels import SEGMENTATION_OF as SEGMENTATION_OF  # noqa: PLC0414
from lexveil.types import Counts, Floats

Codes = npt.NDArray[np.int8]

STRATEGIES = tuple(SEGMENTATION_OF)
BY_WORDS = frozenset(["S1", "S2"])  # strategies that divide a budget by the words of a text

ORDINARY = 100.0  # words of a text of ordinary length, where no public corpus says how many
TOKEN_CAP = 2.0  # largest ε of a token where none is given, in base ε


class Action(IntEnum):
    """What happens to a token. Arrays hold the numbers; compare them with ``.value``, ten times as
    fast in NumPy.

    Kept tokens are unprotected. Sampled ones are replaced by a uniform draw from the vocabulary,
    which tells nothing but that a token of the class stood there. The others are of tokens that a
    detector found: the name of the type takes their place, or a name of a public list, the same for
    equal ones of a document, or random characters in the same form.
    """

    PERTURBED = 0
    KEPT = 1
    DROPPED = 2
    SAMPLED = 3
    PLACEHOLDER = 4
    PSEUDONYM = 5
    DIGITS = 6

    @classmethod
    def labels(cls, *, with_found: bool = False) -> list[str]:
        """Their names in token logs and records, in the order of their numbers; those of found
        tokens if asked for.
        """
        return [member.name.lower() for member in cls if with_found or member <= cls.SAMPLED]


# What happens to a token that a detector found, by the name of the action; of those that are
# perturbed, as to any.
FOUND_ACTIONS = {
    "perturb": Action.PERTURBED,
    "sample": Action.SAMPLED,
    "drop": Action.DROPPED,
    "placeholder": Action.PLACEHOLDER,
    "pseudonym": Action.PSEUDONYM,
    "digits": Action.DIGITS,
}
DEFAULT_FOUND = "placeholder"  # of a type that nothing is said of

_ACTION_OF = {
    "perturb": Action.PERTURBED,
    "keep": Action.KEPT,
    "drop": Action.DROPPED,
    "sample": Action.SAMPLED,
}


@dataclass(frozen=True, slots=True)
class Policy:
    """What happens to the tokens of each class under one strategy: perturb, keep, drop or sample.

    An unknown token has no vector, so ``oov`` cannot be perturb.
    """

    stopwords: str
    punctuation: str
    oov: str

    @classmethod
    def of(cls, strategy: str, stopwords: str, punctuation: str, oov: str) -> Policy:
        """Resolve ``paper``: stop words are kept in S1 and perturbed in the others (CLMLDP section
        5.2).
        """
        if stopwords == "paper":
            stopwords = "keep" if strategy == "S1" else "perturb"
        return cls(stopwords, punctuation, oov)

    def actions(self, kind: Codes, known: npt.NDArray[np.bool_]) -> Codes:
        """What happens to each token.

        Args:
            kind: (n,) ``TokenClass`` of each.
            known: (n,) whether the token has a vector.

        Returns:
            (n,) ``Action`` of each. What should be perturbed and has no vector falls under ``oov``;
                what a detector found is dropped until its type says otherwise.
        """
        classes = (_ACTION_OF[name] for name in (self.stopwords, self.punctuation, self.oov))
        table = [Action.PERTURBED, *classes, Action.DROPPED]
        action = np.array(table, dtype=np.int8)[kind]
        action[(action == Action.PERTURBED.value) & ~known] = _ACTION_OF[self.oov]
        return action


def document_budget(base_epsilon: float, n_words: Counts) -> float:
    """B = base ε × average words per text of the data set, the same for each of its texts; 0 if
    there are no words.
    """
    return budget_of_average(
        base_epsilon, int(n_words.sum()) / len(n_words) if len(n_words) else 0.0
    )


def budget_of_average(base_epsilon: float, average_words: float) -> float:
    """The same from the average.

    Raises:
        ParameterError: if the base ε or the budget is no finite number greater than 0.
    """
    if not (np.isfinite(base_epsilon) and base_epsilon > 0):
        raise ParameterError(f"epsilon is {base_epsilon}; it must be finite and greater than 0")
    budget = base_epsilon * average_words
    if not np.isfinite(budget):
        raise ParameterError(
            f"epsilon is {base_epsilon}; a budget that large has no number, lower it"
        )
    return budget


BITS = 32  # significant bits of a token's ε: sums of up to 2 ** 21 equal ones are exact in float64


def divisors(strategy: str, n_perturbed: Counts, n_words: Counts) -> Counts:
    """Divisors of the budgets of texts, by strategy (CLMLDP section 5.2, Figure 1).

    S1 and S2 divide by all words of a text, so that a token of S2 gets what a word gets in S1, and
    what falls to a word that is not perturbed stays unspent. S3 and S4 divide by the tokens that
    are perturbed.

    Args:
        n_perturbed: (n,) tokens to be perturbed, per text.
        n_words: (n,) words of the text, whatever becomes of them, and punctuation marks as far as
            they are perturbed.

    Returns:
        (n,) at least ``n_perturbed``.
    """
    return n_words if strategy in BY_WORDS else n_perturbed


def epsilon_per_token(
    strategy: str, budget: float, n_perturbed: Counts, n_words: Counts, cap: float = math.inf
) -> Floats:
    """The ε of each perturbed token of each text: its budget by its divisor, and no more than
    ``cap``; what a short text does not spend for that stays unspent.

    Rounded down, so that the ε of a text's tokens add up exactly in float64, in any order, to B at
    most.

    Args:
        n_perturbed, n_words: as of ``divisors``.
        cap: largest ε of a token.

    Returns:
        (n,) in 1 / embedding units; 0 where nothing is perturbed.
    """
    parts = divisors(strategy, n_perturbed, n_words)
    shares = np.divide(budget, parts, out=np.zeros(len(parts)), where=n_perturbed > 0)
    return rounded_down(np.minimum(shares, cap), parts, budget)


def epsilon_per_part(
    strategy: str, budget: DocumentBudget, n_parts: Counts, n_word_parts: Counts, most: int
) -> Floats:
    """The ε of each part of each text, where tokens of some classes get more parts of the budget
    than others.

    A token of k parts gets k times this: it stands for k equal tokens, so all that
    ``epsilon_per_token`` says of sums holds of those of parts.

    Args:
        n_parts: (n,) parts of the tokens to be perturbed, per text.
        n_word_parts: (n,) parts of the words by which S1 and S2 divide, per text.
        most: parts that a token can get: so many are within the cap.
    """
    cap = budget.cap / most
    # the division rounded up
    if math.isfinite(cap) and Fraction(cap) * most > Fraction(budget.cap):
        cap = math.nextafter(cap, 0.0)
    return epsilon_per_token(strategy, budget.total, n_parts, n_word_parts, cap)


def rounded_down(shares: Floats, parts: Counts, budget: float) -> Floats:
    """The largest number of so few bits that n of it are exact in float64, at most a share and at
    most B / n.

    Args:
        shares: (n,) not negative; may be above B / n by the rounding of the division.
        parts: (n,) how many of each share are added up at most.
    """
    # Fewer bits for more than 2 ** 21 tokens, so that every sum of them still fits the 53 bits of a
    # float64.
    bits = np.minimum(BITS, 53 - np.frexp(parts.astype(np.float64))[1])
    mantissa, exponent = np.frexp(shares)
    whole = np.floor(np.ldexp(mantissa, bits))
    # A share that the division rounded up can lie above B / n; the product is exact, so this is
    # seen.
    whole -= np.ldexp(whole, exponent - bits) * parts > budget
    rounded: Floats = np.ldexp(whole, exponent - bits)
    return rounded


@dataclass(frozen=True, slots=True)
class DocumentBudget:
    """What each document may spend, known before any of them is read unless it is the data set's
    own average.

    Attributes:
        total: B, in 1 / units of the metric.
        cap: the largest ε of a token; infinite if there is none.
        average_words: the words per document that B or the cap follows from; None if neither does.
        ordinary_words: the public number of words of a text of ordinary length, where every token
            gets the cap and B is that of the longest text; None where B is that of every text.
    """

    total: float
    cap: float
    average_words: float | None = None
    ordinary_words: float | None = None

    @property
    def usual(self) -> float:
        """The most that a text of ordinary length spends, from which the ledger's own cap
        follows.
        """
        if self.ordinary_words is None:
            return self.total
        return min(self.total, self.ordinary_words * self.cap)

    @property
    def usual_text(self) -> str:
        """The text that spends ``usual``, in words."""
        if self.ordinary_words is None:
            return "a text that spends its whole budget"
        return f"a text of {self.ordinary_words:.0f} words"
