"""Any files to data/corpus: shards in C4's own form, corpus-train.NNNNN-of-NNNNN.json.gz."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lexveil.errors import RequestError, option
from lexveil.formats.base import Source
from lexveil.formats.c4 import KEYS, C4Shard, c4_row
from lexveil.formats.messages import name, shown
from lexveil.formats.readers import open_table
from lexveil.formats.values import text_value
from lexveil.runtime.stage import Progress

SHARD_BYTES = 32 * 2**20  # of JSON, before compression: small enough to spread work over, large enough to be few


class Shards:
    """Writes lines into shards of about ``SHARD_BYTES``, which get their names when their number is known.

    The same lines give the same bytes.
    """

    def __init__(self, folder: Path, shard_bytes: int = SHARD_BYTES) -> None:
        self.folder, self.shard_bytes = folder, shard_bytes
        self.count = self.room = 0
        self.shard: C4Shard | None = None

    def write(self, line: bytes) -> None:
        """Add a line to the open shard, or begin the next."""
        if self.shard is None:
            self.shard = C4Shard(self._path(self.count))
            self.room = self.shard_bytes
            self.count += 1
        self.shard.write(line)
        self.room -= len(line)
        if self.room <= 0:
            self.close()

    def close(self) -> None:
        """Close the open shard, if there is one."""
        if self.shard is not None:
            self.shard.close()
            self.shard = None

    def finish(self) -> int:
        """Close, name all shards and return how many there are."""
        self.close()
        for shard in range(self.count):
            self._path(shard).replace(self.folder / f"corpus-train.{shard:05d}-of-{self.count:05d}.json.gz")
        return self.count

    def _path(self, shard: int) -> Path:
        return self.folder / f"{shard:05d}.partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusReport:
    """What was written of a corpus.

    Attributes:
        files: that were read.
        shards: that were written.
        json_bytes: before compression.
        skipped_blank: rows without text.
        dropped_columns: that the corpus has no use for.
    """

    files: int
    shards: int
    documents: int
    skipped_blank: int
    json_bytes: int
    dropped_columns: list[str]


def write_corpus(sources: Iterable[Source], folder: Path, text_column: str = "text") -> CorpusReport:
    """Write every document of ``sources`` into shards in ``folder``, in order; memory does not grow with the corpus.

    Rows without text (null, empty or blank) are left out and counted.

    Raises:
        RequestError: naming file and row, at the first fault; ``folder`` is then of no use.
    """
    folder.mkdir(parents=True)
    progress = Progress("corpus", 0, "documents", stream=sys.stderr)
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
                    text = text_value(row.values.get(text_column), text_column, source.location(row.line))
                    if text is None or not text.strip():
                        skipped += 1
                        continue
                    line = c4_row(text, row, source)
                    shards.write(line)
                    documents += 1
                    json_bytes += len(line)
                    progress.advance(1)
            if documents == before:
                raise RequestError(
                    f"{shown(source.path)}: every row of {name(text_column)} is empty; choose another "
                    f"{option('text_column')}"
                )
        count = shards.finish()
    finally:
        shards.close()
    return CorpusReport(
        files=len(sources),
        shards=count,
        documents=documents,
        skipped_blank=skipped,
        json_bytes=json_bytes,
        dropped_columns=[column for column in dropped if column != text_column and column not in KEYS],
    )


def write_no_corpus(folder: Path) -> None:
    """A corpus of no document, one empty shard: where a model takes its place (params.yaml: embeddings.base)."""
    folder.mkdir(parents=True)
    C4Shard(folder / "corpus-train.00000-of-00001.json.gz").close()
