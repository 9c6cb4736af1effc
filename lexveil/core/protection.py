"""Protection levels: the share of words that an adversary may name, and the epsilon per token that
keeps the share below this limit.

A level limits two shares, that of the content words and that of the rare words; both limits hold.
The epsilon of a level is calibrated once for each word model that ships with the library, on public
texts, against the stronger of two adversaries that use only public text (`python -m
benchmarks.protection`). For a model without calibrated levels, lexveil.release.settings calibrates
it on demand.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

LevelName = Literal["strong", "balanced", "light"]
DEFAULT: LevelName = "balanced"


class Shares(NamedTuple):
    """Shares of the perturbed words that an adversary names: one share of the content words and
    one of the rare words.
    """

    content: float
    rare: float


LEVELS: dict[LevelName, Shares] = {
    "strong": Shares(0.05, 0.01),
    "balanced": Shares(0.2, 0.02),
    "light": Shares(0.5, 0.1),
}


class MeasuredLevel(NamedTuple):
    """Epsilon per token at one protection level, and the shares of public words that the strongest
    adversary named at that epsilon.
    """

    mechanism: str
    strategy: str
    level: str
    epsilon: float
    content: float
    rare: float


class MeasuredLinkage(NamedTuple):
    """Measured linkage risk: how often an adversary identified the source of an output among 1,000
    public texts of the same length.

    Attributes:
        n_words: words of each text.
        structure, naive, likelihood: for each of three adversaries (lexveil/readers/linkage.py),
            the share of outputs for which it ranks the source first.
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
        """Largest of the three measured shares of identified sources."""
        return max(self.structure, self.naive, self.likelihood)
