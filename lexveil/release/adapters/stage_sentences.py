"""Rewrite the project's documents as sentences of its bank: what the stage ``privatize_sentences``
calls for one level.

As in other runs of the grid the noise comes from the seed in params.yaml. There is no plan of
budgets: every text spends epsilon on each of as many sentences.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.levels import NoiseSetting
from lexveil.core.accounting.operator_report import RunCounts
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.io.artifacts.levels import PER_TEXT, level_name
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.text_rows import FIELDS
from lexveil.io.request import SENTENCES, Request
from lexveil.release.adapters.stage import GROUP, batch_of, write_outputs
from lexveil.release.engine.batch import TOKEN_LOG
from lexveil.release.engine.counts import RewrittenChunk
from lexveil.release.engine.records import record_of
from lexveil.release.engine.sentences import SentenceEngine
from lexveil.release.settings import document_budget, resolve_settings


class SentenceRun:
    """A run of strategy S5 at a level of protection, with the worker that chooses the sentences."""

    def __init__(
        self, mechanism: str, level: NoiseSetting, model: Model, documents: pa.Table
    ) -> None:
        asked = {
            "mechanism": mechanism,
            "strategy": SENTENCES,
            "protection": level_name(level),
            "seed": model.params.seed,
        }
        settings = resolve_settings(Request.of(asked), model)
        self.documents = documents
        self.settings = settings
        self.engine = SentenceEngine(settings, model)
        self.budget = document_budget(settings, model).times(len(FIELDS))
        self.worker = replace(
            self.engine.worker(FIELDS),
            column_keys=tuple((field,) for field in FIELDS),
            log=tuple(TOKEN_LOG.names),
            budget_name=str(level),
        )

    def rewrite(
        self, documents: pa.Table
    ) -> Generator[tuple[pa.Table, RewrittenChunk], None, None]:
        """Rewrite documents in order. Yield GROUP documents at a time with the sentences that
        replace them.
        """
        for start in range(0, documents.num_rows, GROUP):
            group = documents.slice(start, GROUP)
            yield group, self.worker.rewrite(batch_of(group), self.budget)

    def record(self, counts: RunCounts) -> PrivacyRecord:
        """Return the privacy record of the run."""
        engine = self.engine
        epsilon = self.settings.base_epsilon or 0.0
        has_pairs = bool(pc.any(pc.is_valid(self.documents.column("text_b"))).as_py())
        spent = epsilon * PER_TEXT * (2 if has_pairs else 1)
        datasets = self.documents.column("dataset").unique().to_pylist()
        return record_of(
            self.settings,
            engine,
            counts.public(n_rows=counts.n_documents),
            document_budget=dict.fromkeys(datasets, spent),
            made_with=engine.made_with(),
            model=engine.model.reference(self.settings.of_words),
            guarantee=engine.guarantee(engine.measurement()),
        )


def privatize_as_sentences(mechanism: str, level: NoiseSetting, out: Path) -> RunCounts:
    """Write documents.parquet, tokens.parquet, metrics.json and record.json into folder ``out``;
    return the counts.
    """
    documents = load_documents()
    run = SentenceRun(mechanism, level, Model.load(Path(), OWN), documents)
    return write_outputs(run, documents, f"privatize {mechanism} {SENTENCES} {level}", out)
