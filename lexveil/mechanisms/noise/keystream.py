"""Random words for rejection sampling: each token has a ChaCha20 key of its own.

How many words a token consumes is not known in advance. Four words from the text's generator are
the key of ChaCha20 (Bernstein 2008; RFC 8439), whose stream serves that token alone, as many words
as it takes. So results depend on no batch, and a release rests on the same cipher as its generator.
"""

from __future__ import annotations

import numpy as np

from lexveil.types import Words

KEY_WORDS = 4


def draw_words(n: int, columns: int, rng: np.random.Generator) -> Words:
    """Draw (n, columns) uniform 64-bit words."""
    return rng.integers(0, 2**64 - 1, size=(n, columns), dtype=np.uint64, endpoint=True)


def token_stream(key: Words, nonce: int) -> np.random.BitGenerator:
    """The stream of a key (4,), from its beginning; each nonce below 2^28 is another stream."""
    from randomgen import ChaCha

    # Its counter counts words of 32 bits, sixteen to a block, and the nonce is the last 32 bits of
    # the block's own.
    stream: np.random.BitGenerator = ChaCha(key=key, counter=nonce << 100, rounds=20)
    return stream


def expand(key: Words, n_bytes: int, nonce: int = 0) -> bytes:
    """The first bytes of the stream of a key (4,) and a nonce."""
    words = token_stream(key, nonce).random_raw(-(-n_bytes // 8))
    return words.astype("<u8").tobytes()[:n_bytes]
