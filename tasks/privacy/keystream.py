"""Random words: how many a token needs is not always known before, so a token may carry a key of its own.

A row of four words from the text's generator keys ChaCha20 (Bernstein 2008; RFC 8439), whose stream then serves that
token alone, as many words as it takes. So results depend on no batch, and a release rests on the same cipher as its
generator does.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
State = npt.NDArray[np.uint32]

KEY_WORDS = 4


def draw_words(n: int, columns: int, rng: np.random.Generator) -> Words:
    """Draw (n, columns) uniform 64-bit words."""
    return rng.integers(0, 2**64 - 1, size=(n, columns), dtype=np.uint64, endpoint=True)


@numba.njit(cache=True)
def _quarter(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:  # pragma: no cover - compiled
    a = np.uint32(a + b)
    d = np.uint32(d ^ a)
    d = np.uint32((d << np.uint32(16)) | (d >> np.uint32(16)))
    c = np.uint32(c + d)
    b = np.uint32(b ^ c)
    b = np.uint32((b << np.uint32(12)) | (b >> np.uint32(20)))
    a = np.uint32(a + b)
    d = np.uint32(d ^ a)
    d = np.uint32((d << np.uint32(8)) | (d >> np.uint32(24)))
    c = np.uint32(c + d)
    b = np.uint32(b ^ c)
    b = np.uint32((b << np.uint32(7)) | (b >> np.uint32(25)))
    return a, b, c, d


@numba.njit(cache=True)
def chacha20(start: State, out: State) -> None:  # pragma: no cover - compiled
    """One block: 16 words of state in, 16 words of stream out (RFC 8439, section 2.3)."""
    a0, a1, a2, a3 = start[0], start[1], start[2], start[3]
    b0, b1, b2, b3 = start[4], start[5], start[6], start[7]
    c0, c1, c2, c3 = start[8], start[9], start[10], start[11]
    d0, d1, d2, d3 = start[12], start[13], start[14], start[15]
    for _ in range(10):
        a0, b0, c0, d0 = _quarter(a0, b0, c0, d0)
        a1, b1, c1, d1 = _quarter(a1, b1, c1, d1)
        a2, b2, c2, d2 = _quarter(a2, b2, c2, d2)
        a3, b3, c3, d3 = _quarter(a3, b3, c3, d3)
        a0, b1, c2, d3 = _quarter(a0, b1, c2, d3)
        a1, b2, c3, d0 = _quarter(a1, b2, c3, d0)
        a2, b3, c0, d1 = _quarter(a2, b3, c0, d1)
        a3, b0, c1, d2 = _quarter(a3, b0, c1, d2)
    out[0], out[1], out[2], out[3] = a0, a1, a2, a3
    out[4], out[5], out[6], out[7] = b0, b1, b2, b3
    out[8], out[9], out[10], out[11] = c0, c1, c2, c3
    out[12], out[13], out[14], out[15] = d0, d1, d2, d3
    for i in range(16):
        out[i] = np.uint32(out[i] + start[i])


@numba.njit(cache=True)
def open_stream(state: State, key: Words) -> None:  # pragma: no cover - compiled
    """Set ``state`` (16,) to the key's first block. The key is four words, lower half first; the nonce is zero."""
    state[0], state[1] = np.uint32(0x61707865), np.uint32(0x3320646E)
    state[2], state[3] = np.uint32(0x79622D32), np.uint32(0x6B206574)
    for i in range(4):
        state[4 + 2 * i] = np.uint32(key[i] & np.uint64(0xFFFFFFFF))
        state[5 + 2 * i] = np.uint32(key[i] >> np.uint64(32))
    state[12:] = 0


@numba.njit(cache=True)
def next_unit(state: State, block: State, at: int) -> tuple[float, int]:  # pragma: no cover - compiled
    """The stream's next uniform number in [0, 1), 53 bits, and the place after it. Begin with ``at`` = 16."""
    if at == 16:
        chacha20(state, block)
        state[12] = np.uint32(state[12] + np.uint32(1))
        if state[12] == 0:
            state[13] = np.uint32(state[13] + np.uint32(1))
        at = 0
    word = (np.uint64(block[at + 1]) << np.uint64(32)) | np.uint64(block[at])
    return np.float64(word >> np.uint64(11)) * 2.0**-53, at + 2


def expand(key: Words, n_bytes: int) -> bytes:
    """The first bytes of the stream of a key (4,)."""
    state, block = np.empty(16, dtype=np.uint32), np.empty(16, dtype=np.uint32)
    open_stream(state, key)
    stream = bytearray()
    while len(stream) < n_bytes:
        chacha20(state, block)
        state[12] += 1
        stream += block.astype("<u4").tobytes()
    return bytes(stream[:n_bytes])
