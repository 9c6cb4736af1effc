"""Rewrite the project's documents by their budget plans: what the stage ``privatize`` calls for one
cell of the grid.

The noise comes from the seed in params.yaml, so that the run can be repeated: an experiment, and
recorded as one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.errors import LexveilError
from lexveil.base.levels import NoiseSetting
from lexveil.base.runtime.tables import PARQUET, atomic_directory, read_table, require, write_json
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Action, PerDocument, Policy
from lexveil.core.accounting.operator_report import RunCounts
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.core.mechanisms.variants import base_of
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.io.artifacts.levels import epsilon_of
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.text_rows import FIELDS
from lexveil.io.execution.effort import foresee
from lexveil.io.execution.pool import ordered_map
from lexveil.io.execution.stage import Progress
from lexveil.io.formats.arrow_tables import ArrowRows
from lexveil.release.engine.batch import TOKEN_LOG as ENGINE_LOG
from lexveil.release.engine.batch import Batch
from lexveil.release.engine.counts import RewrittenChunk, Tally, merge_chunks
from lexveil.release.engine.engine import WordEngine
from lexveil.release.engine.records import record_of
from lexveil.release.engine.worker import BatchWorker, paired
from lexveil.release.preconditions import require_public_purposes
from lexveil.release.settings import UNCHANGED, Settings

GROUP = 2_000  # documents rewritten at a time, at most, and of a row group of what is written
SHARE = 8  # batches a worker is to have at least, so that all end at about the same time
# tokens to be perturbed below which worker processes cost more than they save; more never hurt
SMALL_SET = 200_000

TextKey = tuple[str, str, str]  # data set, document, field: what names a text in its plan

TOKEN_LOG = pa.schema(
    [(name, pa.string()) for name in ("dataset", "doc_id", "field")]
    + [
        ENGINE_LOG.field(name)
        for name in ("position", "class", "epsilon", "action", "n_words", "word_id")
    ]
)


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """The budgets of one strategy and base epsilon.

    Attributes:
        epsilon: the epsilon of each token that pays, by text.
        budgets: document budget B by data set.
        n_perturbed: tokens to be perturbed in all texts.
    """

    epsilon: dict[TextKey, float]
    budgets: dict[str, float]
    n_perturbed: int

    @classmethod
    def load(cls, mechanism: str, strategy: str, noise: NoiseSetting) -> BudgetPlan:
        """Read the plan of a run that the stage plan_budgets wrote.

        Raises:
            MissingArtifactError: if it was not made.
        """
        plan = read_table(paths.plan(mechanism, strategy, noise), "plan_budgets").to_pydict()
        keys = zip(plan["dataset"], plan["doc_id"], plan["field"], strict=True)
        per_token = dict(zip(keys, plan["epsilon_per_token"], strict=True))
        return cls(
            per_token,
            dict(zip(plan["dataset"], plan["budget"], strict=True)),
            sum(plan["n_perturbed"]),
        )


class StageRun:
    """One cell of the grid, at a base epsilon or a level: the worker that rewrites its documents,
    and their budgets.
    """

    def __init__(self, mechanism: str, strategy: str, noise: NoiseSetting, model: Model) -> None:
        self.machine = model.configuration.machine
        components = None
        self.settings, self.engine, self.plan = UNCHANGED, None, BudgetPlan({}, {}, 0)
        if mechanism != "none":
            chosen = model.params.policy
            policy = Policy.of(strategy, chosen.stopwords, chosen.punctuation, chosen.oov)
            base = epsilon_of(mechanism, strategy, noise)
            model = model.of_variant(mechanism)
            spending = PerDocument(
                base_epsilon=base,
                average_words="data",
                max_token_epsilon=base if noise.is_level else None,
            )
            seed = model.params.seed
            self.settings = Settings(
                base_of(mechanism), strategy, spending, seed, policy, keep_layout=False
            )
            require_public_purposes(self.settings, model)
            self.engine = WordEngine(self.settings, model)
            # The record says what the stage measured, or no run repeats it.
            require(model.path(paths.structure(SEGMENTATION_OF[strategy])), "measure_structure")
            self.plan = BudgetPlan.load(mechanism, strategy, noise)
            components = self.engine.worker().components
        column_keys = tuple((field,) for field in FIELDS)
        self.worker = BatchWorker(
            self.settings, components, FIELDS, column_keys, budget_name=str(noise)
        )
        if self.plan.n_perturbed < SMALL_SET:
            self.machine = self.machine.alone()

    def batch(self, documents: pa.Table, first_row: int = 0) -> Batch:
        """Return documents as a batch for a worker: the texts and their budgets.

        Raises:
            LexveilError: if the plan has no budget for a document.
        """
        batch = batch_of(documents, first_row)
        if self.engine is None:
            return batch
        texts = (
            (*batch.keys[row], FIELDS[field])
            for row, field in zip(batch.document, batch.column, strict=True)
        )
        try:
            epsilon = np.array([self.plan.epsilon[text] for text in texts], dtype=np.float64)
        except KeyError as missing:
            raise LexveilError(
                f"document {missing.args[0][1]} has no budget plan; run stage plan_budgets again"
            ) from None
        return replace(batch, part_epsilon=epsilon)

    def rewrite(
        self, documents: pa.Table
    ) -> Generator[tuple[pa.Table, RewrittenChunk], None, None]:
        """Rewrite documents in order. Yield GROUP documents at a time with their rewritten texts,
        so that the files do not show any other division.
        """
        alone = self.machine == self.machine.alone()
        size = (
            GROUP
            if alone
            else max(1, min(GROUP, documents.num_rows // (SHARE * self.machine.workers)))
        )

        def work() -> Iterator[tuple[pa.Table | None, Batch]]:
            for start in range(0, documents.num_rows, GROUP):
                group = documents.slice(start, GROUP)
                for first in range(0, group.num_rows, size):
                    is_last = first + size >= group.num_rows
                    yield group if is_last else None, self.batch(group.slice(first, size), first)

        yield from merge_chunks(
            paired(partial(ordered_map, self.worker.rewrite, where=self.machine), work())
        )

    def record(self, counts: RunCounts) -> PrivacyRecord:
        """Return the privacy record of the run."""
        engine = self.engine
        made = dict[str, Any]()
        if engine is not None:
            made = {
                "made_with": engine.made_with(),
                "model": engine.model.reference(self.settings.strategy),
                "guarantee": engine.guarantee(engine.measurement()),
            }
        public = counts.public(n_rows=counts.n_documents)
        return record_of(self.settings, engine, public, document_budget=self.plan.budgets, **made)


def batch_of(documents: pa.Table, first_row: int = 0) -> Batch:
    """Return documents as a batch for a worker: the texts, without budgets."""
    keys = list(
        zip(*(documents.column(name).to_pylist() for name in ("dataset", "doc_id")), strict=True)
    )
    columns = [documents.column(name).cast(pa.large_string()).combine_chunks() for name in FIELDS]
    return Batch(ArrowRows(columns), keys, first_row)


def token_log(documents: pa.Table, rewritten: RewrittenChunk) -> pa.Table:
    """Return the log of the tokens of some documents: the class, epsilon and action of each token;
    no source word.
    """
    tokens = rewritten.tokens
    names = {
        name: documents.column(name).take(tokens.column("row")) for name in ("dataset", "doc_id")
    }
    names["field"] = tokens.column("column").cast(pa.string())
    return pa.table(
        [names[n] if n in names else tokens.column(n) for n in TOKEN_LOG.names], schema=TOKEN_LOG
    )


def private_documents(documents: pa.Table, rewritten: RewrittenChunk) -> pa.Table:
    """Return a table of the documents with their rewritten texts and with the totals of their
    tokens.
    """
    tokens = rewritten.tokens
    n = documents.num_rows
    row, words_out = (tokens.column(name).to_numpy() for name in ("row", "n_words"))
    is_kept = tokens.column("action").combine_chunks().indices.to_numpy() == Action.KEPT.value

    def total(weights: Any = None) -> pa.Array:
        return pa.array(np.bincount(row, weights=weights, minlength=n).astype(np.int64))

    columns = {name: documents.column(name) for name in ("dataset", "doc_id", "split")}
    columns |= {
        name: text.cast(pa.string())
        for name, text in zip(FIELDS, rewritten.texts.columns, strict=True)
    }
    columns |= {name: documents.column(name) for name in ("label", "attribute", "context")}
    columns |= {
        "n_tokens_in": total(),
        "n_tokens_out": total(words_out > 0),
        "n_words_out": total(words_out),
    }
    return pa.table(
        {**columns, "epsilon_spent": pa.array(rewritten.spent), "n_unprotected": total(is_kept)}
    )


def privatize_documents(mechanism: str, strategy: str, noise: NoiseSetting, out: Path) -> RunCounts:
    """Write documents.parquet, tokens.parquet, metrics.json and record.json into folder ``out``;
    return the counts.
    """
    run = StageRun(mechanism, strategy, noise, Model.load(Path(), OWN))
    documents = load_documents()
    if run.engine is not None:
        searched = run.engine.prepared.mechanism.searched
        n = run.plan.n_perturbed
        work = {"tokens rewritten": n, "distances searched": n * searched}
        what = f"privatize {mechanism} {strategy} {noise}: {n:,} tokens"
        way_out = "Bring fewer documents"
        foresee(
            what,
            work,
            f"{way_out}, or lower embeddings.base_tokens",
            run.machine,
            run.machine.workers,
        )
    return write_outputs(run, documents, f"privatize {mechanism} {strategy} {noise}", out)


class Rewriting(Protocol):
    """A run of the stage, which rewrites documents group by group, and describes itself for the
    record.
    """

    def rewrite(
        self, documents: pa.Table
    ) -> Generator[tuple[pa.Table, RewrittenChunk], None, None]:
        """Yield groups of documents with their rewritten texts."""

    def record(self, counts: RunCounts) -> PrivacyRecord:
        """Return the privacy record."""


def write_outputs(run: Rewriting, documents: pa.Table, what: str, out: Path) -> RunCounts:
    """Write the outputs of a run for some documents into folder ``out``, and return the counts.

    Args:
        what: the name of the run, for its progress.
    """
    tally = Tally()
    progress = Progress(what, documents.num_rows, "documents")
    with (
        atomic_directory(out) as folder,
        ExitStack() as files,
        closing(run.rewrite(documents)) as groups,
    ):
        writers: dict[str, pq.ParquetWriter] = {}
        for group, rewritten in groups:
            tables = {
                "documents": private_documents(group, rewritten),
                "tokens": token_log(group, rewritten),
            }
            for name, table in tables.items():
                if name not in writers:
                    writer = pq.ParquetWriter(folder / f"{name}.parquet", table.schema, **PARQUET)
                    writers[name] = files.enter_context(writer)
                writers[name].write_table(table)
            tally.merge(rewritten.tally)
            progress.advance(group.num_rows, len(rewritten.tokens))
        progress.finish()
        files.close()
        counts = tally.counts()
        write_json(counts.to_dict(), folder / "metrics.json")
        write_json(run.record(counts).to_dict(), folder / "record.json")
    return counts
