"""Shards of C4's own form: JSON lines of text, timestamp and URL, gzipped. Read as any .json.gz, written here."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from lexveil.formats.base import Row, Source
from lexveil.formats.compression import compressed
from lexveil.formats.values import plain_value

KEYS = ("text", "timestamp", "url")  # others, such as an author's name, have no use here and are dropped


def c4_line(text: str, timestamp: str | None = None, url: str | None = None) -> bytes:
    """One line of a shard; always the three keys, in this order."""
    value = {"text": text, "timestamp": timestamp, "url": url}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def c4_row(text: str, row: Row, source: Source) -> bytes:
    """The line of a row of any table.

    Raises:
        RequestError: naming the row, if its timestamp or URL is no string or number.
    """
    where = source.location(row.line)
    timestamp, url = (plain_value(row.values.get(key), key, where, one_line=False) for key in KEYS[1:])
    return c4_line(text, timestamp, url)


class C4Shard:
    """One shard that is being written; the same lines give the same bytes. It is on the disk when it is closed."""

    def __init__(self, path: Path, mode: str = "xb") -> None:
        self.file: Any = path.open(mode)
        self.files = ExitStack()
        self.stream = compressed(self.file, "gz", self.files)

    def write(self, line: bytes) -> None:
        """Add a line."""
        self.stream.write(line)

    def close(self) -> None:
        """Complete the shard."""
        self.files.close()
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
