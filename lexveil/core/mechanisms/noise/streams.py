"""Random generators: named streams of a known seed for experiments, and generators keyed by the
operating system for releases.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b

import numpy as np


def stream(seed: int, *names: str) -> np.random.Generator:
    """Return the random generator that a seed and ``names`` determine, e.g. ("madlib", "S3",
    "10.0", doc_id, "text").

    Seed and names determine the stream, so results do not depend on the order of draws, batches or
    workers. Everybody who knows the seed can replay the noise, so a run with these streams is an
    experiment, never a release.
    """
    key = b"".join(len(name.encode()).to_bytes(8, "big") + name.encode() for name in names)
    digest = blake2b(key, digest_size=16).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])


def release_generator() -> np.random.Generator:
    """Return a new ChaCha20 random generator keyed with 256 bits from the operating system. The
    key is not stored.
    """
    from randomgen import ChaCha

    return np.random.Generator(ChaCha(key=secrets.randbits(256), counter=0, rounds=20))
