"""Access to remote corpora through fsspec: finding the files (shards) at an address, and reading
that resumes after a broken connection.

This module does not store the content. Messages do not repeat the text of an error, because the
text may hold an address with a key.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit, urlunsplit

from fsspec.core import url_to_fs
from fsspec.spec import AbstractBufferedFile

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.logs import logger
from lexveil.io.formats.base import Source
from lexveil.io.formats.input_files import COMPANION
from lexveil.io.formats.messages import shown
from lexveil.io.formats.registry import as_source, known_endings

LOG = logger(__name__)

T = TypeVar("T")


class RefusedError(RequestError):
    """Error about a remote request that would fail again however often it is repeated."""


ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*(://|::.*://)", re.IGNORECASE)
HUB = re.compile(
    r"hf://(?:datasets/)?(?!(?:datasets|spaces|models|buckets)/)(?P<repo>[\w.-]+/[\w.-]+)"
    r"(?:@(?P<revision>refs/convert/[^/]+|refs/pr/\d+|[^/]+))?(?:/(?P<path>.*))?",
    re.IGNORECASE,
)
TRAIN = re.compile(r"(?<![a-z])train(?![a-z])", re.IGNORECASE)

# bytes per request: a request takes some tenths of a second on a fast line, and little is lost if
# the connection breaks
CHUNK = 8 * 2**20
TRIES = 6
LONGEST_WAIT = 60.0  # seconds

# Each library has its own classes for a broken connection; these are their common base classes.
TRANSIENT = {
    "ConnectionError",
    "TimeoutError",
    "Timeout",
    "TransportError",
    "ChunkedEncodingError",
    "ClientConnectionError",
    "ClientPayloadError",
    "IncompleteRead",
    "ProtocolError",
}
OFFLINE = "OfflineModeIsEnabled"  # but this subclass of one of them is permanent
# Temporary states of a server: too slow, too many requests; also 5xx.
TRANSIENT_STATUS = {408, 425, 429}
# Fields that change with the content of a file: an ETag, a hash of the Hugging Face hub, a
# modification time.
ETAGS = ("ETag", "etag", "blob_id", "md5Hash", "checksum", "mtime")


@dataclass(frozen=True, slots=True)
class RemoteShard:
    """One file (shard) of a remote corpus.

    Attributes:
        number: number in the order of all file names.
        path: path in the file system.
        size: size in bytes.
        etag: any value of the file system that changes when the content changes, or None.
    """

    number: int
    path: str
    size: int
    etag: str | None

    @property
    def name(self) -> str:
        """Path of the shard as messages and records show it."""
        return shown_address(self.path)

    def source(self) -> Source:
        """Return the shard as an input source that file readers can open, with the name to show in
        messages.
        """
        source = as_source(Path(self.name))
        assert source is not None
        return source


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote corpus: its address without credentials, its file system, all its shards, and its
    commit if the host has versions.
    """

    address: str
    fs: Any
    shards: tuple[RemoteShard, ...]
    commit: str | None


def is_address(text: str) -> bool:
    """Return whether a string is a remote address (hf://…, s3://…) and not a local path."""
    return ADDRESS.match(text) is not None


def shown_address(address: str) -> str:
    """Remove user, password and query from an address, because each of them may be a secret, so
    that messages and records can show it.
    """
    links = []
    for link in address.split("::"):
        if "://" in link:  # in a path, ? is a wildcard
            parts = urlsplit(link)
            link = urlunsplit(  # noqa: PLW2901
                parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
            )
        links.append(shown(link))
    return "::".join(links)


def find_remote(address: str) -> Remote:
    """Find the files (shards) at a remote address, which is a file, a pattern with *, or a folder.

    hf://[datasets/]ORG/NAME[@REVISION]/PATH is read at the commit to which the revision points now.
    The shards of a folder are its files named train, or all of its files if none is named train.

    Raises:
        RequestError: if nothing exists at the address, access is refused, the format of a file is
            unknown, or a library is missing.
        LexveilError: if the address cannot be reached.
    """
    where = shown_address(address)
    try:
        url, commit = _hub_url(address) if address.lower().startswith("hf://") else (address, None)
        fs, path = url_to_fs(url)
    except ImportError:
        raise RequestError(
            f"{where}: its library is not installed; for hf:// run `uv sync --extra hf`"
        ) from None
    except ValueError:
        raise RequestError(
            f"{where}: unknown kind of address; use an address that fsspec opens"
        ) from None
    entries = persistent(where, lambda: _entries(fs, path))
    files = sorted(
        (entry for entry in entries if entry["type"] == "file"), key=lambda entry: entry["name"]
    )
    readable = [entry for entry in files if as_source(Path(shown_address(entry["name"])))]
    if not _is_pattern(path) and not any(entry["name"] == path for entry in files):  # a folder
        readable = [
            entry for entry in readable if not COMPANION.fullmatch(Path(entry["name"]).name)
        ]
        readable = [
            entry for entry in readable if TRAIN.search(Path(entry["name"]).name)
        ] or readable
    elif unknown := [entry["name"] for entry in files if entry not in readable]:
        raise RequestError(
            f"{shown_address(unknown[0])}: the ending of the name is no known format; known are "
            f"{known_endings()}"
        )
    if not readable:
        folders = sorted(Path(entry["name"]).name for entry in entries if entry["type"] != "file")
        hint = f"; give one of the folders {shown(', '.join(folders[:20]))}" if folders else ""
        raise RequestError(
            f"{where}: no file here can be read as data; known are {known_endings()}{hint}"
        )
    for entry in readable:
        if entry.get("size") is None:
            raise RequestError(
                f"{shown_address(entry['name'])}: unknown size; download it and give the file"
            )
    shards = []
    for number, entry in enumerate(readable):
        etag = next((str(entry[key]).strip('"') for key in ETAGS if entry.get(key)), None)
        shards.append(RemoteShard(number, entry["name"], int(entry["size"]), etag))
    return Remote(where, fs, tuple(shards), commit)


