"""Rewrite the project's documents with one mechanism, strategy and noise setting, for the pipeline
stage ``privatize``.

The noise comes from the seed in params.yaml, so that the run can be repeated. It is an experiment,
and its record says so. A run of the pipeline stage is not a ``Run`` of ``lexveil.release.run``: the
stage ``plan_budgets`` has already counted the tokens and set the epsilon of each text, nothing is
charged, and the workers may be workers of Dask. Both kinds of run use the same workers, counts and
records.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.errors import LexveilError
from lexveil.base.levels import NoiseSetting
from lexveil.base.runtime.tables import PARQUET, atomic_directory, read_table, require, write_json
from lexveil.core.accounting.budgets import (
    SEGMENTATION_OF,
    Action,
    DocumentBudget,
    PerDocument,
    Policy,
)
from lexveil.core.accounting.operator_report import RunCounts
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.core.mechanisms.variants import base_of
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.io.artifacts.levels import epsilon_of
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.text_rows import FIELDS
from lexveil.io.config import MachineParams
from lexveil.io.execution.effort import foresee
from lexveil.io.execution.pool import ordered_map
from lexveil.io.execution.stage import Progress
from lexveil.io.formats.arrow_tables import ArrowRows
from lexveil.release.engine.batch import TOKEN_LOG as ENGINE_LOG
from lexveil.release.engine.batch import Batch
from lexveil.release.engine.counts import RewrittenChunk, Tally, merge_chunks
from lexveil.release.engine.engine import Engine, WordEngine
from lexveil.release.engine.records import record_of
from lexveil.release.engine.worker import BatchWorker, paired
from lexveil.release.preconditions import require_public_purposes
from lexveil.release.settings import UNCHANGED, Settings

# largest number of documents to rewrite at a time, which is also the number of rows of a row group
GROUP = 2_000
SHARE = 8  # smallest number of batches per worker, so that all workers end at about the same time
# number of perturbed tokens below which worker processes cost more than they save
SMALL_SET = 200_000

COLUMN_KEYS = tuple((name,) for name in FIELDS)
TextKey = tuple[str, str, str]  # data set, document and field, which identify a text in its plan

TOKEN_LOG = pa.schema(
    [(name, pa.string()) for name in ("dataset", "doc_id", "field")]
    + [
        ENGINE_LOG.field(name)
        for name in ("position", "class", "epsilon", "action", "n_words", "word_id")
    ]
)


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """The budgets of all texts for one strategy and one base epsilon, as planned before any noise
    is drawn.

    Attributes:
        epsilon: for each text, the epsilon of each of its tokens that spends any epsilon.
        budgets: document budget B by data set.
        n_perturbed: number of tokens to be perturbed in all texts.
    """

    epsilon: dict[TextKey, float]
    budgets: dict[str, float]
    n_perturbed: int

    @classmethod
    def load(cls, mechanism: str, strategy: str, noise: NoiseSetting) -> BudgetPlan:
        """Read the budget plan that the pipeline stage plan_budgets wrote for a mechanism, strategy
        and noise setting.

        Raises:
            MissingArtifactError: if the plan was not made.
        """
        plan = read_table(paths.plan(mechanism, strategy, noise), "plan_budgets").to_pydict()
        keys = zip(plan["dataset"], plan["doc_id"], plan["field"], strict=True)
        per_token = dict(zip(keys, plan["epsilon_per_token"], strict=True))
        return cls(
            per_token,
            dict(zip(plan["dataset"], plan["budget"], strict=True)),
            sum(plan["n_perturbed"]),
        )


@dataclass(frozen=True, slots=True)
class StageRun:
    """One experiment of the pipeline's grid (mechanism, strategy, noise): the worker that rewrites
    the documents, and the epsilon that the documents may spend.

    Attributes:
        engine: the rewriting engine; None for the baseline that leaves texts unchanged.
        worker: the worker that rewrites batches of documents.
        machine: settings of the computer, such as its number of processes.
        budgets: the budget of a document by data set, for the record.
        n_perturbed: the number of tokens that the plan perturbs.
        epsilon: for each text, the epsilon of each of its tokens that spends any epsilon; None if
            ``budget`` determines it.
        budget: the budget of each document; None if ``epsilon`` determines the epsilon of tokens.
    """

    engine: Engine | None
    worker: BatchWorker
    machine: MachineParams
    budgets: Mapping[str, float] = field(default_factory=dict)
    n_perturbed: int = 0
    epsilon: Mapping[TextKey, float] | None = None
    budget: DocumentBudget | None = None

    def batch(self, documents: pa.Table, first_row: int = 0) -> Batch:
        """Return documents as a batch for a worker: the texts, with the epsilon that each may
        spend.

        Raises:
            LexveilError: if the plan has no budget for a document.
        """
        keys = list(
            zip(
                *(documents.column(name).to_pylist() for name in ("dataset", "doc_id")), strict=True
            )
        )
        columns = [
            documents.column(name).cast(pa.large_string()).combine_chunks() for name in FIELDS
        ]
        batch = Batch(ArrowRows(columns), keys, first_row)
        if self.epsilon is None:
            return batch
        texts = (
            (*batch.keys[row], FIELDS[number])
            for row, number in zip(batch.document, batch.column, strict=True)
        )
        try:
            epsilon = np.array([self.epsilon[text] for text in texts], dtype=np.float64)
        except KeyError as missing:
            raise LexveilError(
                f"document {missing.args[0][1]} has no budget plan; run stage plan_budgets again"
            ) from None
        return replace(batch, part_epsilon=epsilon)

    def rewrite(
        self, documents: pa.Table
    ) -> Generator[tuple[pa.Table, RewrittenChunk], None, None]:
        """Rewrite documents in order, and yield them in groups of GROUP documents with their
        rewritten texts. The group size is fixed, so that the written files do not depend on the
        number of workers.
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

        rewrite = partial(self.worker.rewrite, budget=self.budget)
        yield from merge_chunks(paired(partial(ordered_map, rewrite, where=self.machine), work()))

    def record(self, counts: RunCounts) -> PrivacyRecord:
        """Return the privacy record of this experiment."""
        engine = self.engine
        settings = self.worker.settings
        made = dict[str, Any]()
        if engine is not None:
            made = {
                "made_with": engine.made_with(),
                "model": engine.model.reference(settings.of_words),
                "guarantee": engine.guarantee(engine.measurement()),
            }
        public = counts.public(n_rows=counts.n_documents)
        return record_of(settings, engine, public, document_budget=dict(self.budgets), **made)


