"""Private release of Ray Data data sets: a Dataset is rewritten, published as a table, and read as
a Dataset.

    prepared = lexveil.ray.privatize(dataset, column="body", subjects="customer")
    released = prepared.write_parquet("/shared/tickets")
    released.dataset.count()

A Dataset of rewritten texts exists only after the table is published. Otherwise Ray would evaluate
it again at every use, each time with other noise, and only the first noise would be charged
(docs/proofs/distributed.md).
"""

from __future__ import annotations

import json
import os
import pickle
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray

from lexveil.api import OF_TEXTS, plain_options, renamed_fields, takes_options
from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.parameters import with_purposes
from lexveil.core.accounting.operator_report import OperatorReport
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.io.artifacts.model import Model
from lexveil.io.execution.checkpoints import expect_file
from lexveil.io.formats.messages import shown
from lexveil.io.request import OnExhausted, Request
from lexveil.release.distributed.parts import (
    order_column,
    part_count,
    ranges,
    require_all,
    write_part,
    write_undivided,
)
from lexveil.release.distributed.release import HIDDEN, explained, release_table
from lexveil.release.distributed.rewriter import COUNTED, Rewriter, RunTotals, reported
from lexveil.release.outputs import write_errors
from lexveil.release.preconditions import STAMP, Checked, check

# Numbers of partitions in which subjects are added up. Ray's default is 200, and each partition
# takes longer to start than to add up some thousand subjects.
FEWEST_PARTS = 16
MOST_PARTS = 200
WRITTEN = ("file", "totals")  # fields of a worker's report about a batch that it has written


@dataclass(frozen=True, slots=True)
class PublishedDataset:
    """A rewritten table that was published, as a Dataset of Ray.

    Attributes:
        dataset: reads the table.
        record: the privacy record, which lies in the table's folder as
            ``_lexveil-TRANSACTION.record.json``.
        operator: the report that only the operator may see; it is written nowhere.
    """

    dataset: ray.data.Dataset
    record: PrivacyRecord
    operator: OperatorReport


@dataclass(frozen=True, slots=True, repr=False)
class PrivatizedDataset:
    """A Ray data set that is ready to be released. Every write is a release of its own, which is
    charged to the ledger of privacy budgets.
    """

    _dataset: ray.data.Dataset
    _checked: Checked
    _rewriter: Rewriter
    _on_exhausted: OnExhausted | None

    def write_parquet(self, path: Path | str) -> PublishedDataset:
        """Rewrite the data set and publish it as a Parquet table; counting, charging and rewriting
        all happen in this call.

        Args:
            path: the path of the table's folder, on storage that all nodes see. The folder appears
                complete, or not at all.

        Raises:
            RequestError: if a row, a worker or the folder is not valid; nothing is spent then.
            LexveilError: if the job fails after the noise was drawn; the charge stays spent.
        """
        job = _RayJob(self._dataset, self._rewriter, path)
        job.check(self._checked)
        released = release_table(self._checked, self._rewriter, job, self._on_exhausted)
        return PublishedDataset(
            ray.data.read_parquet(str(job.target)), released.record, released.operator
        )


