"""Strategies: how a text's budget is divided among its tokens (CLMLDP section 5.2, Table 8), and what is perturbed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from lexveil.errors import ParameterError
from lexveil.types import Counts, Floats

Codes = npt.NDArray[np.int8]

SEGMENTATION_OF = {"S1": "word", "S2": "gst", "S3": "gst", "S4": "mst"}
STRATEGIES = tuple(SEGMENTATION_OF)
ALIASES = {"word": "S1", "gst-word-budget": "S2", "gst": "S3", "mst": "S4"}


class Action(IntEnum):
    """What happens to a token. Arrays hold the numbers; compare them with ``.value``, ten times as fast in NumPy.

    Kept tokens leave in clear. Sampled ones are replaced by a uniform draw from the vocabulary, which tells nothing
    but that a token of the class stood there.
    """

    PERTURBED = 0
    KEPT = 1
    DROPPED = 2
    SAMPLED = 3

    @classmethod
    def labels(cls) -> list[str]:
        """Their names in token logs and records, in the order of their numbers."""
        return [member.name.lower() for member in cls]


_ACTION_OF = {"perturb": Action.PERTURBED, "keep": Action.KEPT, "drop": Action.DROPPED, "sample": Action.SAMPLED}


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
        """Resolve ``paper``: stop words are kept in S1 and perturbed in the others (CLMLDP section 5.2)."""
        if stopwords == "paper":
            stopwords = "keep" if strategy == "S1" else "perturb"
        return cls(stopwords, punctuation, oov)

    def actions(self, kind: Codes, known: npt.NDArray[np.bool_]) -> Codes:
        """What happens to each token.

        Args:
            kind: (n,) ``TokenClass`` of each.
            known: (n,) whether the token has a vector.

        Returns:
            (n,) ``Action`` of each. What should be perturbed and has no vector falls under ``oov``.
        """
        table = [Action.PERTURBED, *(_ACTION_OF[name] for name in (self.stopwords, self.punctuation, self.oov))]
        action = np.array(table, dtype=np.int8)[kind]
        action[(action == Action.PERTURBED.value) & ~known] = _ACTION_OF[self.oov]
        return action


def document_budget(base_epsilon: float, n_words: Counts) -> float:
    """B = base ε × average words per text of the data set, the same for each of its texts; 0 if there are no words."""
    return budget_of_average(base_epsilon, int(n_words.sum()), len(n_words))


def budget_of_average(base_epsilon: float, n_words: int, n_texts: int) -> float:
    """The same from the number of words and texts of the data set.

    Raises:
        ParameterError: if the base ε or the budget is no finite number greater than 0.
    """
    if not (np.isfinite(base_epsilon) and base_epsilon > 0):
        raise ParameterError(f"epsilon is {base_epsilon}; it must be finite and greater than 0")
    budget = base_epsilon * (n_words / n_texts) if n_texts else 0.0
    if not np.isfinite(budget):
        raise ParameterError(f"epsilon is {base_epsilon}; a budget that large has no number, lower it")
    return budget


def epsilon_per_token(strategy: str, budget: float, n_perturbed: Counts, n_perturbed_words: Counts) -> Floats:
    """The ε of each perturbed token of each text.

    S1, S3 and S4 divide the budget by the tokens to be perturbed. S2 divides it by the words in them, so that a
    collocation costs what one word does and the text spends less than B.

    Args:
        n_perturbed: (n,) tokens to be perturbed, per text.
        n_perturbed_words: (n,) words in those tokens.

    Returns:
        (n,) in 1 / embedding units; 0 where nothing is perturbed.
    """
    shares = n_perturbed_words if strategy == "S2" else n_perturbed
    return np.divide(budget, shares, out=np.zeros(len(shares)), where=shares > 0)


def spent_share(strategy: str, n_perturbed: Counts, n_perturbed_words: Counts) -> Floats:
    """What each text spends of its budget: all of it if anything is perturbed, in S2 less if collocations are.

    Returns:
        (n,) from 0 to 1.
    """
    if strategy != "S2":
        return (n_perturbed > 0).astype(np.float64)
    return np.divide(n_perturbed, n_perturbed_words, out=np.zeros(len(n_perturbed)), where=n_perturbed_words > 0)
