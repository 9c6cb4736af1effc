"""The noise of a release: all of the system's entropy reaches it."""

from __future__ import annotations

import secrets

import pytest

from lexveil.mechanisms.noise.streams import release_generator


def test_every_bit_of_256_from_the_system_reaches_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shorter key, or one of which a part is dropped, would give two of these keys one stream."""
    entropy = 0

    def system(n_bits: int) -> int:
        return entropy & ((1 << n_bits) - 1)

    monkeypatch.setattr(secrets, "randbits", system)
    streams = set()
    for bit in range(257):
        entropy = 1 << bit if bit < 256 else 0
        streams.add(tuple(release_generator().integers(2**63, size=2).tolist()))
    assert len(streams) == 257
