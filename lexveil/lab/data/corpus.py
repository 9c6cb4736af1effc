"""Conversion of user files into the training corpus of a project (folder data/corpus). The corpus
is a set of files corpus-train.NNNNN-of-NNNNN.json.gz, in the format of the C4 data set.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from lexveil.base.errors import RequestError
from lexveil.io.execution.stage import Progress
from lexveil.io.formats.base import InputRow, InputTable, Source
from lexveil.io.formats.compression import compressed
from lexveil.io.formats.messages import name, shown
from lexveil.io.formats.readers import open_table, tell_dialect
from lexveil.io.formats.values import plain_value, text_value

# bytes of JSON of a shard before compression: small enough to share the work, large enough for few
# shards
SHARD_BYTES = 32 * 2**20
# only these columns are used; others, such as an author's name, are dropped
KEYS = ("text", "timestamp", "url")


def shard_name(number: int, n_shards: int) -> str:
    """Return the file name of one corpus shard, as in the C4 data set."""
    return f"corpus-train.{number:05d}-of-{n_shards:05d}.json.gz"


def write_shards(lines: Iterator[bytes], folder: Path, shard_bytes: int = SHARD_BYTES) -> int:
    """Write lines into gzip files (shards) of about ``shard_bytes`` each, and return the number of
    files. The same lines give the same bytes.
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
    for number, partial in enumerate(
        partials
    ):  # file names contain the number of shards, which is known only now
        partial.replace(folder / shard_name(number, len(partials)))
    return len(partials)


@dataclass(slots=True, kw_only=True)
class CorpusCounts:
    """Counts of documents that were read from input tables, stored, or skipped.

    Attributes:
        read: documents that were read; ``documents`` of them were stored.
        skipped_blank: rows without text.
        skipped_unusable: texts of a remote corpus that no later step can represent.
        json_bytes: bytes of the JSON before compression.
        dropped_columns: columns that the corpus does not use.
    """

    read: int = 0
    documents: int = 0
    skipped_blank: int = 0
    skipped_unusable: int = 0
    json_bytes: int = 0
    dropped_columns: list[str] = field(default_factory=list)

    def add(self, other: CorpusCounts) -> None:
        """Add the counts of another part of the corpus to these counts."""
        for counter in ("read", "documents", "skipped_blank", "skipped_unusable", "json_bytes"):
            setattr(self, counter, getattr(self, counter) + getattr(other, counter))
        self.dropped_columns = list(dict.fromkeys([*self.dropped_columns, *other.dropped_columns]))

    def lines(
        self, table: InputTable, text_column: str, is_chosen: Callable[[str], bool] | None = None
    ) -> Iterator[bytes]:
        """Yield one JSON line per row of an input table, and count the rows; the line is empty if
        the row is dropped.

        Args:
            table: the open table.
            text_column: name of the column with the text.
            is_chosen: returns whether a text of a remote corpus is stored; None stores every text.
                With this argument, a text that no later step can represent is skipped and counted.
                In a file of the user such a text is an error. Nobody can repair a text of a public
                corpus, and one text in millions must not end a day of reading.
        """
        self.add(
            CorpusCounts(
                dropped_columns=[one for one in table.columns if one not in (text_column, *KEYS)]
            )
        )
        for row in table.rows:
            self.read += 1
            value = row.values.get(text_column)
            line = b""
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
    """Report about a corpus that was written: counts of documents, files read and shards written,
    and the origin of a remote corpus.

    Attributes:
        share: share of the documents that was stored, in (0, 1].
        address, commit: origin of a remote corpus; None for local files.
    """

    files: int
    shards: int
    share: float = 1.0
    address: str | None = None
    commit: str | None = None


def write_corpus(
    sources: Iterable[Source], folder: Path, text_column: str = "text"
) -> CorpusReport:
    """Convert every document of ``sources`` into corpus shards in ``folder``, in order; memory use
    does not grow with the corpus.

    Rows without text (null, empty or blank) are left out and counted.

    Raises:
        RequestError: at the first fault, with file and row; ``folder`` is then unusable.
    """
    folder.mkdir(parents=True)
    progress = Progress("corpus", 0, "documents")
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
    """Write an empty corpus, which is one shard without documents. Training then starts from a base
    model (params.yaml: embeddings.base) alone.
    """
    folder.mkdir(parents=True)
    with c4_shard(folder / shard_name(0, 1)):
        pass


def c4_line(text: str, timestamp: str | None = None, url: str | None = None) -> bytes:
    """Return one JSON line of a document in the C4 format, always with the same three keys in the
    same order.
    """
    value = {"text": text, "timestamp": timestamp, "url": url}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def c4_row(text: str, row: InputRow, source: Source) -> bytes:
    """Convert one row of an input table to a JSON line in the C4 format.

    Raises:
        RequestError: if its timestamp or URL is neither a string nor a number.
    """
    where = source.location(row.line)
    timestamp, url = (
        plain_value(row.values.get(key), key, where, one_line=False) for key in KEYS[1:]
    )
    return c4_line(text, timestamp, url)


@contextmanager
def c4_shard(path: Path) -> Iterator[IO[bytes]]:
    """Open a new compressed shard for writing lines, and flush it to the disk at the end. The same
    lines give the same bytes.
    """
    with path.open("wb") as file:
        with ExitStack() as files:
            yield compressed(file, "gz", files)
        file.flush()
        os.fsync(file.fileno())
