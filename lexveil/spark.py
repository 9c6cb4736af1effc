"""Private release of Apache Spark tables: a DataFrame is rewritten, published as a table, and read
as a DataFrame.

    prepared = lexveil.spark.privatize(frame, column="body", subjects="customer")
    released = prepared.write_parquet("hdfs:///out/tickets")
    released.frame.count()

A DataFrame of rewritten texts exists only after the table is published. Otherwise Spark would
evaluate it again for every action, each time with other noise, and only the first noise would be
charged (docs/proofs/distributed.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructType

from lexveil.api import OF_TEXTS, plain_options, renamed_fields, takes_options
from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.parameters import with_purposes
from lexveil.core.accounting.operator_report import OperatorReport
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.io.artifacts.model import Model
from lexveil.io.formats.messages import name, names, shown
from lexveil.io.request import OnExhausted, Request
from lexveil.release.distributed.parts import order_column, part_count, require_all, with_order
from lexveil.release.distributed.release import release_table
from lexveil.release.distributed.rewriter import COUNTED, Rewriter, RunTotals
from lexveil.release.preconditions import STAMP, Checked, check

# The proof relies on these settings: Spark uses the output of exactly one attempt of each task.
REQUIRED = {
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "spark.sql.sources.outputCommitterClass": "",
    "spark.hadoop.outputCommitCoordination.enabled": "true",
}
COMMITS = {"mapreduce.fileoutputcommitter.algorithm.version": "1", "maxRecordsPerFile": "0"}
# File systems that rename a folder in one step.
SCHEMES = ("file", "hdfs", "viewfs", "abfs", "abfss")
COUNTS = "columns of COUNTED, in Spark's notation"  # COUNTED, as Spark writes it


@dataclass(frozen=True, slots=True)
class PublishedFrame:
    """A rewritten table that was published, as a DataFrame of Spark.

    Attributes:
        frame: reads the table, including earlier rows if the release appended to a table.
        record: the privacy record, which lies in the table's folder as
            ``_lexveil-TRANSACTION.record.json``.
        operator: the report that only the operator may see; it is written nowhere.
    """

    frame: DataFrame
    record: PrivacyRecord
    operator: OperatorReport


@dataclass(frozen=True, slots=True, repr=False)
class PrivatizedFrame:
    """A Spark table that is ready to be released. Every write is a release of its own, which is
    charged to the ledger of privacy budgets.
    """

    _frame: DataFrame
    _checked: Checked
    _rewriter: Rewriter
    _on_exhausted: OnExhausted | None

    def write_parquet(
        self, path: str, *, append: bool = False, partition_by: Sequence[str] = ()
    ) -> PublishedFrame:
        """Rewrite the table and publish it in Parquet; counting, charging and rewriting all happen
        in this call.

        Args:
            path: the path of the table's folder. The folder appears complete, or not at all.
            append: add to the rows of an existing table.
            partition_by: columns by whose values the folder is divided.

        Raises:
            RequestError: if a row, a worker, the session or the folder is not valid; nothing is
                spent then.
            LexveilError: if the job fails after the noise was drawn; the charge stays spent.
        """
        job = _SparkJob(self._frame, self._rewriter, path, append, tuple(partition_by))
        job.check(self._checked)
        released = release_table(self._checked, self._rewriter, job, self._on_exhausted)
        return PublishedFrame(
            self._frame.sparkSession.read.parquet(path), released.record, released.operator
        )


@takes_options(Request, ("spans_column", "mode", "seed", "workers"))
def privatize(
    frame: DataFrame,
    *,
    column: str | Sequence[str],
    subjects: str | None = None,
    project: Path | str | Model | None = None,
    model: str | None = None,
    purpose: str | Sequence[str] = (),
    model_folder: str | None = None,
    **options: Any,
) -> PrivatizedFrame:
    """Prepare the private release of a Spark table. No row is read, and nothing is spent, before
    the result is written.

    Args:
        frame: a DataFrame of a classic session. It must give the same rows at every evaluation.
        column: the text column, or several text columns, whose texts share the budget of a row.
        subjects: the column that names the person whom a row is about; if None, each text is a
            subject of its own.
        project: as in ``lexveil.privatize``.
        model: the name of a packaged model, which must be installed on every worker, too.
        purpose: as in ``lexveil.privatize``.
        model_folder: the folder of that model, on storage that every worker sees; not needed if the
            model is installed.
        options: as in ``lexveil.privatize``, except the options of experiments.

    Raises:
        RequestError: if the request cannot be served.
    """
    if ".connect." in type(frame).__module__ or frame.isStreaming:
        raise RequestError(
            "frame: is a stream, or belongs to Spark Connect; give a DataFrame of a classic "
            "session that is not a stream"
        )
    if not frame._jdf.queryExecution().analyzed().deterministic():
        raise RequestError(
            "frame: its plan draws random values, which change at every evaluation; write the "
            "frame, or checkpoint() it, first"
        )
    with renamed_fields(OF_TEXTS):
        request = Request.of(plain_options(options))
        place = Path(project) if isinstance(project, str) else project
        checked = check(request, Model.load(place, with_purposes(model, purpose)))
        columns = (column,) if isinstance(column, str) else tuple(column)
        rewriter = Rewriter.of(
            checked, to_arrow_schema(frame.schema), columns, subjects, model_folder
        )
    return PrivatizedFrame(frame, checked, rewriter, request.on_exhausted)


class _SparkJob:
    """Implementation of ``Cluster`` on Spark, which runs both passes of a release (counting and
    rewriting), and publishes the folder through Hadoop's file systems.
    """

    def __init__(
        self,
        frame: DataFrame,
        rewriter: Rewriter,
        path: str,
        append: bool,
        partition_by: tuple[str, ...],
    ) -> None:
        self.frame = frame
        self.append = append
        self.partition_by = partition_by
        self.columns = [
            *rewriter.columns,
            *([rewriter.subject_column] if rewriter.subject_column else []),
        ]
        self.texts, self.order = rewriter.columns, order_column()
        self.written = _bare(frame.schema)
        self.numbered = _bare(frame.schema).add(self.order, LongType())
        self.spark: Any = frame.sparkSession
        self.hadoop: Any = self.spark._jvm.org.apache.hadoop.fs
        configuration = self.spark._jsc.hadoopConfiguration()
        folder = self.hadoop.Path(path)
        scheme = (
            folder.toUri().getScheme()
            or self.hadoop.FileSystem.getDefaultUri(configuration).getScheme()
        )
        if scheme not in SCHEMES:
            raise RequestError(
                f"{shown(path)}: on {scheme} a folder cannot be renamed in one step; write to "
                f"one of {', '.join(SCHEMES)}, and copy the table from there; copying a "
                "published table costs no epsilon"
            )
        self.files: Any = folder.getFileSystem(configuration)
        self.target: Any = self.files.makeQualified(folder)
        self.mask: Any = self.hadoop.permission.FsPermission.getUMask(configuration)
        self.staging: Any

    def check(self, checked: Checked) -> None:
        """Check that Spark can write the output in the way that a private release requires.

        Raises:
            RequestError: if the output cannot be written in this way.
        """
        where = shown(self.target.toString())
        for key, value in REQUIRED.items():
            if (own := self.spark.conf.get(key, None)) not in (None, value):
                raise RequestError(
                    f"{key} is {own}, so Spark may publish several attempts of a task; unset it "
                    "for the session that releases"
                )
        if checked.no_guarantee and STAMP not in self.target.getName():
            raise RequestError(
                f"{where}: this output has no guarantee, and its name must say so: NAME.{STAMP}"
            )
        for column in self.partition_by:
            if column not in self.frame.columns or column in self.texts:
                raise RequestError(
                    f"partition_by: {name(column)} must be a column of the frame that is not "
                    "rewritten"
                )
        if not self.files.exists(self.target):
            return
        if not self.append:
            raise RequestError(f"{where}: exists already; choose another folder, or append to it")
        there, new = (
            {
                field.name: field.dataType
                for field in frame.schema
                if field.name not in self.partition_by
            }
            for frame in (self.spark.read.parquet(self.target.toString()), self.frame)
        )
        if there != new:
            raise RequestError(
                f"{where}: has other columns or types than the frame: {names(there)}"
            )

    def hide(self, folder: str, is_left: Callable[[str], bool]) -> None:
        """Choose the hidden folder in which the output is written, and remove hidden folders of
        drivers that were killed. The folder itself is created at the first write.
        """
        beside = self.target.getParent()
        self.staging = self.hadoop.Path(beside, folder)
        self.undivided = self.hadoop.Path(self.staging, "undivided")
        self.whole = self.hadoop.Path(self.staging, "whole")
        for status in self.files.listStatus(beside) if self.files.exists(beside) else ():
            if is_left(status.getPath().getName()):
                self.files.delete(status.getPath(), True)  # noqa: FBT003 - Java

    def count(self, rewriter: Rewriter) -> Iterator[pa.RecordBatch]:
        """Yield the epsilon and the number of tokens that each subject spends, summed by Spark;
        each batch of subjects arrives as one row of bytes.
        """
        chosen = self.frame.select(*map(_quoted, self.columns))
        counted = (
            chosen.mapInArrow(partial(_count, rewriter), COUNTS)
            .groupBy("subject")
            .sum("nano", "tokens")
        )
        packed = counted.toDF(*COUNTED.names).mapInArrow(_packed, "packed binary")
        for (batch,) in packed.toLocalIterator(prefetchPartitions=True):
            yield from pa.ipc.open_stream(batch)

    def rewrite(self, rewriter: Rewriter) -> RunTotals:
        """Rewrite the table in the Spark stage that writes the output. Spark adds the totals of
        each task of that stage once, from the attempt whose output it keeps.
        """
        self.files.mkdirs(self.staging, self.hadoop.permission.FsPermission("700"))
        totals: Accumulator[RunTotals] = self.spark.sparkContext.accumulator(RunTotals(), _Merged())
        rewritten = self.frame.mapInArrow(
            partial(_rewrite, rewriter, totals, self.order), self.numbered
        )
        rewritten.write.mode("append").options(**COMMITS).parquet(self.undivided.toString())
        added: RunTotals = totals.value
        return added

    def cut(self, totals: RunTotals) -> None:
        """Copy the rewritten rows into the parts of the table, in the order of their random
        numbers.
        """
        reader = self.spark.read.schema(self.numbered)
        divided = reader.parquet(self.undivided.toString()).repartition(
            part_count(totals), self.order
        )
        # The columns of folders come first, as the writer expects; with another order it would sort
        # again, and mix the rows of a folder.
        ordered = divided.sortWithinPartitions(*map(_quoted, self.partition_by), self.order)
        writer = ordered.drop(self.order).write.mode("append").options(**COMMITS)
        writer.partitionBy(*self.partition_by).parquet(self.whole.toString())
        copied = self.spark.read.schema(self.written).parquet(self.whole.toString())
        require_all(copied.count(), totals)

    def publish(self, record: PrivacyRecord) -> None:
        """Publish the output by renaming the hidden folder to its final name; for a table that
        exists, move the files one after the other.
        """
        assert record.release is not None
        is_new = not self.files.exists(self.target)
        file = f"_lexveil-{record.release.id}.record.json"
        meanwhile = LexveilError(
            f"{shown(self.target.toString())}: another program created it during this release; "
            "nothing was published"
        )
        if not (is_new or self.append):
            raise meanwhile
        out = self.files.create(self.hadoop.Path(self.whole, file), False)  # noqa: FBT003 - Java
        out.write(json.dumps(record.to_dict(), indent=2, sort_keys=True).encode())
        out.close()
        if is_new:
            permission = self.hadoop.permission.FsPermission.getDirDefault().applyUMask(self.mask)
            self.files.setPermission(self.whole, permission)
            self._rename(self.whole, self.target)
            # Hadoop moved it into a folder that was created meanwhile
            if not self.files.exists(self.hadoop.Path(self.target, file)):
                raise meanwhile
            return
        self._rename(self.hadoop.Path(self.whole, file), self.hadoop.Path(self.target, file))
        written = self.files.listFiles(self.whole, True)  # noqa: FBT003 - Java
        root = self.whole.toUri()
        while written.hasNext():
            path = written.next().getPath()
            if path.getName().startswith("part-"):
                final = self.hadoop.Path(self.target, root.relativize(path.toUri()).getPath())
                self.files.mkdirs(final.getParent())
                self._rename(path, final)

    def _rename(self, path: Any, final: Any) -> None:
        if not self.files.rename(path, final):
            raise LexveilError(
                f"{shown(final.toString())}: cannot be published; the table is incomplete"
            )

    def discard(self) -> None:
        """Remove the hidden folder with the unpublished output."""
        with suppress(Exception):  # an error here would hide the error that led here
            self.files.delete(self.staging, True)  # noqa: FBT003 - Java


class _Merged(AccumulatorParam[RunTotals]):  # type: ignore[misc]
    """Spark accumulator that adds up the totals of tasks. Of each task of a stage that writes,
    Spark adds one attempt.
    """

    def zero(self, value: RunTotals) -> RunTotals:  # noqa: ARG002
        """Return the totals of an empty table."""
        return RunTotals()

    def addInPlace(  # noqa: N802 - of Spark
        self, value1: RunTotals, value2: RunTotals
    ) -> RunTotals:
        """Return the sum of two totals."""
        return value1.merge(value2)


def _count(rewriter: Rewriter, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return map(rewriter.count, batches)


def _rewrite(
    rewriter: Rewriter,
    totals: Accumulator[RunTotals],
    order: str,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    own = RunTotals()
    for batch in batches:
        yield with_order(rewriter.rewrite(batch, own), order)
    totals.add(own)


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Serialize each record batch to bytes, so that Spark does not create an object for each of its
    rows.
    """
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["packed"])


def _quoted(column: str) -> str:
    """Quote a column's name for use in a Spark SQL expression."""
    return "`" + column.replace("`", "``") + "`"


def _bare(schema: StructType) -> StructType:
    """Return a schema with the same columns and types but without metadata, because any program may
    have put texts into the metadata.
    """
    bare: dict[str, Any] = {"metadata": {}}
    emptied = json.loads(
        schema.json(), object_hook=lambda part: part | bare if "metadata" in part else part
    )
    return StructType.fromJson(emptied)
