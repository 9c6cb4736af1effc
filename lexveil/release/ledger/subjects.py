"""Hashing of subjects' keys with a secret salt. Without the salt nobody can read a key or test a
guess of a key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from lexveil.base.errors import RequestError

SALT_BYTES = 32
# bytes of a truncated HMAC-SHA256; the probability of a collision among 10 million subjects is
# below 1e-24
HASH_BYTES = 16
BYTES_OF_A_BLOCK = 64  # bytes of a block of SHA-256


class Hasher:
    """Hash function of subjects' keys: HMAC-SHA256 (RFC 2104) with the ledger's salt, truncated to
    the first 128 bits (RFC 2104, section 5).
    """

    def __init__(self, salt: bytes) -> None:
        # Hash both pads once: each key then takes a third of the time of hmac.digest.
        block = salt.ljust(BYTES_OF_A_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))
        self._balances = hashlib.blake2b(
            digest_size=8, key=hmac.digest(salt, b"\0balances", "sha256")
        )

    def one(self, key: str) -> bytes:
        """Return the hash of one subject's key, which has ``HASH_BYTES`` bytes."""
        inner = self._inner.copy()
        outer = self._outer.copy()
        inner.update(key.encode("utf-8", "surrogatepass"))
        outer.update(inner.digest())
        return outer.digest()[:HASH_BYTES]

    def mac(self, subject: object, nano: object) -> bytes | None:
        """Return the keyed hash that protects a subject's balance against edits: 8 bytes (BLAKE2,
        RFC 7693). Without the salt nobody can forge a balance.

        The result is None, which no stored balance has, if the subject or the amount does not have
        the ledger's format.
        """
        if not (isinstance(subject, bytes) and isinstance(nano, int)):
            return None
        keyed = self._balances.copy()
        keyed.update(subject + nano.to_bytes(8, "big", signed=True))
        return keyed.digest()

    def all(self, keys: Sequence[str], first: int) -> list[bytes]:
        """Return the hash of each subject's key.

        Args:
            first: number of the first key's document, for messages.

        Raises:
            RequestError: if a key is not a text, or empty.
        """
        for number, key in enumerate(keys, first + 1):
            if type(key) is not str or not key:
                raise RequestError(
                    f"document {number} has no subject: its key is "
                    f"{('an empty text' if key == '' else 'not a text')}; every document "
                    "needs the key of its subject"
                )
        return list(map(self.one, keys))


def fingerprint(salt: bytes) -> str:
    """Return the fingerprint of a salt. The database stores the fingerprint, which is enough to
    detect that another salt is used.
    """
    return hmac.digest(salt, b"\0fingerprint of the salt", "sha256").hex()