def _hub_url(address: str) -> tuple[str, str | None]:
    """Return the fsspec address of a data set on the Hugging Face hub, pinned to its present
    commit; also return the commit.
    """
    where = shown_address(address)
    parts = HUB.fullmatch(address)
    if parts is None:
        raise RequestError(
            f"{where}: does not have the form hf://[datasets/]ORG/NAME[@REVISION]/PATH"
        )
    commit = persistent(where, lambda: hub_commit(parts["repo"], parts["revision"]))
    # A revision with a slash is a git ref of the hub; the hub's file system accepts it unchanged.
    revision = commit or parts["revision"]
    suffix = f"@{revision}" if revision else ""
    return f"hf://datasets/{parts['repo']}{suffix}/{parts['path'] or ''}", commit


def hub_commit(repo: str, revision: str | None) -> str | None:
    """Return the commit to which a revision of a data set on the Hugging Face hub points now."""
    import huggingface_hub

    sha: str | None = (
        huggingface_hub.HfApi().repo_info(repo, repo_type="dataset", revision=revision).sha
    )
    return sha


def _entries(fs: Any, path: str) -> list[dict[str, Any]]:
    """Return the file system entries at a path: of the file, of the files in a folder, or of the
    files that match a pattern.
    """
    if _is_pattern(path):
        return list(fs.glob(path, detail=True).values())
    info = fs.info(path)
    return [info] if info["type"] == "file" else list(fs.ls(path, detail=True))


def _is_pattern(path: str) -> bool:
    # In an address, ? starts the query.
    return "*" in path or "[" in path or ("?" in path and "://" not in path)


def persistent(what: str, call: Callable[[], T]) -> T:
    """Call a function, and repeat the call after growing waits if its error may be temporary.

    Raises:
        RefusedError: if the error is permanent: access is refused, or nothing exists there.
        LexveilError: if ``TRIES`` calls failed, or the connection or the disk has another error.
    """
    for attempt in range(1, TRIES + 1):
        try:
            return call()
        except LexveilError:
            raise
        except Exception as error:
            status = _status(error)
            reason = type(error).__name__ + (f", HTTP {status}" if status else "")
            if (hint := _why_refused(error, status)) is not None:
                raise RefusedError(f"{what}: refused ({reason}); {hint}") from None
            if not is_transient(error):
                if status is None and not isinstance(error, OSError):
                    raise  # a bug: let the traceback through
                raise LexveilError(f"{what}: cannot be read ({reason})") from None
            if attempt == TRIES:
                raise LexveilError(
                    f"{what}: could not be read in {TRIES} tries ({reason}); run again to resume"
                ) from None
            wait = min(2.0 ** (attempt - 1), LONGEST_WAIT)
            LOG.warning(f"{what}: {reason}; try {attempt + 1} of {TRIES} in {wait:.0f} s")
            time.sleep(wait)
    raise AssertionError("the last try returns or raises")


def _status(error: BaseException | None) -> int | None:
    """Return the HTTP status code of an exception of any library, or of its cause; None if the
    exception has no status code.
    """
    while error is not None:
        response = getattr(error, "response", None)
        told = (
            response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if isinstance(response, dict)
            else None
        )
        for status in (
            told,
            getattr(response, "status_code", None),
            getattr(error, "status", None),
        ):
            if isinstance(status, int):
                return status
        error = error.__cause__
    return None


def is_transient(error: BaseException) -> bool:
    """Return whether an error may be temporary, so that the same request may succeed later."""
    status = _status(error)
    if status is not None:
        return status in TRANSIENT_STATUS or status >= 500
    names = {ancestor.__name__ for ancestor in type(error).__mro__}
    return bool(names & TRANSIENT) and OFFLINE not in names


def _why_refused(error: Exception, status: int | None) -> str | None:
    """Return advice to the user about an error that every repetition would meet; None for other
    errors.
    """
    if status in (401, 403) or isinstance(error, PermissionError):
        return (
            "check the name; if the data set is private or gated, accept its terms and log in "
            "(`hf auth login`, or HF_TOKEN)"
        )
    if status in (404, 410) or isinstance(error, FileNotFoundError | NotADirectoryError):
        return "not found: check the name, the path and the revision"
    if type(error).__name__ == OFFLINE:
        return "HF_HUB_OFFLINE is set, which forbids requests to the hub; unset it"
    # fsspec raises these errors, also for servers without range requests
    if isinstance(error, ValueError | NotImplementedError):
        return (
            "the server cannot list it, or cannot read it from any byte on; download it and "
            "give the file"
        )
    return None


class RemoteFile(AbstractBufferedFile):  # type: ignore[misc]
    """A remote shard as a seekable file object. After a broken connection, reading resumes at the
    same byte.
    """

    def __init__(self, fs: Any, shard: RemoteShard) -> None:
        # fsspec's cache is off: it would read ahead, and the requests are large already.
        super().__init__(fs, shard.path, cache_type="none", size=shard.size)
        self.shown = shard.name

    def buffered(self) -> io.BufferedReader:
        """Return a buffered reader of the file, which serves small reads from large requests."""
        return io.BufferedReader(cast(io.RawIOBase, self), CHUNK)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return persistent(self.shown, lambda: self._fetch_once(start, end))

    def _fetch_once(self, start: int, end: int) -> bytes:
        with self.fs.open(self.path, "rb", cache_type="none") as file:
            file.seek(start)
            content: bytes = file.read(end - start)
        if not content:
            raise ConnectionError("the file ended before its stated size")
        return content
