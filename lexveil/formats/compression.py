"""Compressed files: gzip and Zstandard around any format, read with a limit on expansion and
written reproducibly.
"""

from __future__ import annotations

import gzip
import io
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from lexveil.errors import RequestError
from lexveil.formats.messages import shown

# what compressed files begin with, by the ending of their name
MAGIC = {"gz": b"\x1f\x8b", "zst": b"\x28\xb5\x2f\xfd"}
ARROW_CODECS = {"gz": "gzip", "zst": "zstd"}

# Text compresses to a third or a tenth. What expands more than this, once it is large, was made to
# fill a memory or a disk.
RATIO_LIMIT = 200
RATIO_FROM = 64 * 2**20  # bytes expanded; before that, any ratio
PIECE = 2**14  # bytes expanded at a time: so many at most are lost before a fault


def open_bytes(path: Path, compression: str, stream: IO[bytes] | None = None) -> IO[bytes]:
    """The bytes that a file holds, expanded; closing the result closes ``stream`` too.

    Args:
        path: the file.
        compression: its ending, "" for none.
        stream: the file's bytes if they are not at ``path``.

    Raises:
        RequestError: if it cannot be read; while it is read, if it is implausibly large
            (``RATIO_LIMIT``).
        OSError: while it is read, if it is truncated or damaged.
    """
    try:
        stream = stream or path.open("rb")
    except OSError as error:
        raise RequestError(f"{shown(path)}: cannot be read ({error.strerror})") from None
    if not compression:
        return stream
    return io.BufferedReader(_Expanded(stream, compression, shown(path)), 2**17)


def compressed(stream: IO[bytes], compression: str, files: ExitStack) -> Any:
    """A stream that compresses to ``stream``, or ``stream`` itself; ``files`` closes the former,
    and not the latter.

    The same content gives the same bytes: a header of gzip has neither time nor file name.
    """
    if compression == "gz":
        return files.enter_context(gzip.GzipFile("", "wb", 6, fileobj=stream, mtime=0))
    if compression == "zst":
        import pyarrow as pa

        return files.enter_context(
            pa.CompressedOutputStream(pa.PythonFile(_KeptOpen(stream), mode="w"), "zstd")
        )
    return stream


def require_plausible(where: str, size: int, expanded_size: int) -> None:
    """See that a file does not expand more than text does.

    Raises:
        RequestError: if it does.
    """
    if expanded_size > RATIO_FROM and expanded_size > RATIO_LIMIT * size:
        sizes = (
            f"{expanded_size // 2**20} MiB come out of {size // 2**10} KiB, more than "
            f"{RATIO_LIMIT} times as much"
        )
        raise RequestError(
            f"{where}: {sizes}: not what compressed text looks like. If it is text, "
            "decompress it first"
        )


class _Expanded(io.RawIOBase):
    """The content of a compressed file."""

    def __init__(self, stream: IO[bytes], compression: str, file: str) -> None:
        import pyarrow as pa

        self.compressed, self.file, self.n_expanded = stream, file, 0
        self.stream = pa.CompressedInputStream(
            pa.PythonFile(stream, mode="r"), ARROW_CODECS[compression]
        )

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = int(self.stream.readinto(memoryview(buffer)[:PIECE]))
        self.n_expanded += size
        n_compressed = self.compressed.tell()
        require_plausible(self.file, n_compressed, self.n_expanded)
        return size

    def close(self) -> None:
        if not self.closed:
            self.stream.close()
            self.compressed.close()
        super().close()


class _KeptOpen(io.RawIOBase):
    """A stream that stays open when its writer is closed, such as standard output."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self.stream.write(content)
