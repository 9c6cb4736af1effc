"""ChaCha20 against RFC 8439, streams that have names, and a release that has none."""

import secrets

import numpy as np
from randomgen import ChaCha

from lexveil.core.mechanisms.kernels.keystream import (
    BLOCKS,
    WORDS,
    chacha20,
    next_words,
    open_stream,
)
from lexveil.core.mechanisms.noise.keystream import expand
from lexveil.core.mechanisms.noise.streams import release_generator, stream


def test_stream_of_a_zero_key():
    """RFC 8439, appendix A.1, test vectors 1 and 2: key 0, nonce 0, blocks 0 and 1."""
    stream_bytes = expand(np.zeros(4, dtype=np.uint64), 128).hex()
    assert stream_bytes.startswith("76b8e0ada0f13d90405d6ae55386bd28")
    assert stream_bytes[128:].startswith("9f07e7be5551387a98ba977c732d080d")
    # The library of a release's generator gives the same words.
    words = np.array(
        [0x8796A5B4C3D2E1F0, 0x0F1E2D3C4B5A6978, 0xFEDCBA9876543210, 0x0123456789ABCDEF],
        dtype=np.uint64,
    )
    drawn = ChaCha(
        key=int.from_bytes(words.astype("<u8").tobytes(), "little"), counter=0, rounds=20
    ).random_raw(64)
    assert drawn.tolist() == np.frombuffer(expand(words, 512), dtype="<u8").tolist()


def test_blocks_made_together_are_those_made_one_by_one():
    """Each block has its own counter, even where the upper half of the counter begins."""
    rng = np.random.default_rng(0)
    state = rng.integers(2**32, size=16, dtype=np.uint32)
    state[12] = 2**32 - BLOCKS
    together = np.empty((16, BLOCKS), dtype=np.uint32)
    alone = np.empty((16, BLOCKS), dtype=np.uint32)
    chacha20(state, together.ravel())
    for block in range(BLOCKS):
        chacha20(state + np.uint32(block) * (np.arange(16) == 12), alone.ravel())
        assert (together[:, block] == alone[:, 0]).all()


def test_words_are_those_of_the_stream():
    key = np.array([1, 2, 3, 4], dtype=np.uint64)
    state = np.empty(16, dtype=np.uint32)
    some = np.empty(WORDS, dtype=np.uint64)
    words = []
    open_stream(state, key[None], 0, 0)
    for _ in range(3):
        next_words(state, some)
        words += some.tolist()
    assert words == np.frombuffer(expand(key, 8 * 3 * WORDS), dtype="<u8").tolist()
    assert expand(key, 64) != expand(key, 64, nonce=1) != expand(key, 64, nonce=2)


def test_names_seeds_and_boundaries_of_streams_matter():
    """("ab", "c") and ("a", "bc") are different names."""
    keys = [(1, "ab", "c"), (1, "a", "bc"), (2, "ab", "c"), (1, "abc"), (1, "ab", "c", "")]
    draws, again = (
        {int(stream(seed, *names).integers(2**62)) for seed, *names in keys} for _ in range(2)
    )
    assert len(draws) == len(keys) and draws == again


def test_every_bit_of_256_from_the_system_reaches_the_noise_of_a_release(
    monkeypatch,
):
    """A shorter key, or one of which a part is dropped, would give two of these keys one stream."""
    assert isinstance(release_generator().bit_generator, ChaCha)
    assert release_generator().integers(2**62) != release_generator().integers(2**62)
    streams = set()
    for bit in range(257):
        entropy = 1 << bit if bit < 256 else 0
        monkeypatch.setattr(
            secrets, "randbits", lambda n_bits, entropy=entropy: entropy & ((1 << n_bits) - 1)
        )
        streams.add(tuple(release_generator().integers(2**63, size=2).tolist()))
    assert len(streams) == 257
