"""The ChaCha20 stream cipher for compiled samplers. Eight blocks are computed at a time, which
takes little longer than one.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from lexveil.base.compiled import kernel
from lexveil.base.types import Words

State = npt.NDArray[np.uint32]

BLOCKS = 8  # ChaCha20 blocks computed at a time
WORDS = 8 * BLOCKS  # 64-bit words in these blocks


@numba.njit(inline="always")
def _quarter(
    x: State, a: int, b: int, c: int, d: int, i: int
) -> None:  # pragma: no cover - compiled
    """Apply ChaCha20's quarter round to the words a, b, c, d of block i."""
    at_a = a * BLOCKS + i
    at_b = b * BLOCKS + i
    at_c = c * BLOCKS + i
    at_d = d * BLOCKS + i
    wa = x[at_a]
    wb = x[at_b]
    wc = x[at_c]
    wd = x[at_d]
    wa = np.uint32(wa + wb)
    wd = np.uint32(wd ^ wa)
    wd = np.uint32((wd << np.uint32(16)) | (wd >> np.uint32(16)))
    wc = np.uint32(wc + wd)
    wb = np.uint32(wb ^ wc)
    wb = np.uint32((wb << np.uint32(12)) | (wb >> np.uint32(20)))
    wa = np.uint32(wa + wb)
    wd = np.uint32(wd ^ wa)
    wd = np.uint32((wd << np.uint32(8)) | (wd >> np.uint32(24)))
    wc = np.uint32(wc + wd)
    wb = np.uint32(wb ^ wc)
    wb = np.uint32((wb << np.uint32(7)) | (wb >> np.uint32(25)))
    x[at_a] = wa
    x[at_b] = wb
    x[at_c] = wc
    x[at_d] = wd


@kernel()
def chacha20(start: State, out: State) -> None:  # pragma: no cover - compiled
    """Compute eight ChaCha20 blocks at once (RFC 8439, section 2.3): the input is 16 words of
    state, the output 8 x 16 words of stream.

    Word w of block i is ``out[w * BLOCKS + i]``, so that one instruction processes all blocks.
    Their counters are the counter of the state and the next seven, which must not exceed 2^32.
    """
    for word in range(16):
        for i in range(BLOCKS):
            out[word * BLOCKS + i] = start[word]
    for i in range(BLOCKS):
        out[12 * BLOCKS + i] = np.uint32(start[12] + np.uint32(i))
    for _ in range(10):
        for i in range(BLOCKS):
            _quarter(out, 0, 4, 8, 12, i)
            _quarter(out, 1, 5, 9, 13, i)
            _quarter(out, 2, 6, 10, 14, i)
            _quarter(out, 3, 7, 11, 15, i)
            _quarter(out, 0, 5, 10, 15, i)
            _quarter(out, 1, 6, 11, 12, i)
            _quarter(out, 2, 7, 8, 13, i)
            _quarter(out, 3, 4, 9, 14, i)
    for word in range(16):
        for i in range(BLOCKS):
            out[word * BLOCKS + i] = np.uint32(out[word * BLOCKS + i] + start[word])
    for i in range(BLOCKS):
        out[12 * BLOCKS + i] = np.uint32(out[12 * BLOCKS + i] + np.uint32(i))


@kernel()
def open_stream(
    state: State, keys: Words, row: int, nonce: int
) -> None:  # pragma: no cover - compiled
    """Initialize ``state`` (16,) for the first block of a ChaCha20 stream, whose key is a row of
    ``keys`` (n, 4). Each nonce gives another stream.
    """
    state[0], state[1] = np.uint32(0x61707865), np.uint32(0x3320646E)
    state[2], state[3] = np.uint32(0x79622D32), np.uint32(0x6B206574)
    for i in range(4):
        state[4 + 2 * i] = np.uint32(keys[row, i] & np.uint64(0xFFFFFFFF))
        state[5 + 2 * i] = np.uint32(keys[row, i] >> np.uint64(32))
    state[12] = 0
    state[13] = 0
    state[14] = 0
    state[15] = nonce


@kernel()
def next_words(state: State, words: Words) -> None:  # pragma: no cover - compiled
    """Fill ``words`` (64,) with the next 64-bit words of a ChaCha20 stream.

    One call fills all words, because each call counts references to its arrays, which takes longer
    than computing one word.
    """
    blocks = np.empty(16 * BLOCKS, dtype=np.uint32)
    chacha20(state, blocks)
    state[12] = np.uint32(state[12] + np.uint32(BLOCKS))
    if state[12] == 0:
        state[13] = np.uint32(state[13] + np.uint32(1))
    for pair in range(8):
        for i in range(BLOCKS):
            low = blocks[2 * pair * BLOCKS + i]
            high = blocks[(2 * pair + 1) * BLOCKS + i]
            words[8 * i + pair] = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
