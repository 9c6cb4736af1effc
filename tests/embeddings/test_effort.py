"""Defaults of a training that follow the size of its corpus, and what it is expected to take."""

from __future__ import annotations

import pytest

from lexveil.embeddings.effort import default_epochs, default_min_count


@pytest.mark.parametrize(
    ("n_tokens", "min_count", "epochs"),
    [(0, 2, 40), (780_000, 2, 40), (1_000_000, 5, 32), (4_200_000, 5, 8), (1_000_000_000, 5, 5)],
)
def test_defaults_follow_the_corpus(n_tokens: int, min_count: int, epochs: int) -> None:
    """At most 40 passes, at least 5, and 32 million tokens read in between."""
    assert (default_min_count(n_tokens), default_epochs(n_tokens)) == (min_count, epochs)
