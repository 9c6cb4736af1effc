"""The driver of a release on a cluster, which counts, reserves, rewrites, publishes and commits.

The driver charges the ledger before any worker draws noise. An engine implements a ``Cluster``. The
promises that it must keep are in docs/proofs/distributed.md. Workers of the engine make both
passes, in other processes that may try a task again. So the driver's ``Run`` object reads no row,
and only holds the budget, the results and the facts for ledger and reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa

from lexveil.base.errors import LexveilError
from lexveil.base.runtime.crash import short_report
from lexveil.core.accounting.operator_report import OperatorReport
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.io.request import OnExhausted
from lexveil.release.charge import LedgerCharge, ledger_of, open_charge
from lexveil.release.distributed.rewriter import Rewriter, RunTotals, told
from lexveil.release.engine.worker import Processes
from lexveil.release.ledger.transaction import Transaction
from lexveil.release.outputs import Outputs
from lexveil.release.preconditions import Checked
from lexveil.release.record import release_record
from lexveil.release.run import RowSource, Run

WITHHELD = (
    "the withholding of rows is not hidden: all rows of a subject are withheld if together they "
    "cost more than the ledger has left for the subject"
)
CHANGED = (
    "the table was different when it was read again, so nothing is published; give a table "
    "that does not change: write it, or call checkpoint(), before you release it"
)

# also the name of the transaction; a folder next to the output has this name until the output is
# published
HIDDEN = ".lexveil-"


class Cluster(Protocol):
    """Interface to a cluster engine, such as Spark or Ray, that does the work of a release. Each
    engine raises the errors of its workers in its own form.
    """

    def hide(self, folder: str, is_left: Callable[[str], bool]) -> None:
        """Choose a hidden folder for the unpublished output, and remove hidden folders that killed
        drivers left behind.
        """
        ...

    def count(self, rewriter: Rewriter) -> Iterator[pa.RecordBatch]:
        """Apply ``Rewriter.count`` to all rows, and yield the counts added up by subject. The
        engine may evaluate the count several times.
        """
        ...

    def rewrite(self, rewriter: Rewriter) -> RunTotals:
        """Apply ``Rewriter.rewrite`` to all rows, once, write the result to a hidden output, and
        return the totals.

        If there are several attempts of a task, the output and the totals of one attempt are used.
        """
        ...

    def cut(self, totals: RunTotals) -> None:
        """Divide the hidden output into the files that are published, in a random order that does
        not disclose how the source was divided.
        """
        ...

    def publish(self, record: PrivacyRecord) -> None:
        """Publish the divided output. Its privacy record appears first, and then its files."""
        ...

    def discard(self) -> None:
        """Remove the unpublished output. The driver calls this method at the end, whether or not
        the release succeeded.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReleasedTable:
    """The result of a published release on a cluster.

    Attributes:
        record: the privacy record, which is next to the table.
        operator: the report that only the operator may see; it is not written to a file.
    """

    record: PrivacyRecord
    operator: OperatorReport


def release_table(
    checked: Checked, rewriter: Rewriter, cluster: Cluster, on_exhausted: OnExhausted | None = None
) -> ReleasedTable:
    """Release a table on a cluster, with one transaction of the budget ledger.

    Raises:
        RequestError: if a row or a worker is not valid, or the ledger refuses; nothing is spent
            then.
        LexveilError: if the job fails after the noise; nothing is published, and the epsilon stays
            spent.
    """
    engine = checked.engine
    # The cluster makes the passes; the driver's own input has no rows.
    no_rows = RowSource(lambda **_: iter(()), rewriter.columns, rewriter.others)
    run = Run(engine, checked.budget, no_rows, Processes(1))
    nothing = Outputs(None)
    ledger = ledger_of(engine.model.project, on_exhausted)
    has_subjects = rewriter.subject_column is not None
    with (
        open_charge(ledger, "release", has_subjects, run.about(), nothing, ()) as charge,
        explained(),
    ):
        assert isinstance(charge, LedgerCharge)
        cluster.hide(HIDDEN + charge.release.id, partial(_is_left, charge.release))
        try:
            counted = RunTotals()
            withheld = charge.reserve_in_bulk(
                _read(cluster.count(rewriter), rewriter, counted), run.budget
            )
            second = rewriter.without(withheld, counted.tokens)
            charge.spend()
            totals = cluster.rewrite(second)
            if totals.check != counted.check:
                raise LexveilError(CHANGED)
            cluster.cut(totals)
            outcome = run.outcome
            outcome.tally = totals.tally
            outcome.spent = totals.spent
            outcome.n_rows = totals.rows
            measured = engine.measurement(run.budget, len(rewriter.columns))
            if charge.cap is not None:
                measured = measured.adding(WITHHELD)
            record = release_record(checked, outcome, measured, charge)
            report = run.operator_report(checked, charge)
            rows = {
                "requested": totals.rows,
                "charged": totals.rows - totals.withheld,
                "withheld": totals.withheld,
            }
            costs = charge.costs().model_copy(
                update={f"documents_{what}": n for what, n in rows.items()}
            )
            cluster.publish(record)
            charge.publish(nothing)
            return ReleasedTable(record, report.model_copy(update={"ledger": costs}))
        finally:
            cluster.discard()


def _is_left(release: Transaction, name: str) -> bool:
    """Return whether a folder was left behind by a release that has ended according to the
    ledger.
    """
    return name.startswith(HIDDEN) and release.knows_ended(name.removeprefix(HIDDEN))


def _read(
    batches: Iterable[pa.RecordBatch], rewriter: Rewriter, counted: RunTotals
) -> Iterator[pa.RecordBatch]:
    """Yield the cost of each subject in the columns that the ledger takes, and add the totals to
    ``counted``.
    """
    for batch in batches:
        counted.check += rewriter.check(
            batch.column("subject").to_pylist(), batch.column("nano").to_numpy()
        )
        counted.tokens += sum(batch.column("tokens").to_pylist())
        yield batch.select(["subject", "nano"])


@contextmanager
def explained() -> Iterator[None]:
    """Replace an engine's error by a one-line error without the engine's own message, because that
    message may quote values.

    Raises:
        LexveilError: in place of any other error.
    """
    try:
        yield
    except LexveilError:
        raise
    except Exception as error:
        where = f"{type(error).__name__} in {short_report(error)}"
        raise told(error) or LexveilError(
            f"the cluster's job failed ({where}); the engine's log states the reason"
        ) from None
