"""Tokens of a batch of texts as numbers: the tokenizer's output without a Python string per token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tasks.text.tokenize import sentences


@dataclass(frozen=True, slots=True)
class Tokens:
    """The n tokens of a batch of t texts, in s sentences; sentences without tokens are left out.

    Attributes:
        ids: (n,) int32, index into ``words`` of each token.
        words: distinct normal forms of the batch, in order of first appearance.
        sentence_sizes: (s,) int32, tokens of each sentence, all above 0.
        sentences_per_text: (t,) int32, 0 for a text without tokens.
    """

    ids: npt.NDArray[np.int32]
    words: pa.StringArray
    sentence_sizes: npt.NDArray[np.int32]
    sentences_per_text: npt.NDArray[np.int32]


def tokenize_texts(texts: pa.StringArray) -> Tokens:
    """Tokenize a batch of texts; a missing text has no sentence. The same tokens as ``tokenize.sentences``."""
    numbers: dict[str, int] = {}
    ids: list[int] = []
    sizes: list[int] = []
    per_text = np.zeros(len(texts), dtype=np.int32)
    for at, text in enumerate(texts):
        split = sentences(text.as_py()) if text.is_valid else []
        per_text[at] = len(split)
        for tokens in split:
            sizes.append(len(tokens))
            ids.extend([numbers.setdefault(token, len(numbers)) for token in tokens])
    return Tokens(
        np.array(ids, dtype=np.int32),
        pa.array(list(numbers), pa.string()),
        np.array(sizes, dtype=np.int32),
        per_text,
    )
