"""Any files to data/corpus: shards in C4's own form, corpus-train.NNNNN-of-NNNNN.json.gz."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from lexveil.errors import RequestError
from lexveil.formats.base import InputRow, InputTable, Source
from lexveil.formats.compression import compressed
from lexveil.formats.messages import name, shown
from lexveil.formats.readers import open_table, tell_dialect
from lexveil.formats.values import plain_value, text_value
from lexveil.runtime.stage import Progress

# of JSON, before compression: small enough to spread work over, large enough to be few
SHARD_BYTES = 32 * 2**20
# others, such as an author's name, have no use here and are dropped
KEYS = ("text", "timestamp", "url")


def shard_name(number: int, n_shards: int) -> str:
    """The file name of a shard, as C4 has it."""
    return f"corpus-train.{number:05d}-of-{n_shards:05d}.json.gz"


def write_shards(lines: Iterator[bytes], folder: Path, shard_bytes: int = SHARD_BYTES) -> int:
    """Write lines into shards of about so many bytes and return how many these are; the same lines,
    the same bytes.
    """
    partials: list[Path] = []
    for first in lines:
        partials.append(folder / f"{len(partials):05d}.partial")
        with c4_shard(partials[-1]) as shard:
            room = shard_bytes
            for line in itertools.chain([first], lines):
                shard.write(line)
                room -= len(line)
                if room <= 0:
                    break
    for number, partial in enumerate(partials):  # named when their number is known
        partial.replace(folder / shard_name(number, len(partials)))
    return len(partials)


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

    def lines(
        self, table: InputTable, text_column: str, is_chosen: Callable[[str], bool] | None = None
    ) -> Iterator[bytes]:
        """The line of each row, empty if it is not kept, and count them.

        Args:
            is_chosen: of a remote corpus, which texts are kept. A text that nothing can carry is
                then left out and counted, and not refused as a user's own file is: nobody can mend
                one text of somebody else's corpus, and one in millions must not end a day of
                reading.
        """
        self.add(
            CorpusCounts(
                dropped_columns=[one for one in table.columns if one not in (text_column, *KEYS)]
            )
        )
        for row in table.rows:
            self.read += 1
            value, line = row.values.get(text_column), b""
            try:
                text = text_value(value, text_column, table.source.location(row.line))
            except RequestError:
                if is_chosen is None or not isinstance(value, str):
                    raise
                self.skipped_unusable += 1
            else:
                if text is None or not text.strip():
                    self.skipped_blank += 1
                elif is_chosen is None or is_chosen(text):
                    line = c4_row(text, row, table.source)
                    self.documents += 1
                    self.json_bytes += len(line)
            yield line


@dataclass(slots=True, kw_only=True)
class CorpusReport(CorpusCounts):
    """What was written of a corpus: of how many files, into how many shards; and where it is from,
    if it is remote.

    Attributes:
        share: of the documents, that is kept.
    """

    files: int
    shards: int
    share: float = 1.0
    address: str | None = None
    commit: str | None = None


def write_corpus(
    sources: Iterable[Source], folder: Path, text_column: str = "text"
) -> CorpusReport:
    """Write every document of ``sources`` into shards in ``folder``, in order; memory does not grow
    with the corpus.

    Rows without text (null, empty or blank) are left out and counted.

    Raises:
        RequestError: naming file and row, at the first fault; ``folder`` is then of no use.
    """
    folder.mkdir(parents=True)
    progress = Progress("corpus", 0, "documents", stream=sys.stderr)
    report = CorpusReport(files=0, shards=0)

    def lines() -> Iterator[bytes]:
        for source in sources:
            report.files += 1
            before = report.documents
            with open_table(source, text_column, KEYS, tell=tell_dialect) as table:
                for line in filter(None, report.lines(table, text_column)):
                    yield line
                    progress.advance(1)
            if report.documents == before:
                raise RequestError(
                    f"{shown(source.path)}: every row of {name(text_column)} is empty"
                )

    report.shards = write_shards(lines(), folder)
    return report


def write_no_corpus(folder: Path) -> None:
    """A corpus of no document, one empty shard: where a model takes its place (params.yaml:
    embeddings.base).
    """
    folder.mkdir(parents=True)
    with c4_shard(folder / shard_name(0, 1)):
        pass


def c4_line(text: str, timestamp: str | None = None, url: str | None = None) -> bytes:
    """One line of a shard; always the three keys, in this order."""
    value = {"text": text, "timestamp": timestamp, "url": url}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def c4_row(text: str, row: InputRow, source: Source) -> bytes:
    """The line of a row of any table.

    Raises:
        RequestError: naming the row, if its timestamp or URL is no string or number.
    """
    where = source.location(row.line)
    timestamp, url = (
        plain_value(row.values.get(key), key, where, one_line=False) for key in KEYS[1:]
    )
    return c4_line(text, timestamp, url)


@contextmanager
def c4_shard(path: Path) -> Iterator[IO[bytes]]:
    """A shard that lines are written to; the same lines give the same bytes. It is on the disk at
    the end.
    """
    with path.open("wb") as file:
        with ExitStack() as files:
            yield compressed(file, "gz", files)
        file.flush()
        os.fsync(file.fileno())
