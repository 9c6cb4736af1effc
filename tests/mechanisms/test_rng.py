"""Streams have names; a release has none."""

import numpy as np
from randomgen import ChaCha

from lexveil.mechanisms.noise.keystream import expand
from lexveil.mechanisms.noise.streams import release_generator, stream


def test_a_name_gives_the_same_stream() -> None:
    assert stream(1, "a", "b").integers(2**62) == stream(1, "a", "b").integers(2**62)


def test_names_seeds_and_boundaries_matter() -> None:
    """("ab", "c") and ("a", "bc") are different names."""
    keys = [(1, "ab", "c"), (1, "a", "bc"), (2, "ab", "c"), (1, "abc"), (1, "ab", "c", "")]
    draws = {int(stream(seed, *names).integers(2**62)) for seed, *names in keys}
    assert len(draws) == len(keys)


def test_release_is_never_the_same() -> None:
    assert release_generator().integers(2**62) != release_generator().integers(2**62)


def test_release_is_cryptographic() -> None:
    assert type(release_generator().bit_generator).__name__ == "ChaCha"
    assert isinstance(release_generator(), np.random.Generator)


def test_its_cipher_is_that_of_the_rfc() -> None:
    """The keystream has the vectors of RFC 8439 (test_keystream.py); the generator's library gives the same words."""
    words = np.array([0x8796A5B4C3D2E1F0, 0x0F1E2D3C4B5A6978, 0xFEDCBA9876543210, 0x0123456789ABCDEF], dtype=np.uint64)
    key = int.from_bytes(words.astype("<u8").tobytes(), "little")
    drawn = ChaCha(key=key, counter=0, rounds=20).random_raw(64)
    assert drawn.tolist() == np.frombuffer(expand(words, 512), dtype="<u8").tolist()
