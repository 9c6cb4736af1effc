"""One run in two passes over its input: count, charge, rewrite, record."""

from __future__ import annotations

import hashlib
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from lexveil import paths
from lexveil.accounting.record import PrivacyRecord, RunFacts, record
from lexveil.errors import LexveilError
from lexveil.privatization.audit_lookup import audit_relied_on
from lexveil.privatization.budget_charge import Charge
from lexveil.privatization.engine import Engine, InputTotals, RewrittenChunk
from lexveil.privatization.model import Model
from lexveil.privatization.selected_chunk import SelectedChunk, batches_of
from lexveil.privatization.settings import Settings
from lexveil.privatization.spend_histogram import SpendHistogram
from lexveil.privatization.tally import Tally
from lexveil.runtime.hashes import code_hash, version
from lexveil.runtime.stage import Progress


class TwoPassRun:
    """Count, then rewrite, then record.

    Args:
        chunks: goes through the input from its first row, each time it is called; says whether to write it again.
        columns: the names of the text columns.
        workers: processes; they change no result.

    Raises:
        RequestError: if artifacts are missing, or the last audit of the mechanism found a violation.
    """

    def __init__(
        self,
        settings: Settings,
        model: Model,
        chunks: Callable[[bool], Iterator[SelectedChunk]],
        columns: Sequence[str],
        workers: int,
    ) -> None:
        self.settings, self.chunks, self.columns, self.workers = settings, chunks, tuple(columns), workers
        model.require_checks(settings.strategy)
        self.engine = Engine(settings, model)
        self.audit = audit_relied_on(settings, self.engine.prepared.parameters, model.path(paths.AUDITS))
        self.survey, self.seen = InputTotals.empty(), _Fingerprint()
        self.budget = 0.0
        self.tally, self.spent = Tally(), SpendHistogram(0.0)

    def about(self) -> dict[str, str]:
        """What the ledger's chain says of the run."""
        metric = self.engine.prepared.mechanism.metric
        return {"mechanism": self.settings.mechanism, "strategy": self.settings.strategy, "metric": metric}

    def count(self, payment: Charge) -> None:
        """First pass: count the tokens, and reserve what the rows cost their subjects."""
        progress = progress_on_stderr("count", 0, "rows")
        for selected, counted in self.engine.count(batches_of(self.chunks(False)), self.workers, progress):
            self.survey.add(counted)
            self.seen.add(selected)
            payment.request(selected.chunk, self.engine.shares(counted))
        self.budget = self.engine.budget(self.survey)
        self.spent = SpendHistogram(self.budget)
        payment.reserve(self.budget)

    def rewrite(self, payment: Charge) -> Iterator[tuple[SelectedChunk, RewrittenChunk]]:
        """Second pass: rewrite the rows that were charged.

        Raises:
            LexveilError: if the input is not what was counted; rows before the change were given already.
        """
        again = _Fingerprint()

        def chosen() -> Iterator[SelectedChunk]:
            done = 0
            for selected in self.chunks(True):
                again.add(selected)
                stop = done + len(selected.chunk)
                if stop > self.survey.rows:
                    raise _changed()
                yield replace(selected, keep=~payment.withheld(done, stop))
                done = stop

        progress = progress_on_stderr("privatize", self.survey.rows, "rows")
        for selected, rewritten in self.engine.rewrite(
            batches_of(chosen()), self.columns, self.budget, self.workers, progress
        ):
            self.spent.add(rewritten.spent[selected.keep])
            self.tally.merge(rewritten.tally)
            yield selected, rewritten
        if again.digest() != self.seen.digest():
            raise _changed()

    def record(self, payment: Charge, **formulas: int | None) -> PrivacyRecord:
        """The privacy record of what was rewritten.

        Args:
            formulas: counts of the fields that a spreadsheet would compute.
        """
        settings, engine = self.settings, self.engine
        facts = RunFacts(
            claim=settings.claim(engine.prepared.mechanism.no_guarantee, len(self.columns)),
            base_epsilon=settings.epsilon,
            budgets={"input": self.budget},
            counts=self.tally.counts().model_copy(update={"n_rows": self.survey.rows, **formulas}),
            made_with=engine.made_with(),
            version=version(),
            parameters=engine.prepared.parameters,
        )
        return record(
            facts,
            audit=self.audit,
            code=code_hash(),
            columns=list(self.columns),
            release=payment.entry(),
            spent=self.spent.summary(),
        )


def progress_on_stderr(task: str, total: int, unit: str) -> Progress:
    """Progress on standard error: standard output may be the text."""
    return Progress(task, total, unit, stream=sys.stderr)


def _changed() -> LexveilError:
    return LexveilError("the input changed while it was read; nothing was released. Give a file that stays as it is")


class _Fingerprint:
    """Tells whether two passes read the same. Keyed with a random key, so that it identifies no text elsewhere."""

    KEY = secrets.token_bytes(32)

    def __init__(self) -> None:
        self.hash = hashlib.blake2b(key=self.KEY)

    def add(self, selected: SelectedChunk) -> None:
        chunk = selected.chunk
        for values in (*chunk.texts, chunk.subjects or ()):
            self.hash.update("\0".join("\1" if value is None else value for value in values).encode() + b"\2")

    def digest(self) -> bytes:
        return self.hash.digest()
