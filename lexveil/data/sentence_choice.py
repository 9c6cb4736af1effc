"""The rule by which a bank takes sentences of public texts."""

from __future__ import annotations

from dataclasses import dataclass

from lexveil.artifacts.screened_words import screened_words
from lexveil.config.corpus import SentenceParams

LEAST_WORDS = 3
MOST_WORDS = 25
LEAST_KNOWN = 0.95
SIZE = 100_000
SEED = 1  # of the choice, unless another is given


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The rule by which a bank takes sentences.

    Attributes:
        most_words: words of a sentence, without punctuation, at most.
        size: sentences at most.
        seed: of the choice among more.
    """

    most_words: int = MOST_WORDS
    size: int = SIZE
    seed: int = SEED

    def limits(self) -> dict[str, int | float]:
        """The limits of a sentence, as the card of a bank and the query name them."""
        return {
            "least_words": LEAST_WORDS,
            "most_words": self.most_words,
            "least_known": LEAST_KNOWN,
        }

    def described(self) -> dict[str, object]:
        """The fields of a card that say how the sentences of a bank were chosen."""
        return {**self.limits(), "seed": self.seed, "screen": screened_words().sha256}


def choice_of(wanted: SentenceParams, seed: int) -> Choice:
    """The choice that params.yaml asks for."""
    return Choice(most_words=wanted.max_words, size=wanted.size, seed=seed)
