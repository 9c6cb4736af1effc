"""One run that rewrites an input: read the source, plan, charge the ledger, draw noise, write the
output.

    source ──▶ count ──▶ charge.reserve ──▶ charge.spend ──▶ draw ──▶ sink
    rows       epsilon of each document                      noise    texts and token log

Files, databases and tables in memory are sources and sinks of a run (``adapters``). `lexveil
inspect` and previews are runs that discard their output (``looking``). On a cluster each worker
counts and rewrites its own partition, and the driver charges (``lexveil.release.distributed``). The
pipeline stage ``privatize`` has runs of its own (``adapters.stage``), because its budgets are
planned beforehand and nothing is charged.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from lexveil.base.errors import LexveilError, RequestError, option
from lexveil.base.types import Floats
from lexveil.core.accounting.budgets import DocumentBudget
from lexveil.core.accounting.measurements import Measurement
from lexveil.core.accounting.operator_report import LedgerCosts, OperatorReport
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.core.accounting.shares import WHOLE
from lexveil.core.text.strings import letters_of
from lexveil.io.execution.stage import Progress, Watch
from lexveil.io.formats.chunks import Chunk
from lexveil.release.charge import Charge
from lexveil.release.engine.batch import arrow_rows, batch_of
from lexveil.release.engine.counts import (
    BatchCounts,
    ExactSum,
    InputTotals,
    RewrittenChunk,
    SpendHistogram,
)
from lexveil.release.engine.engine import Engine
from lexveil.release.engine.worker import Processes, count_batches, rewrite_batches
from lexveil.release.outputs import Outputs
from lexveil.release.preconditions import Checked, LanguageCheck
from lexveil.release.record import Outcome, operator_report, release_record
from lexveil.release.screen_check import ScreenCheck
from lexveil.release.settings import document_budget


class ReadRows(Protocol):
    """Interface of a function that reads an input from its first row, each time it is called."""

    def __call__(self, *, for_writing: bool) -> Iterator[Chunk]:
        """Yield the rows of the input in chunks.

        Args:
            for_writing: whether the rows will be written.
        """


@dataclass(frozen=True, slots=True)
class RowSource:
    """Input of a run: rows that can be read twice.

    Attributes:
        chunks: function that reads the rows.
        columns: the names of the text columns.
        others: the columns that are published unchanged; None if texts come without a table.
    """

    chunks: ReadRows
    columns: tuple[str, ...]
    others: tuple[str, ...] | None = None


class RowSink(Protocol):
    """Interface of the output of a run, to which rewritten rows are written."""

    def write(self, chunk: Chunk, rewritten: RewrittenChunk) -> None:
        """Write the selected rows of a chunk. The other rows are withheld and not written."""


class Judge:
    """Checks that can stop a run at three points by raising an error: after counting, after the
    reservation of epsilon, and before publication. This base class accepts every run.

    Before the noise is drawn, a check may use any data, and a refusal spends nothing. After the
    noise is drawn, a check may use only values that an observer could compute. To choose among
    outputs by private data would be another mechanism, and the epsilon of the outputs is already
    spent.
    """

    def counted(self, totals: InputTotals) -> None:
        """Check the counts of the source, before any epsilon is reserved. Raise an error to stop
        the run.
        """

    def reserved(self, costs: LedgerCosts | None) -> None:
        """Check the ledger's reservation, before any noise is drawn. Raise an error to stop the
        run.
        """

    def written(
        self, outputs: Outputs, record: PrivacyRecord, operator: OperatorReport
    ) -> tuple[PrivacyRecord, OperatorReport]:
        """Check the outputs before publication, and return the privacy record and the operator's
        report to write. Raise an error to stop the run.
        """
        del outputs
        return record, operator


class Run:
    """One run that rewrites an input with an engine, in two passes: count, then rewrite.

    Args:
        budget: the budget of each document, or of each text column if texts are replaced by
            sentences. If the budget depends on the texts, the value is ignored.
        processes: the worker processes, whose number does not change the results.
        watch: observer that is called with the number of counted rows, and then with the number of
            rewritten rows.
    """

    def __init__(
        self,
        engine: Engine,
        budget: DocumentBudget,
        source: RowSource,
        processes: Processes,
        watch: Watch | None = None,
    ) -> None:
        self.engine = engine
        self.settings = engine.settings
        self.source = source
        self.processes = processes
        self.watch = watch
        self.worker = engine.worker(source.columns)
        n_columns = len(source.columns)
        if self.settings.sentences is not None:
            budget = budget.times(n_columns)
        self.outcome = Outcome(budget, source.columns, source.others, n_columns)
        self.language = LanguageCheck(
            engine.model, engine.lexicon, source.columns, empties=self.settings.empties_scripts
        )
        self.screened = ScreenCheck(engine)
        self.survey = InputTotals()
        self.cost = ExactSum()  # epsilon of all rows, before any cap
        self._fingerprint = _Fingerprint()
        self._charged = list[
            Floats
        ]()  # epsilon of the rows of each chunk, if detectors find tokens

    @property
    def budget(self) -> DocumentBudget:
        """The budget of each document."""
        return self.outcome.budget

    def about(self) -> dict[str, str]:
        """Return the facts about the run that the ledger's log records."""
        prepared = self.engine.prepared
        settings = self.settings
        said = {
            "mechanism": settings.mechanism,
            "strategy": settings.strategy,
            "metric": prepared.mechanism.metric,
        }
        return said | prepared.base_measure()

    def count(self, charge: Charge, judge: Judge | None = None) -> None:
        """Make the first pass over the input: count the tokens, and reserve the epsilon of the rows
        for their subjects.
        """
        settings = self.settings
        for chunk, counted in self.counting("count"):
            # If the budget is not known yet, this is an experiment, which is not charged.
            epsilon = self.engine.spends(counted, self.budget)
            charge.request(chunk, epsilon, counted.keys)
            self.cost.add(epsilon)
            if settings.detection is not None and settings.has_public_budget:
                self._charged.append(epsilon)
        self.language.tell()
        self.screened.tell()
        if judge is not None:
            judge.counted(self.survey)
        charge.reserve(self.budget)
        if judge is not None:
            judge.reserved(charge.costs())

    def counting(self, label: str) -> Iterator[tuple[Chunk, BatchCounts]]:
        """Count the tokens of the source, and yield its chunks with their counts. The budget is
        known at the end.

        Args:
            label: the name of this step in progress messages.
        """
        settings = self.settings
        progress = Progress(label, 0, "rows", watch=self.watch)
        batches = (
            (chunk, batch_of(chunk, for_ledger=settings.mode == "release"))
            for chunk in self.language.supported(self.source.chunks(for_writing=False))
        )
        for chunk, counted in count_batches(self.worker, batches, self.processes, progress):
            self._check_columns(chunk)
            self.language.add(chunk, counted)
            self.screened.add(chunk, counted, self.worker)
            self.survey.add(counted)
            self._fingerprint.add(chunk)
            yield chunk, counted
        outcome = self.outcome
        if not settings.has_public_budget:
            average = self.survey.average_words
            outcome.budget = document_budget(settings, self.engine.model, average)
        outcome.spent = SpendHistogram(outcome.budget.total)
        outcome.n_rows = self.survey.rows

    def _check_columns(self, chunk: Chunk) -> None:
        if chunk.widths is None:
            return
        self.outcome.n_columns = None
        if self.settings.sentences is not None:
            raise RequestError(
                f"{option('text_column')}: strategy {self.settings.strategy} writes "
                "sentences for one text per row of each column; name columns with one text, "
                "without []"
            )

    def drawing(
        self, chunks: Iterable[Chunk], label: str, n_rows: int
    ) -> Iterator[tuple[Chunk, RewrittenChunk]]:
        """Rewrite chunks of rows by drawing noise, and yield each chunk with the result for its
        selected rows.
        """
        batches = ((chunk, batch_of(chunk)) for chunk in chunks)
        progress = Progress(label, n_rows, "rows", watch=self.watch)
        yield from rewrite_batches(self.worker, batches, self.budget, self.processes, progress)

    def rewrite(self, charge: Charge, sink: RowSink) -> None:
        """Make the second pass over the input: spend the reserved epsilon, then rewrite and write
        the charged rows.

        Raises:
            LexveilError: if the input differs from the input that was counted. Chunks before the
                difference have already been written.
        """
        charge.spend()
        self._keep_lists()
        again = _Fingerprint()
        charged = iter(self._charged)
        selected = self._charged_rows(charge, again)
        for chunk, rewritten in self.drawing(selected, "privatize", self.survey.rows):
            # If a detector finds other tokens in the second pass, for whatever reason, the noise
            # would cost epsilon that was not charged.
            expected = next(charged, rewritten.spent)
            is_selected = chunk.is_selected
            if not np.array_equal(rewritten.spent[is_selected], expected[is_selected]):
                raise LexveilError(
                    "a detector found other tokens when the texts were read again, so "
                    "nothing was released; use a detector that always finds the same tokens "
                    "in the same text"
                )
            spent = rewritten.spent[is_selected]
            self.outcome.spent.add(spent, rewritten.per_token[is_selected])
            self.outcome.tally.merge(rewritten.tally)
            sink.write(chunk, rewritten)
        self.processes.close()
        if again.chunks != self._fingerprint.chunks:
            raise _changed()

    def _keep_lists(self) -> None:
        """Precompute the neighbour lists of words if there are enough tokens to make them
        worthwhile. New lists restart the worker processes.
        """
        if self.engine.model.cache_only:
            return
        prepared = self.engine.prepared
        lists = prepared.lists
        n_paid = int(self.survey.totals[2]) // (1 if self.engine.shares is None else WHOLE)
        prepared.keep_lists(self.budget.total * self.survey.documents / max(n_paid, 1), n_paid)
        if prepared.lists is not lists:
            self.worker = self.engine.worker(self.source.columns)

    def _charged_rows(self, charge: Charge, again: _Fingerprint) -> Iterator[Chunk]:
        """Read the source again, check that it is unchanged, and yield its chunks with only the
        charged rows selected.
        """
        done = 0
        for chunk in self.language.supported(self.source.chunks(for_writing=True)):
            again.add(chunk)
            if not again.follows(self._fingerprint):
                # raise the error before any noise is drawn for rows that were not charged
                raise _changed()
            stop = done + len(chunk)
            yield replace(chunk, selection=~charge.withheld(done, stop))
            done = stop

    def measurement(self, charge: Charge) -> Measurement:
        """Return the mechanism of the run, with its proven privacy bound."""
        entry = charge.entry()
        withholds = entry is not None and entry.cap is not None
        return self.engine.measurement(self.budget, self.outcome.n_columns, withholds=withholds)

    def record(self, checked: Checked, charge: Charge, **formulas: int | None) -> PrivacyRecord:
        """Return the privacy record of the rewritten input, which is published with it. The
        arguments are those of ``release_record``.
        """
        measurement = self.measurement(charge)
        return release_record(checked, self.outcome, measurement, charge, **formulas)

    def operator_report(self, checked: Checked, charge: Charge) -> OperatorReport:
        """Return the report on the rewritten texts that only the operator may see."""
        report = operator_report(checked, self.outcome, self.language, charge)
        shares = self.screened.shares()
        return report.model_copy(update={"screened": shares}) if shares else report


