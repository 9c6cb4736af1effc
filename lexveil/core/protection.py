"""Levels of protection: the share of words that an adversary may name, and the epsilon of a token
that keeps to that share.

A level states two shares, one of the content words and one of the rare words; both hold. The
epsilon of a level is calibrated once for each model that ships, on public texts, against the
stronger of two adversaries that need public text alone (`python -m benchmarks.protection`). For a
model without such figures it is calibrated when it is needed (lexveil.release.settings).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

LevelName = Literal["strong", "balanced", "light"]
DEFAULT: LevelName = "balanced"


class Shares(NamedTuple):
    """Shares of the perturbed words that an adversary names."""

    content: float
    rare: float


LEVELS: dict[LevelName, Shares] = {
    "strong": Shares(0.05, 0.01),
    "balanced": Shares(0.2, 0.02),
    "light": Shares(0.5, 0.1),
}


class MeasuredLevel(NamedTuple):
    """Epsilon of a token at one level, and the shares that the strongest adversary named of public
    texts at that epsilon.
    """

    mechanism: str
    strategy: str
    level: str
    epsilon: float
    content: float
    rare: float


class MeasuredLinkage(NamedTuple):
    """Measured linkage: how often the source of an output was identified among 1,000 public texts
    of the same length.

    Attributes:
        n_words: words of each text.
        structure, naive, likelihood: share of outputs whose source each adversary ranks first
            (lexveil/readers/linkage.py).
    """

    mechanism: str
    strategy: str
    level: str
    n_words: int
    structure: float
    naive: float
    likelihood: float

    @property
    def strongest(self) -> float:
        """The largest of the three measured shares."""
        return max(self.structure, self.naive, self.likelihood)
