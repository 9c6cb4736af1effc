"""Any files to data/corpus: shards in C4's own form, corpus-train.NNNNN-of-NNNNN.json.gz."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lexveil.data.reading_progress import Meter
from lexveil.errors import RequestError
from lexveil.formats.input_files import Source, shown
from lexveil.formats.readers import name, open_table, place, plain_value, text_value

KEYS = ("text", "timestamp", "url")  # C4's; others, such as an author's name, have no use here and stay outside
SHARD_BYTES = 32 * 2**20  # of JSON, before compression: small enough to spread work over, large enough to be few


def record(text: str, timestamp: str | None = None, url: str | None = None) -> bytes:
    """One line of a shard; always the three keys, in this order."""
    value = {"text": text, "timestamp": timestamp, "url": url}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class Shards:
    """Writes lines into shards of about ``SHARD_BYTES``, which get their names when their number is known.

    The same lines give the same bytes: no time and no file name go into the gzip header.
    """

    def __init__(self, folder: Path, shard_bytes: int = SHARD_BYTES) -> None:
        self.folder, self.shard_bytes = folder, shard_bytes
        self.count = self.room = 0
        self.file: gzip.GzipFile | None = None

    def write(self, line: bytes) -> None:
        """Add a line to the open shard, or begin the next."""
        if self.file is None:
            self.plain = self._path(self.count).open("xb")
            self.file = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=self.plain, mtime=0)
            self.room = self.shard_bytes
            self.count += 1
        self.file.write(line)
        self.room -= len(line)
        if self.room <= 0:
            self.close()

    def close(self) -> None:
        """Close the open shard, if there is one."""
        if self.file is not None:
            self.file.close()
            self.file = None
            self.plain.flush()
            os.fsync(self.plain.fileno())
            self.plain.close()

    def finish(self) -> int:
        """Close, name all shards and return how many there are."""
        self.close()
        for shard in range(self.count):
            self._path(shard).replace(self.folder / f"corpus-train.{shard:05d}-of-{self.count:05d}.json.gz")
        return self.count

    def _path(self, shard: int) -> Path:
        return self.folder / f"{shard:05d}.partial"


def write_corpus(sources: Iterable[Source], folder: Path, text_column: str = "text") -> dict[str, Any]:
    """Write every document of ``sources`` into shards in ``folder``, in order; memory does not grow with the corpus.

    Rows without text (null, empty or blank) are left out and counted. Returns files, documents, skipped_blank, shards,
    json_bytes and dropped_columns.

    Raises:
        RequestError: naming file and row, at the first fault; ``folder`` is then of no use.
    """
    folder.mkdir(parents=True)
    meter = Meter("corpus")
    shards = Shards(folder)
    documents = skipped = json_bytes = 0
    sources = list(sources)
    dropped: dict[str, None] = {}
    try:
        for source in sources:
            before = documents
            with open_table(source, text_column, KEYS) as table:
                dropped |= dict.fromkeys(table.columns)
                for row in table.rows:
                    where = place(source, row.line)
                    text = text_value(row.values.get(text_column), text_column, where)
                    if text is None or not text.strip():
                        skipped += 1
                        continue
                    line = record(
                        text,
                        plain_value(row.values.get("timestamp"), "timestamp", where, one_line=False),
                        plain_value(row.values.get("url"), "url", where, one_line=False),
                    )
                    shards.write(line)
                    documents += 1
                    json_bytes += len(line)
                    meter.show(documents, json_bytes)
            if documents == before:
                raise RequestError(
                    f"{shown(source.path)}: every row of {name(text_column)} is empty; choose another --text-column"
                )
        count = shards.finish()
    finally:
        shards.close()
    return {
        "files": len(sources),
        "documents": documents,
        "skipped_blank": skipped,
        "shards": count,
        "json_bytes": json_bytes,
        "dropped_columns": [column for column in dropped if column != text_column and column not in KEYS],
    }
