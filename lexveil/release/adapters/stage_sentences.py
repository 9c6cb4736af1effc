"""Rewrite the project's documents by replacing them with sentences of a public sentence bank, for
one protection level of the pipeline stage ``privatize_sentences``.

The noise comes from the seed in params.yaml. There is no plan of budgets, because every text gets
the same number of sentences with the same epsilon.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.levels import NoiseSetting
from lexveil.core.accounting.operator_report import RunCounts
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.io.artifacts.levels import level_name
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.text_rows import FIELDS
from lexveil.io.request import SENTENCES, Request
from lexveil.release.adapters.stage import StageRun, worker_of, write_outputs
from lexveil.release.engine.sentences import SentenceEngine
from lexveil.release.settings import document_budget, resolve_settings


def sentence_run(
    mechanism: str, level: NoiseSetting, model: Model, documents: pa.Table
) -> StageRun:
    """Return an experiment that replaces texts by sentences of a sentence bank (strategy S5) at a
    protection level.
    """
    asked = {
        "mechanism": mechanism,
        "strategy": SENTENCES,
        "protection": level_name(level),
        "seed": model.params.seed,
    }
    settings = resolve_settings(Request.of(asked), model)
    engine = SentenceEngine(settings, model)
    has_pairs = bool(pc.any(pc.is_valid(documents.column("text_b"))).as_py())
    of_text = document_budget(settings, model)
    of_document = of_text.times(2 if has_pairs else 1)
    return StageRun(
        engine=engine,
        worker=worker_of(engine, level),
        machine=model.configuration.machine.alone(),
        budgets=dict.fromkeys(documents.column("dataset").unique().to_pylist(), of_document.total),
        budget=of_text.times(len(FIELDS)),
    )


def privatize_as_sentences(mechanism: str, level: NoiseSetting, out: Path) -> RunCounts:
    """Replace all documents of the project by sentences of the sentence bank, write
    documents.parquet, tokens.parquet, metrics.json and record.json into the folder ``out``, and
    return the counts.
    """
    documents = load_documents()
    run = sentence_run(mechanism, level, Model.load(Path(), OWN), documents)
    return write_outputs(run, documents, f"privatize {mechanism} {SENTENCES} {level}", out)
