"""Random words for rejection sampling, from one ChaCha20 key per token.

The number of words that a token consumes is not known in advance. So four words from the text's
generator become a key of ChaCha20 (Bernstein 2008; RFC 8439), and the stream of this key provides
as many words as the token needs. Results therefore do not depend on batches, and a release uses the
same cipher as its generator.
"""

from __future__ import annotations

import numpy as np

from lexveil.base.types import Words

KEY_WORDS = 4


def draw_words(n: int, columns: int, rng: np.random.Generator) -> Words:
    """Draw (n, columns) uniform 64-bit words."""
    return rng.integers(0, 2**64 - 1, size=(n, columns), dtype=np.uint64, endpoint=True)


def token_stream(key: Words, nonce: int) -> np.random.BitGenerator:
    """Return the random stream of a key (4,), from its beginning; each nonce below 2^28 gives
    another stream.
    """
    from randomgen import ChaCha

    # The counter of randomgen counts 32-bit words, sixteen per block; the nonce is the last 32 bits
    # of the block's counter.
    stream: np.random.BitGenerator = ChaCha(key=key, counter=nonce << 100, rounds=20)
    return stream


def expand(key: Words, n_bytes: int, nonce: int = 0) -> bytes:
    """Return the first bytes of the random stream of a key (4,) and a nonce."""
    words = token_stream(key, nonce).random_raw(-(-n_bytes // 8))
    return words.astype("<u8").tobytes()[:n_bytes]
