"""Defaults of a training where params.yaml sets no value; they keep its time within reason."""

LARGE = 1_000_000  # tokens of a corpus from which RARE_IN_LARGE applies
RARE_IN_LARGE = 5  # gensim's own default, which the paper keeps
RARE = 2
# tokens to read in all epochs together, within the fewest and the most epochs
READINGS = 32_000_000
FEWEST_EPOCHS = 5
MOST_EPOCHS = 40


def default_min_count(n_tokens: int) -> int:
    """Return the default number of occurrences below which a token gets no vector."""
    return RARE if n_tokens < LARGE else RARE_IN_LARGE


def default_epochs(n_tokens: int) -> int:
    """Return the default number of passes over a corpus; a small corpus gets many."""
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, round(READINGS / max(n_tokens, 1))))
