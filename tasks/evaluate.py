"""Score one run: private/**, embeddings, attackers, language_model -> evaluation/**.json and recovery/**.json.

Utility and attack evaluation of rewritten text: all metrics of every data set. The clean texts are those of the run
`none none 0.0`, which is evaluated like any other and is the baseline of the report. Training documents and their order
are the same for all runs, so that runs differ by their texts only.
"""

from __future__ import annotations

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lexveil import paths
from lexveil.artifacts.attackers import load_attackers
from lexveil.artifacts.calibrations import named_in_record
from lexveil.artifacts.evaluation_models import load_models
from lexveil.config import CLEAN, Params, load_params
from lexveil.errors import RequestError
from lexveil.evaluation.metrics import BY_NAME, METRICS
from lexveil.evaluation.metrics.base import DatasetTexts, Entry, LeftOut, Models
from lexveil.evaluation.metrics.membership import parts_of
from lexveil.levels import stage_name
from lexveil.recovery.measured import GUESSES
from lexveil.recovery.runs import measure_recovery
from lexveil.runtime.pool import ordered_map
from lexveil.runtime.stage import named_run, stage_main
from lexveil.runtime.tables import read_table, write_json

STAGE = "evaluate"
LARGE = 50_000_000  # bytes of documents from which on data sets are evaluated in parallel

KEPT = ["dataset", "doc_id", "split", "label", "attribute"]  # what rewriting leaves as it is


def read_run(mechanism: str, strategy: str, epsilon: float) -> pa.Table:
    """The documents of one run, ordered by (dataset, doc_id).

    Raises:
        MissingArtifact: if it was not made.
    """
    made_by = "baseline" if mechanism == "none" else stage_name("privatize", mechanism, strategy, epsilon)
    file = paths.private(mechanism, strategy, epsilon) / "documents.parquet"
    return read_table(file, made_by, [*KEPT, "text", "text_b"])


def evaluate(clean: pa.Table, private: pa.Table, params: Params, models: Models) -> dict[str, dict[str, Entry]]:
    """All metrics of every data set, by its name.

    Args:
        clean: documents as they were given: dataset, doc_id, split, label, attribute, text, text_b.
        private: the same, with rewritten texts, in the same order.

    Raises:
        RequestError: if the two are not of the same documents.
    """
    if not clean.select(KEPT).equals(private.select(KEPT)):
        raise RequestError(
            "the run and the clean baseline are not of the same documents; `lexveil run` makes anew what is out of date"
        )
    datasets = sorted(clean.column("dataset").unique().to_pylist())

    def texts_of(dataset: str, models: Models) -> DatasetTexts:
        given, rewritten = (table.filter(pc.equal(table.column("dataset"), dataset)) for table in (clean, private))
        return DatasetTexts(dataset, given, rewritten, params.evaluation, params.seed, models)

    def to_train() -> Iterator[DatasetTexts]:
        for dataset in datasets:
            texts = texts_of(dataset, Models())
            attackable = not isinstance(parts_of(texts.column("label")), LeftOut)
            # A worker need not have the folder of the attackers.
            yield replace(texts, models=Models(attackers=load_attackers(dataset))) if attackable else texts

    # The encoder and the language model stay here: they are large, and what they do takes less time.
    machine = params.machine if clean.nbytes >= LARGE and len(datasets) > 1 else params.machine.alone()
    with closing(ordered_map(trained_metrics, to_train(), machine)) as trained:
        return {
            dataset: entries | computed(texts_of(dataset, models), trained=False)
            for dataset, entries in zip(datasets, trained, strict=True)
        }


def trained_metrics(texts: DatasetTexts) -> dict[str, Entry]:
    """The metrics that train models on the texts of one data set, in whatever process."""
    return computed(texts, trained=True)


def computed(texts: DatasetTexts, *, trained: bool) -> dict[str, Entry]:
    """The metrics of one data set that are trained, or the others."""
    return {metric.name: metric.compute(texts) for metric in METRICS if metric.trained == trained}


def run(mechanism: str, strategy: str, epsilon: float, params: Params, out: Path) -> dict[str, Any]:
    """Write the scores of one run to ``out`` and return them.

    Raises:
        MissingArtifact: if the run, the clean baseline or one of the models was not made.
        RequestError: if the two are not of the same documents.
    """
    private = read_run(mechanism, strategy, epsilon)
    clean = private if mechanism == "none" else read_run(*CLEAN)
    settings = params.evaluation
    models = load_models(settings)
    record = {
        **named_in_record(mechanism, strategy, epsilon),
        "classifier": settings.classifier,
        "encoder": settings.encoder,
        "language_model": settings.language_model,
        "shuffles": settings.shuffles,
        "datasets": evaluate(clean, private, params, models),
    }
    write_json(record, out)
    return record


def main() -> None:
    """Run the stage for the mechanism, strategy and base epsilon, or level, named on the command line."""
    mechanism, strategy, epsilon = named_run(
        f"usage: python -m tasks.{STAGE} MECHANISM STRATEGY EPSILON, or none none 0.0"
    )
    params = load_params()
    record = run(mechanism, strategy, epsilon, params, paths.evaluation(mechanism, strategy, epsilon))
    for dataset, entries in record["datasets"].items():
        for name, entry in entries.items():
            left_out = entry["left_out"]
            print(f"{dataset}, {name}: {BY_NAME[name].summary(entry) if left_out is None else f'left out, {left_out}'}")
    if mechanism == "none":  # nothing is replaced
        return
    recovered = measure_recovery(mechanism, strategy, epsilon, params)
    write_json(recovered, paths.recovery(mechanism, strategy, epsilon))
    for band, entry in recovered["all"].items():
        shares = ", ".join(
            f"{name.replace('_', ' ')} {entry[name]['share']:.3f}"
            for name in ("unchanged", *GUESSES)
            if entry[name] is not None and entry["n"]
        )
        print(f"{band}: {entry['n']:,} words{f'; {shares}' if shares else ''}")


if __name__ == "__main__":
    stage_main(main, pandas=False)
