"""API keys: who may ask. The file holds their SHA-256 hashes; a key itself is shown once, when it is made.

A key is 256 random bits, so that a fast hash of it can be neither inverted nor searched.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import stat
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from lexveil.errors import RequestError
from lexveil.runtime.tables import atomic_file

Role = Literal["privatize", "metrics"]
ROLES = ("privatize", "metrics")
PREFIX = "lxv_"  # by which a scanner for leaked secrets knows one
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
VERSION = 1


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as the file has it.

    Attributes:
        name: for logs and the ledger's chain.
        sha256: of the key, in hex.
        role: privatize asks for texts, metrics reads ``/metrics`` and nothing else.
        created: UTC.
    """

    name: str
    sha256: str
    role: Role
    created: str


def read_keys(path: Path) -> list[ApiKey]:
    """The keys of a file.

    Raises:
        RequestError: if there is none, others than its owner may write to it, or it is no such file.
    """
    try:
        if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise RequestError(f"{path}: others than its owner can write to it and let themselves in; chmod go-w it")
        values = json.loads(path.read_text(encoding="utf-8"))
        keys = [ApiKey(**one) for one in values["keys"]]
        if values["version"] != VERSION or not all(
            NAME.fullmatch(key.name) and key.role in ROLES and re.fullmatch("[0-9a-f]{64}", key.sha256) for key in keys
        ):
            raise ValueError
        return keys
    except FileNotFoundError:
        raise RequestError(
            f"{path}: there is no such file; `lexveil service key add NAME --keys {path}` makes it"
        ) from None
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError, KeyError, TypeError):
        raise RequestError(f"{path}: is no file of API keys; make one by `lexveil service key add`") from None


def add_key(path: Path, name: str, role: Role = "privatize") -> str:
    """Make a key, keep its hash, and return it.

    Raises:
        RequestError: if the name is taken, or cannot be one; or as ``read_keys``.
    """
    if not NAME.fullmatch(name):
        raise RequestError(f"{name!r}: a key's name has up to 64 letters, digits, dots, dashes and underscores")
    keys = read_keys(path) if path.exists() else []
    if any(key.name == name for key in keys):
        raise RequestError(f"{path}: has a key of the name {name}; remove that one first, or choose another name")
    key = PREFIX + secrets.token_urlsafe(32)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    _write(path, [*keys, ApiKey(name, _digest(key), role, now)])
    return key


def remove_key(path: Path, name: str) -> None:
    """Forget a key; a service that runs refuses it from its next request on.

    Raises:
        RequestError: if there is none of this name; or as ``read_keys``.
    """
    keys = read_keys(path)
    kept = [key for key in keys if key.name != name]
    if len(kept) == len(keys):
        raise RequestError(f"{path}: has no key of the name {name}")
    _write(path, kept)


def _write(path: Path, keys: list[ApiKey]) -> None:
    try:
        with atomic_file(path) as partial:
            partial.touch(mode=0o600)
            content = {"version": VERSION, "keys": [asdict(key) for key in keys]}
            partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise RequestError(f"{path}: cannot be written ({error.strerror})") from None


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Keys:
    """The keys of a file, read again when it changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, ...] = ()
        self._keys: list[ApiKey] = []

    def find(self, key: str) -> ApiKey | None:
        """The key that this is; None if it is none of the file. All are compared, in constant time.

        Raises:
            RequestError: if the file cannot be read any more.
        """
        self._refresh()
        digest, found = _digest(key), None
        for one in self._keys:
            if hmac.compare_digest(one.sha256, digest):
                found = one
        return found

    def _refresh(self) -> None:
        try:
            status = self.path.stat()
        except OSError as error:
            raise RequestError(f"{self.path}: cannot be read ({error.strerror})") from None
        seen = (status.st_mtime_ns, status.st_ino, status.st_size, status.st_mode)
        if seen != self._seen:
            self._keys = read_keys(self.path)
            self._seen = seen
