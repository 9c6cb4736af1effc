"""Random sampling of a remote corpus that is too large to download: documents are streamed, and
only those in the sample are stored.

``sql/corpus/sample.sql`` takes the documents with the smallest u in [0, 1), a hash of text and
seed. This module keeps a document if u < share, by the same hash. The kept documents of a shard
therefore depend on its texts, the seed and the share only: a second call, or another machine with
other shards, keeps the same documents. The sample of the kept documents equals the sample of all
documents that were read, as long as at least sample.max_documents different documents are kept,
because the documents of the smallest u are all below the share.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lexveil.base import paths
from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.base.runtime.tables import atomic_file, write_json
from lexveil.io.config import load_params
from lexveil.io.execution.checkpoints import size
from lexveil.io.execution.stage import Progress
from lexveil.io.formats.messages import name
from lexveil.io.formats.readers import open_table
from lexveil.lab.data.corpus import KEYS, CorpusCounts, CorpusReport, c4_shard, shard_name
from lexveil.lab.data.remote import Remote, RemoteFile, RemoteShard, find_remote

LOG = logger(__name__)

STAGED = Path(".lexveil/stream")  # finished shards of a running or interrupted call
ORIGIN = "origin.json"  # file beside the shards with their origin

PROBE = 8 * 2**20  # bytes of the first shard that are read to estimate the documents per byte
MARGIN = 1.1  # reserve of documents, because their number is an estimate


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """The part of a remote corpus that the user requests; ``make_plan`` chooses the values that are
    None.

    Attributes:
        max_documents: approximate number of documents to store.
        share: share of the documents to store, in (0, 1].
        shards: numbers of the first and the last shard to read, from 0, in the order of their
            names.
    """

    max_documents: int | None = None
    share: float | None = None
    shards: tuple[int, int] | None = None


@dataclass(slots=True, kw_only=True)
class ShardReport(CorpusCounts):
    """Counts of one remote shard, with the name, size and etag that the shard had when it was
    read.
    """

    name: str
    size: int
    etag: str | None


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Plan for sampling a remote corpus: the shards to read, and the share of their documents to
    store.

    Attributes:
        n_expected: estimated number of documents in the shards; None if the share was given, so
            that no estimate was needed.
    """

    remote: Remote
    shards: tuple[RemoteShard, ...]
    share: float
    seed: int
    text_column: str
    n_expected: int | None

    def folder(self, root: Path) -> Path:
        """Return the folder that holds finished shards until all shards are finished. A later
        request for more shards reuses them.
        """
        key = json.dumps([self.remote.address, self.share, self.seed, self.text_column])
        return root / STAGED / hashlib.sha256(key.encode()).hexdigest()[:16]

    def packed(self, shard: RemoteShard, root: Path) -> Path:
        """Return the path of the file with the stored documents of one shard; the file does not
        exist if no document of the shard was stored.
        """
        return self.folder(root) / f"{shard.number:05d}.json.gz"

    def state(self, shard: RemoteShard, root: Path) -> Path:
        """Return the path of the report file of one shard. The file is written last, so its
        existence means that the whole shard was read.
        """
        return self.folder(root) / f"{shard.number:05d}.json"


