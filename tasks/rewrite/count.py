"""Count what a budget is spread over, before any noise is drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tasks.privacy.budget import PERTURBED, Policy
from tasks.text.encode import PUNCTUATION, Lexicon, encode

BATCH = 5_000  # texts tokenized at a time


def count_tokens(texts: Sequence[str], lexicon: Lexicon, policy: Policy) -> npt.NDArray[np.int64]:
    """Count per text: words, tokens, tokens to be perturbed, words in those. Shape (4, n)."""
    parts = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        encoded = encode(batch, lexicon)
        perturbed = policy.actions(encoded.kind, encoded.rows >= 0) == PERTURBED
        weights = [
            encoded.n_words * (encoded.kind != PUNCTUATION),
            np.ones(len(perturbed)),
            perturbed,
            encoded.n_words * perturbed,
        ]
        parts.append(
            np.stack([np.bincount(encoded.text_of, weights=weight, minlength=len(batch)) for weight in weights])
        )
    return np.concatenate(parts, axis=1).astype(np.int64) if parts else np.zeros((4, 0), dtype=np.int64)
