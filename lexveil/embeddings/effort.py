"""What a training takes, by counts that are known before it begins; and defaults that keep it within reason."""

from __future__ import annotations

from typing import NamedTuple

LARGE = 1_000_000  # tokens of a corpus from which on rare tokens are left out
RARE_IN_LARGE = 5  # gensim's own default, which the paper keeps
RARE = 2
READINGS = 32_000_000  # tokens that are read in all epochs together, unless more epochs are asked for
FEWEST_EPOCHS, MOST_EPOCHS = 5, 40
# Tokens that one worker reads in a second, at 100 dimensions, a window of 5 and 5 negative samples; measured on a
# server of 2025. An estimate, which a machine may miss by a factor of two.
TOKENS_A_SECOND = 130_000


class Effort(NamedTuple):
    """Minutes and gigabytes, roughly."""

    minutes: float
    gigabytes: float

    def __str__(self) -> str:
        minutes = "less than a minute" if self.minutes < 1 else f"about {self.minutes:,.0f} min"
        return f"{minutes}, {self.gigabytes:.1f} GB of memory"


def default_min_count(n_tokens: int) -> int:
    """The occurrences below which a token gets no vector, where none is said."""
    return RARE if n_tokens < LARGE else RARE_IN_LARGE


def default_epochs(n_tokens: int) -> int:
    """The passes over a corpus, where none are said: many over a small one."""
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, round(READINGS / max(n_tokens, 1))))


def training_effort(n_tokens: int, n_words: int, epochs: int, dimensions: int, workers: int = 1) -> Effort:
    """Of a training of gensim over ``n_tokens`` tokens with ``n_words`` vectors."""
    seconds = epochs * n_tokens / TOKENS_A_SECOND * dimensions / 100 / workers
    # Two float32 matrices, their copy when an epoch is kept, and about 300 bytes of a token's name and count.
    return Effort(seconds / 60, n_words * (4 * 4 * dimensions + 300) / 1e9)
