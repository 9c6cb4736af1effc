"""Compressed files: gzip, Zstandard, bzip2 and xz around any format. Reading limits the expansion,
and writing is reproducible.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from lexveil.base.errors import RequestError
from lexveil.io.formats.messages import shown

# first bytes of compressed files, by the ending of their name
MAGIC = {
    "gz": b"\x1f\x8b",
    "zst": b"\x28\xb5\x2f\xfd",
    "bz2": b"BZh",
    "xz": b"\xfd7zXZ\x00",
}
ARROW_CODECS = {"gz": "gzip", "zst": "zstd"}

# bytes of memory that an xz file may require: four times the memory of its highest usual setting
XZ_MEMORY = 2**28

# Text compresses to a third or a tenth. A large file that expands more than this was made to fill a
# memory or a disk.
RATIO_LIMIT = 200
RATIO_FROM = 64 * 2**20  # number of expanded bytes up to which any ratio is allowed
# number of bytes to expand at a time; at most this many bytes before a fault are lost
PIECE = 2**14


def open_bytes(path: Path, compression: str, stream: IO[bytes] | None = None) -> IO[bytes]:
    """Open a file and return a stream of its decompressed bytes. Closing the result closes
    ``stream`` too.

    Args:
        path: the file.
        compression: the ending of the compression, "" for an uncompressed file.
        stream: the file's bytes if they are not at ``path``.

    Raises:
        RequestError: if the file cannot be read, or, while it is read, if its content is
            implausibly large (``RATIO_LIMIT``).
        OSError: while the file is read, if it is truncated or damaged.
    """
    try:
        stream = stream or path.open("rb")
    except OSError as error:
        raise RequestError(f"{shown(path)}: cannot be read ({error.strerror})") from None
    if not compression:
        return stream
    return io.BufferedReader(_Expanded(stream, compression, shown(path)), 2**17)


def compressed(stream: IO[bytes], compression: str, files: ExitStack) -> Any:
    """Return a stream that compresses its data into ``stream``, or ``stream`` itself without
    compression. ``files`` closes a new stream, but not ``stream``.

    Equal content gives equal bytes, because a gzip header gets neither time nor file name.
    """
    if compression == "gz":
        return files.enter_context(gzip.GzipFile("", "wb", 6, fileobj=stream, mtime=0))
    if compression == "zst":
        import pyarrow as pa

        return files.enter_context(
            pa.CompressedOutputStream(pa.PythonFile(_KeptOpen(stream), mode="w"), "zstd")
        )
    if compression == "bz2":
        return files.enter_context(bz2.BZ2File(stream, "wb"))
    if compression == "xz":
        return files.enter_context(lzma.LZMAFile(stream, "wb", preset=6))
    return stream


def require_plausible(where: str, size: int, expanded_size: int) -> None:
    """Check that a compressed file is not implausibly large when it is decompressed, compared with
    the compression of text.

    Raises:
        RequestError: if the file is implausibly large.
    """
    if expanded_size > RATIO_FROM and expanded_size > RATIO_LIMIT * size:
        sizes = (
            f"{size // 2**10} KiB expand to {expanded_size // 2**20} MiB, more than "
            f"{RATIO_LIMIT} times as much"
        )
        raise RequestError(
            f"{where}: {sizes}, which is not plausible for compressed text; if it is text, "
            "decompress it first"
        )


class _Expanded(io.RawIOBase):
    """Decompressed content of a file, as a raw stream."""

    def __init__(self, stream: IO[bytes], compression: str, file: str) -> None:
        self.compressed = stream
        self.file = file
        self.n_expanded = 0
        self.stream: Any
        if compression in ARROW_CODECS:
            import pyarrow as pa

            self.stream = pa.CompressedInputStream(
                pa.PythonFile(stream, mode="r"), ARROW_CODECS[compression]
            )
        else:
            self.stream = _Blocks(stream, compression)

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


class _Blocks(io.RawIOBase):
    """Decompressed content of a bzip2 or xz file. The file may consist of several concatenated
    streams, as the bzip2 and xz tools allow.
    """

    def __init__(self, stream: IO[bytes], compression: str) -> None:
        self.stream = stream
        self.compression = compression
        self.decompressor = self._begin()

    def _begin(self) -> bz2.BZ2Decompressor | lzma.LZMADecompressor:
        if self.compression == "bz2":
            return bz2.BZ2Decompressor()
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        content = b""
        while not content:
            piece = b""
            if self.decompressor.eof:
                piece = self.decompressor.unused_data or self.stream.read(PIECE)
                if self.compression == "xz":
                    piece = piece.lstrip(b"\0")  # padding byte between streams
                if not piece:
                    return 0
                self.decompressor = self._begin()
            elif self.decompressor.needs_input and not (piece := self.stream.read(PIECE)):
                raise OSError("Truncated")
            try:
                content = self.decompressor.decompress(piece, len(view))
            except lzma.LZMAError as error:
                raise OSError(str(error)) from None
        view[: len(content)] = content
        return len(content)


class _KeptOpen(io.RawIOBase):
    """Wrapper of a stream, such as standard output, that stays open when the writer of the stream
    is closed.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self.stream.write(content)
