"""Rule for choosing the sentences of a sentence bank from public texts."""

from __future__ import annotations

from dataclasses import dataclass

from lexveil.core.screen_parts import DEFAULT, chosen_parts
from lexveil.io.artifacts.screened_words import LANGUAGE, screen_record
from lexveil.io.config.corpus import SentenceParams

LEAST_WORDS = 3
MOST_WORDS = 25
LEAST_KNOWN = 0.95
SIZE = 100_000
DEFAULT_SEED = 1  # default seed of the choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Rule for choosing the sentences of a sentence bank from public texts.

    Attributes:
        most_words: largest number of words of a sentence, without punctuation.
        size: largest number of sentences.
        seed: seed of the choice, if more sentences are suitable than the bank takes.
        screen: parts of the public word list; sentences that contain a word of these parts are
            excluded.
    """

    most_words: int = MOST_WORDS
    size: int = SIZE
    seed: int = DEFAULT_SEED
    screen: str = DEFAULT

    def parts(self, language: str) -> tuple[str, ...]:
        """Return the parts of the public word list whose words exclude a sentence from the sentence
        bank. The word list has one language; for other languages no part is returned.
        """
        return chosen_parts(self.screen) if language == LANGUAGE else ()

    def limits(self) -> dict[str, int | float]:
        """Return the limits on the length and the known words of a sentence, under the names that
        the metadata card of a sentence bank and sql/sentences/bank.sql use.
        """
        return {
            "least_words": LEAST_WORDS,
            "most_words": self.most_words,
            "least_known": LEAST_KNOWN,
        }

    def described(self, language: str) -> dict[str, object]:
        """Return the fields of a sentence bank's metadata card that describe how its sentences were
        chosen.
        """
        screen = screen_record(self.parts(language))
        return {**self.limits(), "seed": self.seed, "screen": screen}


def choice_of(wanted: SentenceParams, seed: int) -> Choice:
    """Convert the sentence parameters of params.yaml and a seed to a rule for choosing
    sentences.
    """
    return Choice(most_words=wanted.max_words, size=wanted.size, seed=seed, screen=wanted.screen)
