"""What a training does where params.yaml does not say: it stays within reason."""

LARGE = 1_000_000  # tokens of a corpus from which on rare tokens are left out
RARE_IN_LARGE = 5  # gensim's own default, which the paper keeps
RARE = 2
# tokens that are read in all epochs together, unless more epochs are asked for
READINGS = 32_000_000
FEWEST_EPOCHS, MOST_EPOCHS = 5, 40


def default_min_count(n_tokens: int) -> int:
    """The occurrences below which a token gets no vector, where none is said."""
    return RARE if n_tokens < LARGE else RARE_IN_LARGE


def default_epochs(n_tokens: int) -> int:
    """The passes over a corpus, where none are said: many over a small one."""
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, round(READINGS / max(n_tokens, 1))))
