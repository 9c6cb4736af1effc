"""Subjects by salted hash: who lacks the salt can neither read a key nor test a guess of one."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence

import numpy as np

from lexveil.errors import RequestError
from lexveil.ledger.amounts import Keys

SALT_BYTES = 32
HASH_BYTES = 16  # of HMAC-SHA256: 10 million subjects have two of one hash with a chance below 1e-24
BLOCK = 64  # bytes of a block of SHA-256


class Hasher:
    """HMAC-SHA256 (RFC 2104) of subjects' keys, its first 128 bits (RFC 2104, section 5)."""

    def __init__(self, salt: bytes) -> None:
        # With both pads hashed once, a key takes a third of the time of hmac.digest.
        block = salt.ljust(BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))
        self._balances = hmac.digest(salt, b"\0balances", "sha256")

    def one(self, key: str) -> bytes:
        """The hash of one key, ``HASH_BYTES`` long."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(key.encode("utf-8", "surrogatepass"))
        outer.update(inner.digest())
        return outer.digest()[:HASH_BYTES]

    def mac(self, subject: bytes, nano: int) -> bytes:
        """The keyed hash of a balance, 8 bytes: who lacks the salt cannot write another amount (BLAKE2, RFC 7693)."""
        packed = subject + nano.to_bytes(8, "big", signed=True)
        return hashlib.blake2b(packed, digest_size=8, key=self._balances).digest()

    def all(self, keys: Sequence[str], first: int) -> Keys:
        """Hashes of keys, shape (n, 2), whose order is that of their bytes.

        Args:
            first: number of the first key's document, for messages.

        Raises:
            RequestError: if a key is not a text, or empty.
        """
        for place, key in enumerate(keys):
            if type(key) is not str or not key:
                raise RequestError(
                    f"document {first + place + 1} has no subject: {'an empty text' if key == '' else 'not a text'}; "
                    "every document needs the key of whom it is about"
                )
        return as_keys(map(self.one, keys))


def as_keys(hashes: Iterable[bytes]) -> Keys:
    """Hashes as numbers, shape (n, 2), whose order is that of their bytes."""
    return np.frombuffer(b"".join(hashes), dtype=">u8").reshape(-1, 2).astype(np.uint64)


def as_bytes(keys: Keys) -> list[bytes]:
    """Hashes as bytes."""
    joined = keys.astype(">u8").tobytes()
    return [joined[start : start + HASH_BYTES] for start in range(0, len(joined), HASH_BYTES)]


def fingerprint(salt: bytes) -> str:
    """What the database knows of its salt: enough to tell another one."""
    return hmac.digest(salt, b"\0fingerprint of the salt", "sha256").hex()