@takes_options(Request, ("spans_column", "mode", "seed", "workers"))
def privatize(
    dataset: ray.data.Dataset,
    *,
    column: str | Sequence[str],
    subjects: str | None = None,
    project: Path | str | Model | None = None,
    model: str | None = None,
    purpose: str | Sequence[str] = (),
    model_folder: str | None = None,
    **options: Any,
) -> PrivatizedDataset:
    """Prepare the private release of a Ray data set. Nothing is spent before the result is written.

    Args:
        dataset: a Dataset that gives the same rows whenever it is evaluated.
        column: the text column, or several text columns, whose texts share the budget of a row.
        subjects: the column that names the person whom a row is about; if None, each text is a
            subject of its own.
        project: as in ``lexveil.privatize``.
        model: the name of a packaged model, which must be installed on every node, too.
        purpose: as in ``lexveil.privatize``.
        model_folder: the folder of that model, on storage that every node sees; not needed if the
            model is installed.
        options: as in ``lexveil.privatize``, except the options of experiments.

    Raises:
        RequestError: if the request cannot be served.
    """
    with renamed_fields(OF_TEXTS):
        request = Request.of(plain_options(options))
        place = Path(project) if isinstance(project, str) else project
        checked = check(request, Model.load(place, with_purposes(model, purpose)))
        columns = (column,) if isinstance(column, str) else tuple(column)
        with explained():  # runs the user's own plan
            schema = dataset.schema()
        if schema is None:
            raise RequestError(
                "dataset: has no rows and no columns, so there is nothing to release"
            )
        fields = pa.schema(list(zip(schema.names, schema.types, strict=True)))
        rewriter = Rewriter.of(checked, fields, columns, subjects, model_folder)
    return PrivatizedDataset(dataset, checked, rewriter, request.on_exhausted)


class _RayJob:
    """Implementation of ``Cluster`` on Ray, which runs both passes of a release (counting and
    rewriting) and publishes the folder.

    Each attempt of a task writes its own files, and reports their names to the driver with its
    result. Ray gives the driver one result of each task, and the driver publishes the files that
    this result names. Files of other attempts stay in a folder that is removed; such attempts exist
    because Ray may repeat a task that still runs.
    """

    def __init__(self, dataset: ray.data.Dataset, rewriter: Rewriter, path: Path | str) -> None:
        self.dataset, self.path, self.target = dataset, str(path), Path(path).absolute()
        self.columns = [
            *rewriter.columns,
            *([rewriter.subject_column] if rewriter.subject_column else []),
        ]
        self.order = order_column()
        self.staging: Path

    def check(self, checked: Checked) -> None:
        """Check that Ray can write the output in the way that a private release requires.

        Raises:
            RequestError: if the output cannot be written in this way.
        """
        where = shown(self.target)
        if "://" in self.path:
            raise RequestError(
                f"{where}: give a folder on storage that all nodes mount, and copy the table "
                "from there; copying a published table costs no epsilon"
            )
        if checked.no_guarantee and STAMP not in self.target.name:
            raise RequestError(
                f"{where}: this output has no guarantee, and its name must say so: NAME.{STAMP}"
            )
        if os.path.lexists(self.target):
            raise RequestError(f"{where}: exists already; choose another folder")

    def hide(self, folder: str, is_left: Callable[[str], bool]) -> None:
        """Choose the hidden folder in which the output is written, and remove hidden folders of
        drivers that were killed. The folder itself is created at the first write.
        """
        self.staging = self.target.with_name(folder)
        self.attempts, self.whole = self.staging / "attempts", self.staging / "whole"
        self.undivided = self.staging / "undivided"
        for path in self.target.parent.glob(f"{HIDDEN}*"):
            if is_left(path.name):
                shutil.rmtree(path, ignore_errors=True)

    def count(self, rewriter: Rewriter) -> Iterator[pa.RecordBatch]:
        """Yield the epsilon and the number of tokens that each subject spends, summed by Ray."""
        chosen = self.dataset.select_columns(self.columns)
        counted = chosen.map_batches(
            _count, batch_size=None, batch_format="pyarrow", fn_args=(_sent(rewriter),)
        )
        n_parts = min(max(2 * int(ray.cluster_resources().get("CPU", 1)), FEWEST_PARTS), MOST_PARTS)
        added = counted.groupby("subject", num_partitions=n_parts).sum([*COUNTED.names[1:]])
        for table in added.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield from table.rename_columns(COUNTED.names).cast(COUNTED).to_batches()

    def rewrite(self, rewriter: Rewriter) -> RunTotals:
        """Rewrite the data set and write it to the hidden folder, with one task for each block."""
        with write_errors(self.target):
            self.staging.mkdir(parents=True, mode=0o700)
            for folder in (self.attempts, self.undivided, self.whole):
                folder.mkdir()
        given = (_sent(rewriter), str(self.attempts), self.order)
        written = self.dataset.map_batches(
            _write, batch_size=None, batch_format="pyarrow", fn_args=given
        )
        totals = RunTotals()
        for result in written.iter_rows():
            self._take(result["file"], self.undivided)
            totals.merge(pickle.loads(result["totals"]))
        return totals

    def cut(self, totals: RunTotals) -> None:
        """Copy the rewritten rows into the parts of the table, with one task for each part."""
        files = [str(file) for file in sorted(self.undivided.iterdir())]
        if not files:
            return
        task = ray.remote(_divide)
        parts = [
            task.remote(files, self.order, numbers, str(self.attempts))
            for numbers in ranges(part_count(totals))
        ]
        n_rows = 0
        for name, rows in ray.get(parts):
            self._take(name, self.whole)
            n_rows += rows
        require_all(n_rows, totals)

    def _take(self, file: str, folder: Path) -> None:
        """Move the files that a successful task attempt reported to their place in the output."""
        expect_file(self.attempts / file, "the driver")
        (self.attempts / file).rename(folder / file)

    def publish(self, record: PrivacyRecord) -> None:
        """Publish the output by renaming the hidden folder to its final name."""
        assert record.release is not None
        file = self.whole / f"_lexveil-{record.release.id}.record.json"
        if os.path.lexists(self.target):
            raise LexveilError(
                f"{shown(self.target)}: another program created it during this release; "
                "nothing was published"
            )
        with write_errors(self.target):
            file.write_text(
                json.dumps(record.to_dict(), indent=2, sort_keys=True), encoding="utf-8"
            )
            self.whole.rename(self.target)

    def discard(self) -> None:
        """Remove the hidden folder with the unpublished output."""
        shutil.rmtree(self.staging, ignore_errors=True)


