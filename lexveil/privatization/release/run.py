"""One run in two passes over its input: count, charge, rewrite, record."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lexveil.accounting.measurements import Measurement
from lexveil.accounting.operator_report import SECRECY, OperatorReport
from lexveil.accounting.record import PrivacyRecord
from lexveil.accounting.shares import WHOLE
from lexveil.embeddings.neighborhoods import NearTable
from lexveil.errors import LexveilError, RequestError, option
from lexveil.formats.chunks import Chunk
from lexveil.logs import logger
from lexveil.privatization.engine.batch import Batch, arrow_rows, batch_of
from lexveil.privatization.engine.counts import (
    ExactSum,
    InputTotals,
    RewrittenChunk,
    SpendHistogram,
    Tally,
    coverage,
)
from lexveil.privatization.engine.worker import count_batches, rewrite_batches
from lexveil.privatization.linkage import linkage_of
from lexveil.privatization.release.charge import Payment
from lexveil.privatization.release.preconditions import Checked, LanguageCheck
from lexveil.privatization.settings import document_budget
from lexveil.runtime.hashes import code_hash, version
from lexveil.runtime.pool import Workers
from lexveil.runtime.stage import Progress, Watch
from lexveil.text.strings import letters_of
from lexveil.types import Floats

LOG = logger(__name__)


class TwoPassRun:
    """Count, then rewrite, then record.

    Args:
        checked: the request that passed its checks.
        chunks: goes through the input from its first row, each time it is called; says whether to
            write it again.
        columns: the names of the text columns.
        workers: processes; they change no result.
        watch: is told how many rows are counted, then how many of them are rewritten.
    """

    def __init__(
        self,
        checked: Checked,
        chunks: Callable[[bool], Iterator[Chunk]],
        columns: Sequence[str],
        workers: int,
        watch: Watch | None = None,
    ) -> None:
        self.settings = checked.engine.settings
        self.engine = checked.engine
        self.checked = checked
        self.chunks, self.columns, self.workers, self.watch = chunks, tuple(columns), workers, watch
        self.budget, self.survey, self.charged = checked.budget, InputTotals(), list[Floats]()
        if self.settings.sentences is not None:
            self.budget = document_budget(
                self.settings, self.engine.model, n_columns=len(self.columns)
            )
        self.language = LanguageCheck(
            self.engine.model,
            self.engine.lexicon,
            self.columns,
            empties=self.settings.empties_scripts,
        )
        self.fingerprint, self.tally, self.spent = _Fingerprint(), Tally(), SpendHistogram(0.0)
        self.n_columns: int | None = len(self.columns)  # None: a column may find several texts
        self.cost = ExactSum()  # of all rows, before any cap
        # that go out as they are; None where texts come without a table
        self.other_columns: Sequence[str] | None = None
        self._processes: ExitStack | None = None
        self._started: tuple[Workers[Any, Any], NearTable | None] | None = None

    @contextmanager
    def working(self) -> Iterator[None]:
        """Keep the processes that count in this block for rewriting too: each process takes a
        second to begin. The processes end with the rows.
        """
        with ExitStack() as stack:
            self._processes = stack if self.workers > 1 else None
            yield

    def _workers(self) -> Workers[Any, Any] | None:
        """The processes of this block; others where lists of near words were made since they
        began.
        """
        if self._processes is None:
            return None
        lists = self.engine.prepared.lists
        if self._started is None or self._started[1] is not lists:
            self._processes.close()
            started = Workers(self.engine.worker(self.columns), self.workers)
            self._started = self._processes.enter_context(started), lists
        return self._started[0]

    def about(self) -> dict[str, str]:
        """Return the facts about the run that the ledger's chain states."""
        prepared = self.engine.prepared
        settings = self.settings
        said = {
            "mechanism": settings.mechanism,
            "strategy": settings.strategy,
            "metric": prepared.mechanism.metric,
        }
        return said | prepared.base_measure()

    def measurement(self, payment: Payment) -> Measurement:
        """Return the measurement of the run: which mechanism ran, and what is proven of it."""
        entry = payment.entry()
        withholds = entry is not None and entry.cap is not None
        return self.engine.measurement(self.budget, self.n_columns, withholds=withholds)

    def count(self, payment: Payment, judge: Callable[[InputTotals], None] | None = None) -> None:
        """First pass: count the tokens, and reserve what the rows cost their subjects.

        Args:
            judge: looks at the counts before anything is reserved; what it raises ends the run.
        """
        settings = self.settings
        progress = Progress("count", 0, "rows", watch=self.watch)
        batches = (
            (chunk, batch_of(chunk, for_ledger=settings.mode == "release"))
            for chunk in self.language.supported(self.chunks(False))  # noqa: FBT003 - a function of one value
        )
        for chunk, counted in count_batches(
            self.engine.worker(self.columns), batches, self._workers(), progress
        ):
            self.n_columns = self.n_columns if chunk.widths is None else None
            if self.n_columns is None and settings.sentences is not None:
                raise RequestError(
                    f"{option('text_column')}: strategy {settings.strategy} writes sentences for "
                    "one text of each column; name columns that hold a text, without []"
                )
            self.language.add(chunk, counted)
            self.survey.add(counted)
            self.fingerprint.add(chunk)
            # Where the budget is not known yet, this is an experiment, for which nothing is
            # charged.
            epsilon = self.engine.spends(counted, self.budget)
            payment.request(chunk, epsilon, counted.keys)
            self.cost.add(epsilon)
            if settings.detection is not None and settings.has_public_budget:
                self.charged.append(epsilon)
        self.language.tell()
        self.budget = document_budget(
            settings, self.engine.model, self.survey.average_words, len(self.columns)
        )
        self.spent = SpendHistogram(self.budget.total)
        if judge is not None:
            judge(self.survey)
        payment.reserve(self.budget)

    def rewrite(self, payment: Payment) -> Iterator[tuple[Chunk, RewrittenChunk]]:
        """Second pass: spend what was reserved, then rewrite the rows that were charged.

        Raises:
            LexveilError: if the input is not what was counted; chunks before the change were given
                already.
        """
        payment.spend()
        n_paid = int(self.survey.totals[2]) // (1 if self.engine.shares is None else WHOLE)
        if not self.engine.model.cache_only:
            self.engine.prepared.keep_lists(
                self.budget.total * self.survey.documents / max(n_paid, 1), n_paid
            )
        again = _Fingerprint()

        def charged_rows() -> Iterator[tuple[Chunk, Batch]]:
            done = 0
            for chunk in self.language.supported(self.chunks(True)):  # noqa: FBT003 - a function of one value
                again.add(chunk)
                if not again.follows(self.fingerprint):
                    raise _changed()  # before any noise is drawn for what nobody has paid for
                stop = done + len(chunk)
                selected = replace(chunk, selection=~payment.withheld(done, stop))
                yield selected, batch_of(selected)
                done = stop

        worker = self.engine.worker(self.columns)
        charged = iter(self.charged)
        progress = Progress("privatize", self.survey.rows, "rows", watch=self.watch)
        for chunk, rewritten in rewrite_batches(
            worker, charged_rows(), self.budget, self._workers(), progress
        ):
            # A detector that does not find the same twice, for whatever reason, would spend what
            # nobody has paid for.
            expected = next(charged, rewritten.spent)
            is_selected = chunk.is_selected
            if not np.array_equal(rewritten.spent[is_selected], expected[is_selected]):
                raise LexveilError(
                    "a detector found something else when texts were read again; nothing was "
                    "released. Use one that "
                    "finds the same in the same text"
                )
            self.spent.add(rewritten.spent[is_selected], rewritten.per_token[is_selected])
            self.tally.merge(rewritten.tally)
            yield chunk, rewritten
        if self._processes is not None:
            self._processes.close()
        if again.chunks != self.fingerprint.chunks:
            raise _changed()

    def record(self, payment: Payment, **formulas: int | None) -> PrivacyRecord:
        """The privacy record of what was rewritten.

        Args:
            formulas: counts of the fields that a spreadsheet would compute.
        """
        settings = self.settings
        engine = self.engine
        checked = self.checked
        if checked.audit is None and settings.mode == "release":
            LOG.info(f"the record relies on no audit: {checked.why_no_audit}")
        guarantee = engine.guarantee(self.measurement(payment), self.n_columns)
        return PrivacyRecord.of(
            **settings.described(),
            **engine.described(),
            **(
                {"without_guarantee": True}
                if settings.mode == "release" and not guarantee.holds
                else {}
            ),
            lexveil=version(),
            code=code_hash(),
            parameters=engine.prepared.parameters,
            no_proof=engine.prepared.mechanism.no_guarantee,
            average_words=self.budget.average_words,
            document_budget={"input": self.budget.total},
            guarantee=guarantee,
            linkage=linkage_of(settings, engine.model),
            meaning=engine.meaning(self.spent.least_of_token, self.spent.most_of_token),
            counts=self.tally.counts().public(n_rows=self.spent.n, **formulas),
            spent=self.spent.summary(),
            columns=list(self.columns),
            other_columns=None if self.other_columns is None else list(self.other_columns),
            release=payment.entry(),
            audit=checked.audit,
            model=checked.model,
            made_with=checked.made_with,
        )

    def operator_report(self, payment: Payment) -> OperatorReport:
        """Return the report on the rewritten texts that only the operator may see."""
        return OperatorReport(
            schema_version=2,
            secrecy=SECRECY,
            lexveil=version(),
            model=self.checked.model,
            rows_read=self.survey.rows,
            counts=self.tally.counts(),
            coverage=coverage(self.tally.actions),
            documents=self.tally.document_shares(),
            language=self.language.finding(),
            **({} if self.language.n_emptied is None else {"emptied": self.language.n_emptied}),
            ledger=payment.costs(),
        )


def _changed() -> LexveilError:
    return LexveilError(
        "the input changed while it was read; no file was released, and nothing from the "
        "change on. Give a file that "
        "stays as it is"
    )


class _Fingerprint:
    """Tells whether two passes read the same, from chunk to chunk.

    Keyed with a random key, so that it identifies no text elsewhere. The number of texts and the
    length of each go before them: no text can pose as two.
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
        """Whether the chunks so far are those with which ``first`` begins."""
        n = len(self.chunks)
        return n <= len(first.chunks) and self.chunks[-1:] == first.chunks[n - 1 : n]