def uniform(text: str, seed: int) -> float:
    """Hash a text and a seed to a number u in [0, 1) with 52 bits, the same number by which
    ``sql/corpus/sample.sql`` orders documents for sampling.
    """
    doc_id = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    digest = hashlib.md5(f"{doc_id}:{seed}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:13], 16) / 2**52


def share_for(wanted: int, n_documents: float) -> float:
    """Return the sampling share with which at least ``wanted`` of about ``n_documents`` documents
    are stored, rounded up to four digits so that people can pass it on.

    The number of stored documents is binomial. The share has a reserve of four standard deviations
    of this number, and a reserve of ``MARGIN`` because ``n_documents`` is an estimate.
    """
    share = MARGIN * (wanted + 4 * math.sqrt(wanted)) / n_documents
    if share >= 1:
        return 1.0
    digits = 3 - math.floor(math.log10(share))
    # Round up, but ignore rounding errors of floats.
    return math.ceil(round(share * 10.0**digits, 6)) / 10.0**digits


def plan_samples(
    addresses: Mapping[str, str], wanted: SampleRequest, text_column: str, root: Path
) -> dict[str, SamplingPlan]:
    """Make a sampling plan for each remote address, print the plans, and delete finished shards of
    other addresses.
    """
    if not addresses:
        return {}
    params = load_params(root / paths.PARAMS)
    plans = {
        name: make_plan(
            find_remote(address), wanted, params.sample.max_documents, params.seed, text_column
        )
        for name, address in addresses.items()
    }
    forget(root, but=[plan.folder(root) for plan in plans.values()])
    announce([*plans.values()], root)
    return plans


def make_plan(
    remote: Remote, wanted: SampleRequest, max_documents: int, seed: int, text_column: str
) -> SamplingPlan:
    """Choose the shards of a remote corpus to read, and the share of their documents to store.

    Args:
        max_documents: number of documents to store if ``wanted`` has neither a number nor a share.
        seed: seed of params.yaml.

    Raises:
        RequestError: if the requested shards do not exist, or the first one cannot be read.
    """
    first, last = wanted.shards or (0, len(remote.shards) - 1)
    if not 0 <= first <= last < len(remote.shards):
        raise RequestError(
            f"{option('shards')}: {remote.address} has {len(remote.shards):,} shards, numbered "
            "from 0"
        )
    shards = remote.shards[first : last + 1]
    if wanted.share is not None:
        return SamplingPlan(remote, shards, wanted.share, seed, text_column, None)
    n_expected = documents_per_byte(remote, shards[0], text_column) * sum(
        shard.size for shard in shards
    )
    share = share_for(wanted.max_documents or max_documents, n_expected)
    return SamplingPlan(remote, shards, share, seed, text_column, round(n_expected))


def documents_per_byte(remote: Remote, shard: RemoteShard, text_column: str) -> float:
    """Return the number of documents per stored byte of a shard: exact for Parquet, estimated from
    the first ``PROBE`` bytes for other formats.

    Raises:
        RequestError: if these bytes have a fault; the message names the first one.
    """
    stream = RemoteFile(remote.fs, shard).buffered()
    position = 0
    n_rows = 0
    with open_table(shard.source(), text_column, KEYS, stream) as table:
        if table.n_rows is not None:
            return table.n_rows / shard.size
        for n_rows, _ in enumerate(table.rows, 1):  # noqa: B007
            position = stream.tell()
            if position >= PROBE:
                break
    return n_rows / position


def announce(plans: Sequence[SamplingPlan], root: Path) -> None:
    """Print on stderr the shards to read, the share of documents to store, and the disk space
    needed.

    Raises:
        RequestError: if the disk has too little space for the kept documents.
    """
    for plan in plans:
        total = sum(shard.size for shard in plan.shards)
        finished_size = sum(
            shard.size for shard in plan.shards if finished(plan, shard, root) is not None
        )
        number = (
            ""
            if plan.n_expected is None
            else f", about {round(plan.share * plan.n_expected):,} of them"
        )
        line = (
            f"corpus: {plan.remote.address}: {len(plan.shards):,} of "
            f"{len(plan.remote.shards):,} shards"
        )
        line += f", {size(total - finished_size)} to read ({size(finished_size)} were read before)"
        LOG.info(f"{line}; a share of {plan.share:g} of the documents will be stored{number}")
    sampled_size = sum(plan.share * shard.size for plan in plans for shard in plan.shards)
    free = shutil.disk_usage(root).free
    # The texts are stored twice, in data/ and in DVC's cache, if the disk cannot link files.
    disk = (
        f"corpus: the stored documents take about {size(sampled_size)}, and as much again in "
        f"DVC's cache; {size(free)} are free"
    )
    LOG.info(disk)
    if free < sampled_size:
        raise RequestError(
            f"{disk}. Free some space, or store fewer documents by {option('share')} or "
            f"{option('shards')}"
        )


def stream_corpus(plan: SamplingPlan, folder: Path, root: Path) -> CorpusReport:
    """Download the shards of a sampling plan and write the sampled documents into ``folder``, one
    file for each shard, with a file that names the origin of the shards.

    A shard from which no document is stored has no file. Shards that an interrupted call finished
    are not read again, unless size or etag have changed. The finished shards stay in ``root`` until
    ``forget`` removes them.

    Raises:
        RequestError: with shard and row of the first fault; or if no document is stored.
        LexveilError: if a shard cannot be read.
    """
    reports = read_shards(plan, root)
    used_shards = [shard for shard in plan.shards if reports[shard.number].documents]
    place: dict[str, Any] = {
        "share": plan.share,
        "address": plan.remote.address,
        "commit": plan.remote.commit,
    }
    report = CorpusReport(files=len(plan.shards), shards=len(used_shards), **place)
    for of_shard in reports.values():
        report.add(of_shard)
    if not used_shards:
        is_empty = report.read == report.skipped_blank
        why = (
            f"every row of {name(plan.text_column)} is empty"
            if is_empty
            else f"take a larger {option('share')}"
        )
        raise RequestError(
            f"{plan.remote.address}: none of its {report.read:,} documents was stored; {why}"
        )
    folder.mkdir(parents=True)
    for shard in used_shards:
        link_or_copy(
            plan.packed(shard, root), folder / shard_name(shard.number, len(plan.remote.shards))
        )
    shards = [asdict(of_shard) for of_shard in reports.values()]
    write_json(
        {**place, "seed": plan.seed, "shards": shards, "text_column": plan.text_column},
        folder / ORIGIN,
    )
    return report


def read_shards(plan: SamplingPlan, root: Path) -> dict[int, ShardReport]:
    """Read the shards that no earlier call has finished, and return the reports of all shards by
    shard number.
    """
    plan.folder(root).mkdir(parents=True, exist_ok=True)
    reports = {shard.number: finished(plan, shard, root) for shard in plan.shards}
    pending = [shard for shard in plan.shards if reports[shard.number] is None]
    progress = Progress("corpus", sum(shard.size for shard in pending), "bytes")
    for number, shard in enumerate(pending, 1):
        progress.note = f"shard {number:,} of {len(pending):,}"
        report = keep_from(plan, shard, plan.packed(shard, root), progress)
        write_json(asdict(report), plan.state(shard, root))
        reports[shard.number] = report
    if pending:
        progress.finish()
    return {number: report for number, report in reports.items() if report is not None}


def keep_from(plan: SamplingPlan, shard: RemoteShard, out: Path, progress: Progress) -> ShardReport:
    """Read one remote shard and write its sampled documents to ``out``, if there are any.

    Raises:
        RequestError: with shard and row of the first fault; ``out`` then does not exist.
    """
    report = ShardReport(name=shard.name, size=shard.size, etag=shard.etag)
    begin = progress.done
    file = RemoteFile(plan.remote.fs, shard)
    with (
        atomic_file(out) as partial,
        open_table(shard.source(), plan.text_column, KEYS, file.buffered()) as table,
        c4_shard(partial) as packed,
    ):
        for line in report.lines(
            table, plan.text_column, lambda text: uniform(text, plan.seed) < plan.share
        ):
            if line:
                packed.write(line)
            if report.read % 256 == 0:
                progress.advance(begin + file.loc - progress.done)
    if not report.documents:
        out.unlink()
    progress.advance(begin + shard.size - progress.done)
    return report


def finished(plan: SamplingPlan, shard: RemoteShard, root: Path) -> ShardReport | None:
    """Return the report of a shard that an earlier call finished; return None if no call finished
    the shard, or if the shard has changed since.
    """
    try:
        report = ShardReport(**json.loads(plan.state(shard, root).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    # Compare names without their paths, which contain the commit: most commits keep the shards.
    known = Path(report.name).name, report.size, report.etag
    is_same = known == (Path(shard.name).name, shard.size, shard.etag)
    return (
        report if is_same and (not report.documents or plan.packed(shard, root).exists()) else None
    )


def forget(root: Path, but: Collection[Path] = ()) -> None:
    """Delete all finished shards in ``root`` except those in the folders ``but``."""
    for folder in set((root / STAGED).glob("*")) - set(but):
        shutil.rmtree(folder, ignore_errors=True)


def link_or_copy(source: Path | str, target: Path | str) -> None:
    """Give a file a second name by a hard link, or copy the file if the file system has no hard
    links.
    """
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
