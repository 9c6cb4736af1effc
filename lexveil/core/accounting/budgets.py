"""Division of a text's privacy budget among its tokens (CLMLDP section 5.2, Table 8), and the
action on each class of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lexveil.base.errors import ParameterError
from lexveil.base.levels import SEGMENTATION_OF as SEGMENTATION_OF  # noqa: PLC0414
from lexveil.base.types import Counts, Floats

Codes = npt.NDArray[np.int8]

# the source of the number from which every epsilon is computed
BudgetSource = Literal["level", "given", "given words", "corpus", "data"]

STRATEGIES = tuple(SEGMENTATION_OF)
BY_WORDS = frozenset(["S1", "S2"])  # strategies that divide a budget by the words of a text

# A document of more tokens than this has the budget of this many tokens.
MOST_TOKENS = 10_000
ORDINARY = 100.0  # words of a text of ordinary length, used if there is no public corpus
TOKEN_CAP = 2.0  # default of the largest ε of a token, as a multiple of the base ε


class Action(IntEnum):
    """Action on a token, such as perturbing or dropping it. Arrays hold the numbers; compare them
    with ``.value``, which is ten times as fast in NumPy.

    Kept tokens are unprotected. Sampled tokens are replaced by a uniform draw from the vocabulary,
    which reveals only that a token of the class was in this position. The last three actions are
    for tokens that a detector found. A placeholder is the name of the type. A pseudonym is a name
    from a public list, the same name for equal tokens of a document. The action ``digits`` writes
    random characters in the form of the token.
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
        """Return the labels of the actions as token logs and privacy records show them, in the
        order of their numbers.

        Args:
            with_found: include the labels of actions on tokens that detectors found.
        """
        return [member.name.lower() for member in cls if with_found or member <= cls.SAMPLED]


# Actions for tokens that a detector found, by name; "perturb" treats them like any other token.
FOUND_ACTIONS = {
    "perturb": Action.PERTURBED,
    "sample": Action.SAMPLED,
    "drop": Action.DROPPED,
    "placeholder": Action.PLACEHOLDER,
    "pseudonym": Action.PSEUDONYM,
    "digits": Action.DIGITS,
}
DEFAULT_FOUND = "placeholder"  # action for a type without an explicit action