def _changed() -> LexveilError:
    return LexveilError(
        "the input changed while it was read, so no file was released, and of a stream "
        "nothing after the change; give an input that does not change"
    )


class _Fingerprint:
    """Fingerprint of the rows that a pass reads, to detect whether the input changed between two
    passes.

    The fingerprint is a hash with a random key, so it identifies no text elsewhere.

    The hash includes the number of texts and the length of each text, so that one text cannot have
    the fingerprint of two.
    """

    KEY = secrets.token_bytes(32)

    def __init__(self) -> None:
        self.hash = hashlib.blake2b(key=self.KEY, digest_size=16)
        self.chunks: list[bytes] = []  # after each

    def add(self, chunk: Chunk) -> None:
        for text in (chunk.file.encode("utf-8", "surrogateescape"), repr(chunk.spans).encode()):
            self._number(len(text))
            self.hash.update(text)
        self._add(arrow_rows(chunk.texts).columns)
        self._add([] if chunk.subjects is None else [pa.array(chunk.subjects, pa.large_string())])
        self.chunks.append(self.hash.digest())

    def _add(self, columns: Sequence[pa.LargeStringArray]) -> None:
        self._number(len(columns))
        for column in columns:
            letters, offsets = letters_of(column)
            sizes = np.where(column.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets), -1)
            self._number(len(sizes))
            self.hash.update(sizes.tobytes())
            self.hash.update(letters[offsets[0] : offsets[-1]].data)

    def _number(self, number: int) -> None:
        self.hash.update(number.to_bytes(8, "little"))

    def follows(self, first: _Fingerprint) -> bool:
        """Return whether the rows so far equal the first rows of another pass."""
        n = len(self.chunks)
        return n <= len(first.chunks) and self.chunks[-1:] == first.chunks[n - 1 : n]
