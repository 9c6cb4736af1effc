"""A corpus that is too large to fetch: its shards are read through, and only documents that may be sampled are kept.

``sql/corpus/sample.sql`` takes the documents of the smallest hash of text and seed, u in [0, 1). Here a document is
kept if u < share, by the same hash. So what is kept of a shard depends on nothing but its texts, the seed and the
share: a second call, or another machine with other shards, keeps the same documents. And the sample of what is kept
is the sample of all that was read, document for document, as long as no fewer different documents are kept than
sample.max_documents wants: those of the smallest u are all below the share.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

from lexveil.data.corpus import CorpusReport
from lexveil.data.remote import Refused, Remote, RemoteFile, RemoteShard
from lexveil.errors import RequestError, option
from lexveil.formats.base import Table
from lexveil.formats.c4 import KEYS, C4Shard, c4_row
from lexveil.formats.messages import name
from lexveil.formats.readers import open_table
from lexveil.formats.values import text_value
from lexveil.runtime.checkpoints import size
from lexveil.runtime.stage import Progress
from lexveil.runtime.tables import atomic_file, write_json

STAGED = Path(".lexveil/stream")  # finished shards of a call that is under way or was interrupted
ORIGIN = "origin.json"  # beside the shards: where they came from

PROBE = 8 * 2**20  # bytes of the first shard that documents per byte are estimated from
MARGIN = 1.1  # more documents than are wanted, because their number is an estimate


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """How much of an address is taken: all that is None is chosen here.

    ``max_documents``: about as many are kept, from the shards that are read; ``share``: of documents, in (0, 1];
    ``shards``: first and last of those that are read, by number in the order of their names, from 0.
    """

    max_documents: int | None = None
    share: float | None = None
    shards: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        return self != SampleRequest()


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """What will be read and kept; ``n_expected`` documents, if they had to be estimated for the share."""

    remote: Remote
    shards: tuple[RemoteShard, ...]
    share: float
    seed: int
    text_column: str
    n_expected: int | None

    def folder(self, root: Path) -> Path:
        """Where finished shards lie until all are there. Shards that are asked for later find the earlier ones."""
        key = json.dumps([self.remote.address, self.share, self.seed, self.text_column])
        return root / STAGED / hashlib.sha256(key.encode()).hexdigest()[:16]


@dataclass(slots=True)
class ShardReport:
    """What was read and kept of a shard, beside what it was known by then."""

    name: str
    size: int
    etag: str | None
    read: int = 0
    documents: int = 0
    skipped_blank: int = 0
    skipped_unusable: int = 0
    json_bytes: int = 0
    dropped_columns: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReport(CorpusReport):
    """What was kept of a remote corpus: the share of documents, and where they came from.

    Attributes:
        read: documents, of which ``documents`` are kept.
        skipped_unusable: texts that no later step can carry.
    """

    read: int
    skipped_unusable: int
    share: float
    address: str
    commit: str | None


def uniform(text: str, seed: int) -> float:
    """Return u of ``sql/corpus/sample.sql``: where a document stands in the order of choice, 52 bits in [0, 1)."""
    doc_id = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    digest = hashlib.md5(f"{doc_id}:{seed}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:13], 16) / 2**52


def share_for(wanted: int, n_documents: float) -> float:
    """A share that keeps at least ``wanted`` of about ``n_documents``, four digits long so that people can pass it on.

    The number kept is binomial; four of its standard deviations, and ``MARGIN`` for the estimate, are added.
    """
    share = MARGIN * (wanted + 4 * math.sqrt(wanted)) / n_documents
    if share >= 1:
        return 1.0
    digits = 3 - math.floor(math.log10(share))
    # Rounded up, but not for the sake of a last bit.
    return math.ceil(round(share * 10.0**digits, 6)) / 10.0**digits


def make_plan(remote: Remote, wanted: SampleRequest, max_documents: int, seed: int, text_column: str) -> SamplingPlan:
    """Decide which shards are read and which share of their documents is kept.

    Args:
        remote: the corpus.
        wanted: what was asked for.
        max_documents: how many are kept if neither a number nor a share was asked for.
        seed: of params.yaml.
        text_column: the column that holds the text.

    Raises:
        RequestError: if there are no such shards, or the first cannot be read.
    """
    first, last = wanted.shards or (0, len(remote.shards) - 1)
    if not 0 <= first <= last < len(remote.shards):
        raise RequestError(
            f"{option('shards')} {first}-{last}: {remote.address} has {len(remote.shards):,} shards, "
            f"0 to {len(remote.shards) - 1}"
        )
    shards = remote.shards[first : last + 1]
    if wanted.share is not None:
        return SamplingPlan(remote, shards, wanted.share, seed, text_column, None)
    total = documents_per_byte(remote, shards[0]) * sum(shard.size for shard in shards)
    share = share_for(wanted.max_documents or max_documents, total)
    return SamplingPlan(remote, shards, share, seed, text_column, round(total))


def documents_per_byte(remote: Remote, shard: RemoteShard) -> float:
    """Documents for each byte of a shard as it lies there, estimated from its first ``PROBE`` bytes.

    Raises:
        RequestError: if it is damaged there.
    """
    with remote.open(shard).buffered() as file:
        return shard.source().format.rows_per_byte(file, shard.source(), shard.size, PROBE)


def announce(plans: Sequence[SamplingPlan], root: Path) -> None:
    """Say on stderr what will be read and what it takes.

    Raises:
        RequestError: if the disk cannot hold what will be kept.
    """
    kept = 0.0
    for plan in plans:
        total = sum(shard.size for shard in plan.shards)
        done = sum(shard.size for shard in plan.shards if finished(plan, shard, root) is not None)
        kept += plan.share * total
        line = f"corpus: {plan.remote.address}: {len(plan.shards):,} of {len(plan.remote.shards):,} shards"
        line += f", {size(total - done)} to read" + (f" ({size(done)} were read before)" if done else "")
        line += f"; a share of {plan.share:g} of the documents is kept"
        if plan.n_expected is not None:
            line += f", about {round(plan.share * plan.n_expected):,} of {plan.n_expected:,}"
        print(f"{line}, about {size(plan.share * total)}", file=sys.stderr, flush=True)
    free = shutil.disk_usage(root).free
    # Once in data/, once in DVC's cache, where the disk cannot link the two.
    disk = f"corpus: what is kept takes about {size(kept)}, and as much again in DVC's cache; {size(free)} are free"
    if free < kept:
        raise RequestError(
            f"{disk}. Free some, or take less by {option('max_documents')}, {option('share')} or {option('shards')}"
        )
    print(f"caution: {disk}" if free < 2 * kept else disk, file=sys.stderr, flush=True)


def stream_corpus(plan: SamplingPlan, folder: Path, root: Path) -> SampleReport:
    """Write the documents that are kept into ``folder``, one shard for each that was read, and where they came from.

    A shard in which nothing is kept has no file. What an interrupted call finished is not read again, unless size or
    etag have changed. The finished shards stay in ``root`` until ``forget``.

    Raises:
        RequestError: naming shard and row of the first fault; if nothing is kept.
        LexveilError: if a shard cannot be read.
    """
    staged = plan.folder(root)
    staged.mkdir(parents=True, exist_ok=True)
    pending = [shard for shard in plan.shards if finished(plan, shard, root) is None]
    progress = Progress("corpus", sum(shard.size for shard in pending), "bytes", stream=sys.stderr)
    for number, shard in enumerate(pending, 1):
        progress.note = f"shard {number:,} of {len(pending):,}"
        write_json(asdict(keep_from(plan, shard, _packed(staged, shard), progress)), _state(staged, shard))
    if pending:
        progress.finish()
    reports = [cast(ShardReport, finished(plan, shard, root)) for shard in plan.shards]
    n_read, n_blank = sum(report.read for report in reports), sum(report.skipped_blank for report in reports)
    if not any(report.documents for report in reports):
        why = (
            f"take a larger {option('share')}"
            if n_read > n_blank
            else f"every row of {name(plan.text_column)} is empty; choose another {option('text_column')}"
        )
        raise RequestError(f"{plan.remote.address}: of {n_read:,} documents none is kept; {why}")

    folder.mkdir(parents=True)
    shards = 0
    for shard, report in zip(plan.shards, reports, strict=True):
        if report.documents:
            shards += 1
            numbered = f"corpus-train.{shard.number:05d}-of-{len(plan.remote.shards):05d}.json.gz"
            _link(_packed(staged, shard), folder / numbered)
    origin = {
        "address": plan.remote.address,
        "commit": plan.remote.commit,
        "seed": plan.seed,
        "share": plan.share,
        "shards": [asdict(report) for report in reports],
        "text_column": plan.text_column,
    }
    write_json(origin, folder / ORIGIN)
    return SampleReport(
        files=len(plan.shards),
        shards=shards,
        read=n_read,
        documents=sum(report.documents for report in reports),
        skipped_blank=n_blank,
        skipped_unusable=sum(report.skipped_unusable for report in reports),
        json_bytes=sum(report.json_bytes for report in reports),
        dropped_columns=list(dict.fromkeys(column for report in reports for column in report.dropped_columns)),
        share=plan.share,
        address=plan.remote.address,
        commit=plan.remote.commit,
    )


def keep_from(plan: SamplingPlan, shard: RemoteShard, out: Path, progress: Progress) -> ShardReport:
    """Read one shard and write what is kept of it to ``out``.

    Raises:
        RequestError: naming shard and row of the first fault. ``out`` is then not there.
    """
    source = shard.source()
    report = ShardReport(shard.name, shard.size, shard.etag)
    begin = progress.done
    file = plan.remote.open(shard)
    with (
        atomic_file(out) as partial,
        _faults_of(shard, file),
        open_table(source, plan.text_column, KEYS, file.buffered()) as table,
        C4Shard(partial, "wb") as packed,
    ):
        others = (column for column in table.columns if column != plan.text_column and column not in KEYS)
        report.dropped_columns = list(others)
        for line in lines_kept(plan, table, report):
            if line:
                packed.write(line)
            if report.read % 256 == 0:
                progress.advance(begin + min(file.position, shard.size) - progress.done)
    if not report.documents:
        out.unlink()
    progress.advance(begin + shard.size - progress.done)
    return report


def lines_kept(plan: SamplingPlan, table: Table, report: ShardReport) -> Iterator[bytes]:
    """The line of each row, empty if it is not kept; counts them in ``report``."""
    for row in table.rows:
        report.read += 1
        text = row.values.get(plan.text_column)
        if not isinstance(text, str):
            text = text_value(text, plan.text_column, table.source.location(row.line))
        line = b""
        if text is None or not text.strip():
            report.skipped_blank += 1
        elif not _is_usable(text):
            report.skipped_unusable += 1
        elif uniform(text, plan.seed) < plan.share:
            line = c4_row(text, row, table.source)
            report.documents += 1
            report.json_bytes += len(line)
        yield line


def _is_usable(text: str) -> bool:
    """Whether every later step can carry it. Where not, it is left out and counted, and not refused as a user's own
    file is: nobody can mend one text of somebody else's corpus, and one in millions must not end a day of reading.
    """
    if "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _faults_of(shard: RemoteShard, file: RemoteFile) -> Iterator[None]:
    """Say of a fault in the content that it is not the connection's, whose faults are met where they arise."""
    try:
        yield
    except Refused:
        raise
    except RequestError as error:
        raise RequestError(
            f"{error.message} (at {file.position:,} of its {shard.size:,} bytes, and so it is where it lies; "
            f"{option('shards')} A-B "
            "leaves a shard out)"
        ) from None


def finished(plan: SamplingPlan, shard: RemoteShard, root: Path) -> ShardReport | None:
    """The report of a shard that an earlier call finished; None if it did not, or the shard is another now."""
    folder = plan.folder(root)
    try:
        report = ShardReport(**json.loads(_state(folder, shard).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    # The path before the name has the commit in it, and most commits leave the shards as they were.
    known = Path(report.name).name, report.size, report.etag
    same = known == (Path(shard.name).name, shard.size, shard.etag)
    is_there = not report.documents or _packed(folder, shard).exists()
    return report if same and is_there else None


def forget(root: Path, but: Collection[Path] = ()) -> None:
    """Remove finished shards that no call goes on with."""
    folders = set((root / STAGED).glob("*")) - set(but)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _packed(folder: Path, shard: RemoteShard) -> Path:
    return folder / f"{shard.number:05d}.json.gz"


def _state(folder: Path, shard: RemoteShard) -> Path:
    # Written last, so that it stands for the whole shard.
    return folder / f"{shard.number:05d}.json"


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