def worker_of(engine: Engine, noise: NoiseSetting) -> BatchWorker:
    """Return the worker that rewrites the project's documents with an engine and a noise
    setting.
    """
    return replace(
        engine.worker(FIELDS),
        column_keys=COLUMN_KEYS,
        log=tuple(ENGINE_LOG.names),
        budget_name=str(noise),
    )


def clean_run(model: Model) -> StageRun:
    """Return the baseline experiment that leaves all texts unchanged."""
    worker = BatchWorker(UNCHANGED, None, FIELDS, COLUMN_KEYS)
    return StageRun(None, worker, model.configuration.machine.alone())


def planned_run(mechanism: str, strategy: str, noise: NoiseSetting, model: Model) -> StageRun:
    """Return an experiment of the grid at a base epsilon or a protection level, with the budgets
    that were planned for it.

    Raises:
        MissingArtifactError: if the plan or an artifact of an earlier stage is missing.
    """
    chosen = model.params.policy
    machine = model.configuration.machine
    base = epsilon_of(mechanism, strategy, noise)
    settings = Settings(
        mechanism=base_of(mechanism),
        strategy=strategy,
        spending=PerDocument(
            base_epsilon=base,
            average_words="data",
            max_token_epsilon=base if noise.is_level else None,
        ),
        seed=model.params.seed,
        policy=Policy.of(strategy, chosen.stopwords, chosen.punctuation, chosen.oov),
        keep_layout=False,
    )
    model = model.of_variant(mechanism)
    require_public_purposes(settings, model)
    engine = WordEngine(settings, model)
    # The record states the figures of the stage, so that another run can repeat them.
    require(model.path(paths.structure(SEGMENTATION_OF[strategy])), "measure_structure")
    plan = BudgetPlan.load(mechanism, strategy, noise)
    return StageRun(
        engine=engine,
        worker=worker_of(engine, noise),
        machine=machine.alone() if plan.n_perturbed < SMALL_SET else machine,
        budgets=plan.budgets,
        n_perturbed=plan.n_perturbed,
        epsilon=plan.epsilon,
    )


def token_log(documents: pa.Table, rewritten: RewrittenChunk) -> pa.Table:
    """Return the token log of some documents: one row per token with its class, epsilon and action
    (such as perturbed or kept), and no source word.
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
    """Return a table of the documents with their rewritten texts, and with counts of their tokens
    per document.
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
    """Rewrite all documents of the project in one experiment, write documents.parquet,
    tokens.parquet, metrics.json and record.json into the folder ``out``, and return the counts.
    """
    model = Model.load(Path(), OWN)
    is_clean = mechanism == "none"
    run = clean_run(model) if is_clean else planned_run(mechanism, strategy, noise, model)
    documents = load_documents()
    what = f"privatize {mechanism} {strategy} {noise}"
    if run.engine is not None:
        n = run.n_perturbed
        searched = run.engine.prepared.mechanism.searched
        foresee(
            f"{what}: {n:,} tokens",
            {"tokens rewritten": n, "distances searched": n * searched},
            "Use fewer documents, or lower embeddings.base_tokens",
            run.machine,
            run.machine.workers,
        )
    return write_outputs(run, documents, what, out)


def write_outputs(run: StageRun, documents: pa.Table, what: str, out: Path) -> RunCounts:
    """Rewrite documents, write the output files of the experiment into the folder ``out``, and
    return the counts.

    Args:
        what: the name of the experiment in progress messages.
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
