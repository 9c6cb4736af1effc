"""Defaults for training settings that params.yaml leaves open. The defaults limit the time of a
training.
"""

LARGE = 1_000_000  # RARE_IN_LARGE applies to corpora of at least this many tokens
RARE_IN_LARGE = 5  # gensim's own default, which the paper keeps
RARE = 2
# tokens to read in all epochs together; the number of epochs stays within its limits
READINGS = 32_000_000
FEWEST_EPOCHS = 5
MOST_EPOCHS = 40


def default_min_count(n_tokens: int) -> int:
    """Return the default ``min_count``: tokens that occur less often in the corpus get no
    vector.
    """
    return RARE if n_tokens < LARGE else RARE_IN_LARGE


def default_epochs(n_tokens: int) -> int:
    """Return the default number of training epochs, which is larger for a smaller corpus."""
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, round(READINGS / max(n_tokens, 1))))