def _sent(rewriter: Rewriter) -> ray.ObjectRef:
    """Pickle the rewriter and put it into Ray's object store. If Ray pickled it, Ray would repeat a
    task for ever when the task fails while Ray unpickles the value.
    """
    return ray.put(pickle.dumps(rewriter))


@reported()
def _count(table: pa.Table, sent: ray.ObjectRef) -> pa.Table:
    rewriter: Rewriter = pickle.loads(ray.get(sent))
    return pa.Table.from_batches(map(rewriter.count, table.combine_chunks().to_batches()), COUNTED)


@reported()
def _write(table: pa.Table, sent: ray.ObjectRef, folder: str, order: str) -> dict[str, list[Any]]:
    """Rewrite the rows of a block and write them into a file of this task attempt."""
    rewriter: Rewriter = pickle.loads(ray.get(sent))
    totals = RunTotals()
    result = dict[str, list[Any]]({name: [] for name in WRITTEN})
    for batch in table.combine_chunks().to_batches():
        rewritten = rewriter.rewrite(batch, totals)
        expect_file(Path(folder), "this worker")
        name = _new_file()
        write_undivided(rewritten, order, Path(folder) / name)
        for key, value in zip(WRITTEN, (name, pickle.dumps(totals)), strict=True):
            result[key].append(value)
        totals = RunTotals()
    return result


@reported()
def _divide(
    files: Sequence[str], order: str, numbers: tuple[int, int], folder: str
) -> tuple[str, int]:
    """Write one part of the table into a file of this task attempt; return the name of the file and
    its number of rows.
    """
    expect_file(Path(folder), "this worker")
    name = _new_file()
    return name, write_part([Path(file) for file in files], order, numbers, Path(folder) / name)


def _new_file() -> str:
    """Return a file name that no other task attempt uses."""
    return f"part-{secrets.token_hex(16)}.parquet"
