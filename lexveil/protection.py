"""Levels of protection: what a reader may name of a text, and the epsilon of a token at which no
more is expected.

A level says two shares, of the content words and of the rare words, and both hold. Its epsilon is
found once for each model that ships, on public texts, by the stronger of two readers that need
public text alone (`python -m benchmarks.protection`); of a model without such figures it is
calibrated (lexveil.privatization.settings).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

LevelName = Literal["strong", "balanced", "light"]
DEFAULT: LevelName = "balanced"


class Shares(NamedTuple):
    """Shares of the perturbed words that a reader names."""

    content: float
    rare: float


LEVELS: dict[LevelName, Shares] = {
    "strong": Shares(0.05, 0.01),
    "balanced": Shares(0.2, 0.02),
    "light": Shares(0.5, 0.1),
}


class MeasuredLevel(NamedTuple):
    """The epsilon of a token at one level, and what the strongest reader named there of public
    texts.
    """

    mechanism: str
    strategy: str
    level: str
    epsilon: float
    content: float
    rare: float


def level_of(
    measured: Sequence[MeasuredLevel], mechanism: str, strategy: str, level: str
) -> MeasuredLevel | None:
    """The figures of one mechanism, strategy and level; None if there are none."""
    sought = (mechanism, strategy, level)
    return next((one for one in measured if one[:3] == sought), None)


class MeasuredLinkage(NamedTuple):
    """How often the source of an output was found among 1,000 public texts of its length.

    Attributes:
        n_words: words of the texts.
        structure, naive, likelihood: share of outputs whose source each reader ranks first
            (lexveil/recovery/linkage.py).
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
        """The share of the reader that finds most."""
        return max(self.structure, self.naive, self.likelihood)
