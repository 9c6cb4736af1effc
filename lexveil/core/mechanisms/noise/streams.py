"""Random generators: named streams of a known seed for experiments, and generators keyed by the
operating system for releases.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b

import numpy as np


def stream(seed: int, *names: str) -> np.random.Generator:
    """Return the generator that belongs to ``names``, e.g. ("madlib", "S3", "10.0", doc_id,
    "text").

    The names determine the stream, so order, batches and workers change no result. Everybody who
    knows the seed can replay the noise, so a run with these streams is an experiment, never a
    release.
    """
    key = b"".join(len(name.encode()).to_bytes(8, "big") + name.encode() for name in names)
    digest = blake2b(key, digest_size=16).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])


def release_generator() -> np.random.Generator:
    """Return a ChaCha20 generator keyed with 256 bits from the operating system. The key is not
    stored.
    """
    from randomgen import ChaCha

    return np.random.Generator(ChaCha(key=secrets.randbits(256), counter=0, rounds=20))
