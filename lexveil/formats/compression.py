"""Compressed files: gzip and Zstandard around any format, read with a limit on expansion and written reproducibly."""

from __future__ import annotations

import gzip
import io
import zlib
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, ClassVar

from lexveil.errors import RequestError
from lexveil.formats.messages import shown

# Text compresses to a third or a tenth. What expands more than this, once it is large, was made to fill a memory or a
# disk.
RATIO_LIMIT = 200
RATIO_FROM = 64 * 2**20  # bytes expanded; before that, any ratio

DAMAGE = (EOFError, OSError, zlib.error)  # what reading a damaged compressed file raises


class Compression(ABC):
    """One compression: its ending, the bytes that its files begin with, and streams to read and write it."""

    ending: ClassVar[str]
    magic: ClassVar[bytes]

    @abstractmethod
    def reader(self, stream: Any) -> Any:
        """A stream of what ``stream`` expands to."""

    @abstractmethod
    def read(self, reader: Any, buffer: Any) -> int:
        """Read once from ``reader``: what precedes a fault is returned, and the next call raises the fault."""

    @abstractmethod
    def writer(self, stream: IO[bytes]) -> Any:
        """A stream that compresses to ``stream``, which stays open; the same content gives the same bytes."""


class Gzip(Compression):
    """gzip."""

    ending = "gz"
    magic = b"\x1f\x8b"

    def reader(self, stream: Any) -> Any:  # noqa: D102
        return gzip.GzipFile(fileobj=stream, mode="rb")

    def read(self, reader: Any, buffer: Any) -> int:  # noqa: D102
        return int(reader.readinto1(buffer))

    def writer(self, stream: IO[bytes]) -> Any:  # noqa: D102
        # Neither time nor file name in the header.
        return gzip.GzipFile("", "wb", 6, fileobj=stream, mtime=0)


class Zstandard(Compression):
    """Zstandard, by Arrow."""

    ending = "zst"
    magic = b"\x28\xb5\x2f\xfd"

    def reader(self, stream: Any) -> Any:  # noqa: D102
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")

    def read(self, reader: Any, buffer: Any) -> int:  # noqa: D102
        return int(reader.readinto(buffer))

    def writer(self, stream: IO[bytes]) -> Any:  # noqa: D102
        import pyarrow as pa

        return pa.CompressedOutputStream(pa.PythonFile(_KeptOpen(stream), mode="w"), "zstd")


COMPRESSIONS: dict[str, Compression] = {kind.ending: kind for kind in (Gzip(), Zstandard())}


def open_bytes(path: Path, compression: str, stream: IO[bytes] | None = None) -> IO[bytes]:
    """The bytes that a file holds, expanded; closing the result closes ``stream`` too.

    Args:
        path: the file.
        compression: its ending, "" for none.
        stream: the file's bytes if they are not at ``path``.

    Raises:
        RequestError: if it cannot be read; while it is read, if it is truncated, damaged, or implausibly large
            (``RATIO_LIMIT``).
    """
    try:
        stream = stream or path.open("rb")
    except OSError as error:
        raise RequestError(f"{shown(path)}: cannot be read ({error.strerror})") from None
    if not compression:
        return stream
    return io.BufferedReader(_Expanded(stream, COMPRESSIONS[compression], shown(path)), 2**17)


def expanded_head(head: bytes, path: Path, compression: str) -> bytes:
    """What the first bytes of a file expand to, wherever they are cut off.

    Raises:
        RequestError: if they are not compressed as the name says.
    """
    if not compression:
        return head
    pieces = []
    with open_bytes(path, compression, io.BytesIO(head)) as stream:
        try:
            while piece := stream.read1(2**16):  # type: ignore[attr-defined]
                pieces.append(piece)
        except DAMAGE:  # the cut
            pass
    if head and not pieces:
        raise RequestError(f"{shown(path)}: not a .{compression} file, or a damaged one")
    return b"".join(pieces)


def compressed(stream: IO[bytes], compression: str, files: ExitStack) -> Any:
    """A stream that compresses to ``stream``, or ``stream`` itself; ``files`` closes the former."""
    return files.enter_context(COMPRESSIONS[compression].writer(stream)) if compression else stream


def is_implausible(size: int, expanded_size: int) -> bool:
    """Whether a file expands more than text does."""
    return expanded_size > RATIO_FROM and expanded_size > RATIO_LIMIT * size


class _Expanded(io.RawIOBase):
    """The content of a compressed file; counts the bytes of both."""

    def __init__(self, stream: IO[bytes], compression: Compression, file: str) -> None:
        self.compressed, self.compression, self.file = stream, compression, file
        self.n_compressed = self.n_expanded = 0
        self.stream: Any = compression.reader(_Counted(self))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self.compression.read(self.stream, buffer)
        self.n_expanded += size
        if is_implausible(self.n_compressed, self.n_expanded):
            raise RequestError(
                f"{self.file}: {self.n_expanded // 2**20} MiB come out of {self.n_compressed // 2**10} KiB, "
                f"more than {RATIO_LIMIT} times as much, and more would follow: not what packed text looks like. "
                "If it is, unpack it first"
            )
        return size

    def close(self) -> None:
        if not self.closed:
            # Arrow's stream holds what it reads from, which holds this: a cycle that the garbage collector cannot see.
            self.stream.close()
            self.stream = None
            self.compressed.close()
        super().close()


class _Counted(io.RawIOBase):
    def __init__(self, owner: _Expanded) -> None:
        self.owner = owner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.owner.compressed.read(len(buffer))
        buffer[: len(content)] = content
        self.owner.n_compressed += len(content)
        return len(content)


class _KeptOpen(io.RawIOBase):
    """A stream that stays open when its writer is closed, such as standard output."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self.stream.write(content)
