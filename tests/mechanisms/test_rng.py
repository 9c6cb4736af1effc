"""Streams have names; a release has none."""

import numpy as np

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
