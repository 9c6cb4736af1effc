"""Any files to data/corpus: shards in C4's own form, corpus-train.NNNNN-of-NNNNN.json.gz."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from lexveil.errors import RequestError
from lexveil.formats.base import Source, Table
from lexveil.formats.c4 import KEYS, c4_row, c4_shard
from lexveil.formats.messages import name, shown
from lexveil.formats.readers import open_table
from lexveil.formats.values import text_value
from lexveil.runtime.stage import Progress

SHARD_BYTES = 32 * 2**20  # of JSON, before compression: small enough to spread work over, large enough to be few


def shard_name(number: int, n_shards: int) -> str:
    """The file name of a shard, as C4 has it."""
    return f"corpus-train.{number:05d}-of-{n_shards:05d}.json.gz"


class Shards:
    """Writes lines into shards of about ``SHARD_BYTES``, which get their names when their number is known.

    The same lines give the same bytes.
    """

    def __init__(self, folder: Path, shard_bytes: int = SHARD_BYTES) -> None:
        self.folder, self.shard_bytes = folder, shard_bytes
        self.count = self.room = 0
        self.opened = ExitStack()

    def write(self, line: bytes) -> None:
        """Add a line to the open shard, or begin the next."""
        if self.room <= 0:
            self.opened.close()
            self.shard = self.opened.enter_context(c4_shard(self._path(self.count)))
            self.room = self.shard_bytes
            self.count += 1
        self.shard.write(line)
        self.room -= len(line)

    def finish(self) -> int:
        """Close, name all shards and return how many there are."""
        self.opened.close()
        for shard in range(self.count):
            self._path(shard).replace(self.folder / shard_name(shard, self.count))
        return self.count

    def _path(self, shard: int) -> Path:
        return self.folder / f"{shard:05d}.partial"


@dataclass(slots=True, kw_only=True)
class CorpusCounts:
    """What was read and kept of tables.

    Attributes:
        read: documents, of which ``documents`` are kept.
        skipped_blank: rows without text.
        skipped_unusable: texts of a remote corpus that no later step can carry.
        json_bytes: before compression.
        dropped_columns: that the corpus has no use for.
    """

    read: int = 0
    documents: int = 0
    skipped_blank: int = 0
    skipped_unusable: int = 0
    json_bytes: int = 0
    dropped_columns: list[str] = field(default_factory=list)

    def add(self, other: CorpusCounts) -> None:
        """Add the counts of further tables."""
        for counter in ("read", "documents", "skipped_blank", "skipped_unusable", "json_bytes"):
            setattr(self, counter, getattr(self, counter) + getattr(other, counter))
        self.dropped_columns = list(dict.fromkeys([*self.dropped_columns, *other.dropped_columns]))

    def lines(self, table: Table, text_column: str, is_chosen: Callable[[str], bool] | None = None) -> Iterator[bytes]:
        """The line of each row, empty if it is not kept, and count them.

        Args:
            is_chosen: of a remote corpus, which texts are kept. A text that nothing can carry is then left out and
                counted, and not refused as a user's own file is: nobody can mend one text of somebody else's corpus,
                and one in millions must not end a day of reading.
        """
        self.add(CorpusCounts(dropped_columns=[one for one in table.columns if one not in (text_column, *KEYS)]))
        for row in table.rows:
            self.read += 1
            value, line = row.values.get(text_column), b""
            try:
                text = text_value(value, text_column, table.source.location(row.line))
                if text is None or not text.strip():
                    self.skipped_blank += 1
                elif is_chosen is None or is_chosen(text):
                    line = c4_row(text, row, table.source)
                    self.documents += 1
                    self.json_bytes += len(line)
            except RequestError:
                if is_chosen is None or not isinstance(value, str):
                    raise
                self.skipped_unusable += 1
            yield line


@dataclass(slots=True, kw_only=True)
class CorpusReport(CorpusCounts):
    """What was written of a corpus: of how many files, into how many shards; and where it is from, if it is remote.

    Attributes:
        share: of the documents, that is kept.
    """

    files: int
    shards: int
    share: float = 1.0
    address: str | None = None
    commit: str | None = None


def write_corpus(sources: Iterable[Source], folder: Path, text_column: str = "text") -> CorpusReport:
    """Write every document of ``sources`` into shards in ``folder``, in order; memory does not grow with the corpus.

    Rows without text (null, empty or blank) are left out and counted.

    Raises:
        RequestError: naming file and row, at the first fault; ``folder`` is then of no use.
    """
    folder.mkdir(parents=True)
    progress = Progress("corpus", 0, "documents", stream=sys.stderr)
    shards, report = Shards(folder), CorpusReport(files=0, shards=0)
    with shards.opened:
        for source in sources:
            report.files += 1
            before = report.documents
            with open_table(source, text_column, KEYS) as table:
                for line in filter(None, report.lines(table, text_column)):
                    shards.write(line)
                    progress.advance(1)
            if report.documents == before:
                raise RequestError(f"{shown(source.path)}: every row of {name(text_column)} is empty")
        report.shards = shards.finish()
    return report


def write_no_corpus(folder: Path) -> None:
    """A corpus of no document, one empty shard: where a model takes its place (params.yaml: embeddings.base)."""
    folder.mkdir(parents=True)
    with c4_shard(folder / shard_name(0, 1)):
        pass
