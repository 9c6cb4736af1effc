"""API keys of the service's clients, in a file that stores only their SHA-256 hashes. A key itself
is shown once, when it is created.

A key is 256 random bits, so that a fast hash of it can be neither inverted nor searched.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lexveil.base.errors import RequestError
from lexveil.base.runtime.tables import atomic_file

Role = Literal["privatize", "metrics"]
PREFIX = "lxv_"  # lets scanners for leaked secrets recognize a key


class ApiKey(BaseModel):
    """Entry of an API key in the key file.

    Attributes:
        name: name of the key in logs and in the ledger's log of charges.
        sha256: SHA-256 of the key, in hex.
        role: ``privatize`` is for requests with texts, ``metrics`` for ``/metrics`` only.
        created: time of creation, UTC.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    role: Role
    created: str


class _KeyFile(BaseModel):
    version: Literal[1] = 1
    keys: list[ApiKey]


def read_keys(path: Path) -> list[ApiKey]:
    """Read the entries of an API-key file.

    Raises:
        RequestError: if there is no such file, users other than its owner may write to it, or it is
            not an API-key file.
    """
    try:
        if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise RequestError(
                f"{path}: users other than the owner can write to the file and add keys for "
                "themselves; run chmod go-w on it"
            )
        return _KeyFile.model_validate_json(path.read_bytes()).keys
    except FileNotFoundError:
        raise RequestError(
            f"{path}: there is no such file of API keys; restore the file, or make one by "
            f"`lexveil service key add NAME --keys {path}`"
        ) from None
    except OSError as error:
        raise RequestError(
            f"{path}: the file of API keys cannot be read ({error.strerror}); check its "
            "owner and permissions"
        ) from None
    except ValidationError:
        raise RequestError(
            f"{path}: the file is not an API-key file; make one by `lexveil service key add`"
        ) from None


def add_key(path: Path, name: str, role: Role = "privatize") -> str:
    """Create a key, store its hash in the file, and return the key.

    Raises:
        RequestError: if the name is taken or invalid, or if ``read_keys`` rejects the file.
    """
    keys = read_keys(path) if path.exists() else []
    if any(key.name == name for key in keys):
        raise RequestError(
            f"{path}: the file has a key with the name {name}; remove that key first, or "
            "choose another name"
        )
    secret = PREFIX + secrets.token_urlsafe(32)
    try:
        key = ApiKey(
            name=name,
            sha256=_digest(secret),
            role=role,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    except ValidationError:
        raise RequestError(
            f"{name!r} is not the name of a key; use up to 64 letters, digits, dots, dashes "
            "and underscores"
        ) from None
    _write(path, [*keys, key])
    return secret


def remove_key(path: Path, name: str) -> None:
    """Remove an API key from the file. A running service refuses the key from its next request on.

    Raises:
        RequestError: if no key has this name, or if ``read_keys`` rejects the file.
    """
    keys = read_keys(path)
    kept = [key for key in keys if key.name != name]
    if len(kept) == len(keys):
        raise RequestError(f"{path}: the file has no key with the name {name}")
    _write(path, kept)


def _write(path: Path, keys: list[ApiKey]) -> None:
    try:
        with atomic_file(path) as partial:
            partial.touch(mode=0o600)
            partial.write_text(
                _KeyFile(keys=keys).model_dump_json(indent=2) + "\n", encoding="utf-8"
            )
    except OSError as error:
        raise RequestError(f"{path}: the file cannot be written ({error.strerror})") from None


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Keys:
    """The API keys of a file, which is read again whenever it changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, ...] = ()
        self._keys: list[ApiKey] = []

    def find(self, key: str) -> ApiKey | None:
        """Return the entry of an API key, or None if the file has no such key. Every entry is
        compared, in constant time.

        Raises:
            RequestError: if the file cannot be read any more.
        """
        digest = _digest(key)
        matching = [known for known in self._current() if hmac.compare_digest(known.sha256, digest)]
        return matching[0] if matching else None

    def _current(self) -> list[ApiKey]:
        seen = _state(self.path)
        if not seen or seen != self._seen:
            self._keys = read_keys(self.path)
            self._seen = seen
        return self._keys


def _state(path: Path) -> tuple[int, ...]:
    """Return numbers that change when a file changes, such as its time of modification. The result
    is empty if they cannot be read; ``read_keys`` then states the reason.
    """
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_mtime_ns, status.st_ino, status.st_size, status.st_mode)
