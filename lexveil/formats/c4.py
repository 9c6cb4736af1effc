"""Shards of C4's own form: JSON lines of text, timestamp and URL, gzipped. Read as any .json.gz, written here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

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


@contextmanager
def c4_shard(path: Path) -> Iterator[IO[bytes]]:
    """A shard that lines are written to; the same lines give the same bytes. It is on the disk at the end."""
    with path.open("wb") as file:
        with ExitStack() as files:
            yield compressed(file, "gz", files)
        file.flush()
        os.fsync(file.fileno())