_ACTION_OF = {
    "perturb": Action.PERTURBED,
    "keep": Action.KEPT,
    "drop": Action.DROPPED,
    "sample": Action.SAMPLED,
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Action on the tokens of each class (words, stop words, punctuation, unknown tokens) under
    one budget strategy: perturb, keep, drop or sample.

    An unknown token has no vector, so ``oov`` cannot be perturb.
    """

    stopwords: str
    punctuation: str
    oov: str

    @classmethod
    def of(cls, strategy: str, stopwords: str, punctuation: str, oov: str) -> Policy:
        """Build the policy of a budget strategy (S1 to S4). The value ``paper`` for stop words
        keeps them in S1 and perturbs them in the other strategies (CLMLDP section 5.2).
        """
        if stopwords == "paper":
            stopwords = "keep" if strategy == "S1" else "perturb"
        return cls(stopwords, punctuation, oov)

    def actions(self, kind: Codes, known: npt.NDArray[np.bool_]) -> Codes:
        """Return the action on each token.

        Args:
            kind: (n,) ``TokenClass`` of each token.
            known: (n,) whether the token has a vector.

        Returns:
            (n,) ``Action`` of each token. A token that should be perturbed but has no vector gets
            the action of ``oov``. A token that a detector found is dropped, until the action of its
            type replaces this action.
        """
        classes = (_ACTION_OF[name] for name in (self.stopwords, self.punctuation, self.oov))
        table = [Action.PERTURBED, *classes, Action.DROPPED]
        action = np.array(table, dtype=np.int8)[kind]
        action[(action == Action.PERTURBED.value) & ~known] = _ACTION_OF[self.oov]
        return action


def document_budget(base_epsilon: float, n_words: Counts) -> float:
    """Return the privacy budget of every text of a data set: B = base ε × average words per text.
    B is 0 if the data set has no words.
    """
    return budget_of_average(
        base_epsilon, int(n_words.sum()) / len(n_words) if len(n_words) else 0.0
    )


def budget_of_average(base_epsilon: float, average_words: float) -> float:
    """Return the privacy budget of a text, B = base ε × ``average_words``.

    Raises:
        ParameterError: if the base ε or the budget is not a finite number greater than 0.
    """
    if not (np.isfinite(base_epsilon) and base_epsilon > 0):
        raise ParameterError(f"epsilon is {base_epsilon}; it must be finite and greater than 0")
    budget = base_epsilon * average_words
    if not np.isfinite(budget):
        raise ParameterError(
            f"epsilon is {base_epsilon}; the resulting budget is not a finite number, so choose "
            "a smaller epsilon"
        )
    return budget


# significant bits of a token's ε: sums of up to 2 ** 21 equal values are exact in float64
BITS = 32


def divisors(strategy: str, n_perturbed: Counts, n_words: Counts) -> Counts:
    """Return, for each text, the number by which its budget is divided to give the ε of a token.
    The number depends on the strategy (CLMLDP section 5.2, Figure 1).

    S1 and S2 divide by all words of a text. So a token in S2 gets as much as a word in S1, and the
    part of an unperturbed word stays unspent. S3 and S4 divide by the number of perturbed tokens.

    Args:
        n_perturbed: (n,) tokens to be perturbed, per text.
        n_words: (n,) per text, the number of its words, whatever their action, plus its perturbed
            punctuation marks.

    Returns:
        (n,) at least ``n_perturbed``.
    """
    return n_words if strategy in BY_WORDS else n_perturbed


def epsilon_per_token(
    strategy: str, budget: float, n_perturbed: Counts, n_words: Counts, cap: float = math.inf
) -> Floats:
    """Return the ε of each perturbed token for each text: the text's budget divided by its
    divisor, at most ``cap``. If the cap applies, as in a short text, the rest of the budget stays
    unspent.

    The ε is rounded down, so that the sum of the ε of a text's tokens is exact in float64 in any
    order, and is at most B.

    Args:
        n_perturbed, n_words: (n,) as in ``divisors``.
        cap: largest ε of a token.

    Returns:
        (n,) in 1 / embedding units; 0 for a text without perturbed tokens.
    """
    parts = divisors(strategy, n_perturbed, n_words)
    shares = np.divide(budget, parts, out=np.zeros(len(parts)), where=n_perturbed > 0)
    return rounded_down(np.minimum(shares, cap), parts, budget)


def epsilon_per_part(
    strategy: str, budget: DocumentBudget, n_parts: Counts, n_word_parts: Counts, most: int
) -> Floats:
    """Return the ε of one part of each text's budget, for budgets in which tokens of some classes
    get more parts than others.

    A token of k parts gets k times this ε. It counts as k equal tokens, so sums of parts are also
    exact and at most B, as in ``epsilon_per_token``.

    Args:
        n_parts: (n,) parts of the tokens to be perturbed, per text.
        n_word_parts: (n,) parts of the words by which S1 and S2 divide, per text.
        most: greatest number of parts of a token; the ε of this many parts stays within the cap.
    """
    cap = budget.cap / most
    # integer division, rounded up
    if math.isfinite(cap) and Fraction(cap) * most > Fraction(budget.cap):
        cap = math.nextafter(cap, 0.0)
    return epsilon_per_token(strategy, budget.total, n_parts, n_word_parts, cap)


def rounded_down(shares: Floats, parts: Counts, budget: float) -> Floats:
    """Round each share of a budget B down to few bits, so that the sum of ``parts`` shares is
    exact in float64 and at most B.

    Args:
        shares: (n,) not negative; may exceed B / n by the rounding of the division.
        parts: (n,) greatest number of times that each share is added up.
    """
    # Fewer bits for more than 2 ** 21 tokens, so that every sum of them still fits the 53 bits of a
    # float64.
    bits = np.minimum(BITS, 53 - np.frexp(parts.astype(np.float64))[1])
    mantissa, exponent = np.frexp(shares)
    whole = np.floor(np.ldexp(mantissa, bits))
    # A share that the division rounded up can exceed B / n; the product is exact, so the comparison
    # detects it.
    whole -= np.ldexp(whole, exponent - bits) * parts > budget
    rounded: Floats = np.ldexp(whole, exponent - bits)
    return rounded


@dataclass(frozen=True, slots=True)
class DocumentBudget:
    """Privacy budget B of each document. B is known before any document is read, except when it is
    computed from the data set's own average length.

    Attributes:
        total: B, in 1 / units of the metric.
        cap: the largest ε of a token; infinite if there is no cap.
        average_words: the number of words per document from which B or the cap was computed; None
            if neither was.
        ordinary_words: the public number of words of a text of ordinary length, if every token gets
            the cap and B only limits the longest texts; None if every text may spend B.
        ordinary_sentences: the same number for texts whose sentences are replaced, each of which
            gets the cap.
    """

    total: float
    cap: float
    average_words: float | None = None
    ordinary_words: float | None = None
    ordinary_sentences: int | None = None

    @property
    def _ordinary(self) -> float | None:
        return self.ordinary_words or self.ordinary_sentences

    @property
    def drawn(self) -> str:
        """Phrase for messages that names the units drawn with epsilon: perturbed tokens or
        sentences.
        """
        return "perturbed tokens" if self.ordinary_sentences is None else "sentences"

    @property
    def usual(self) -> float:
        """Largest ε that a text of ordinary length spends, from which the ledger's default cap is
        computed.
        """
        if self._ordinary is None:
            return self.total
        return min(self.total, self._ordinary * self.cap)

    @property
    def usual_text(self) -> str:
        """Phrase for messages that describes the kind of text whose cost is ``usual``."""
        if self._ordinary is None:
            return "a text that spends its whole budget"
        counted = "words" if self.ordinary_sentences is None else "sentences"
        return f"a text of {self._ordinary:.0f} {counted}"

    def times(self, n: int) -> DocumentBudget:
        """Return the budget of a document that consists of n parts, each of which spends this
        budget.
        """
        return replace(self, total=self.total * n)

    def longest(self, cap: float) -> int | None:
        """Return the largest number of draws for which a row costs at most ``cap``, the lifetime
        limit of a data subject. Return None if the cost of a row does not grow with its length.
        """
        return None if self._ordinary is None else math.floor(cap / self.cap)


@dataclass(frozen=True, slots=True)
class PerToken:
    """Spending rule that gives every token the same epsilon, whatever the length of its text, as a
    protection level does. This epsilon is also the cap in each document's budget.

    Attributes:
        document: the budget of each document. It limits only documents of more than ``MOST_TOKENS``
            tokens.
    """

    document: DocumentBudget
    source: ClassVar[BudgetSource] = "level"
    average_words: ClassVar[None] = None

    @classmethod
    def of(cls, epsilon: float, ordinary_words: float) -> PerToken:
        """Build the spending rule that spends ``epsilon`` on every token.

        Args:
            ordinary_words: the public number of words of a text of ordinary length; 0 if unknown.
        """
        total = budget_of_average(epsilon, MOST_TOKENS)
        return cls(DocumentBudget(total, epsilon, ordinary_words=ordinary_words or ORDINARY))

    @property
    def base_epsilon(self) -> float:
        """Epsilon of each token."""
        return self.document.cap

    @property
    def max_token_epsilon(self) -> float:
        """Largest epsilon of a token, which equals the epsilon of every token."""
        return self.document.cap

    def in_release(self) -> PerToken:
        """Return this spending rule unchanged, because a release allows it."""
        return self

    def budget(
        self,
        average_of_corpus: Callable[[], float | None],  # noqa: ARG002
        average_of_texts: float,  # noqa: ARG002
    ) -> DocumentBudget:
        """Return the budget of each document. ``PerDocument.budget`` describes the arguments."""
        return self.document


@dataclass(frozen=True, slots=True)
class PerDocument:
    """Spending rule that gives every document a budget, which the strategy divides among the
    document's tokens.

    Attributes:
        base_epsilon: ε per word; None if ``total`` is given.
        total: the budget B; None if B is the base epsilon times an average number of words.
        average_words: the average number of words; None means the average of the public corpus,
            "data" the average of the texts.
        max_token_epsilon: the largest epsilon of a token; None means twice the base epsilon.
    """

    base_epsilon: float | None = None
    total: float | None = None
    average_words: float | Literal["data"] | None = None
    max_token_epsilon: float | Literal["none"] | None = None

    @property
    def source(self) -> BudgetSource:
        """Name of the source of the number from which every epsilon is computed."""
        if self.average_words == "data":
            return "data"
        if self.base_epsilon is None:
            return "given"
        return "corpus" if self.average_words is None else "given words"

    def in_release(self) -> PerDocument:
        """Return the most similar spending rule that a release allows: one with a public number of
        words and a largest epsilon per token.
        """
        average = None if self.average_words == "data" else self.average_words
        most = None if self.max_token_epsilon == "none" else self.max_token_epsilon
        return replace(self, average_words=average, max_token_epsilon=most)

    def budget(
        self, average_of_corpus: Callable[[], float | None], average_of_texts: float
    ) -> DocumentBudget:
        """Return the budget of each document.

        Args:
            average_of_corpus: function that returns the words per document of the public corpus; it
                is called only if needed.
            average_of_texts: words per document of the texts.
        """
        average = self.average_words
        total = self.total
        cap = self.max_token_epsilon
        if average == "data":
            average = average_of_texts
        elif average is None and (total is None or cap is None):
            average = average_of_corpus()
        if total is None:
            total = budget_of_average(self.base_epsilon or 0.0, average or 0.0)
        if cap is None:
            cap = TOKEN_CAP * (self.base_epsilon or (total / average if average else math.inf))
        return DocumentBudget(total, math.inf if cap == "none" else cap, average)


Spending = PerToken | PerDocument
