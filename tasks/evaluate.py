"""Pipeline stage that evaluates one run of the grid: private/**, embeddings, attackers,
language_model -> evaluation/**.json and recovery/**.json.

The stage computes all metrics of utility and attack on every data set. The clean texts are the run
`none none 0.0`, which is evaluated like any other run and is the baseline of the report. Training
documents and their order are the same for all runs, so that runs differ by their texts only. If a
run was skipped, both files state the reason.
"""

from __future__ import annotations

import lexveil.base.runtime.blas  # isort: skip - before NumPy  # noqa: F401

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.levels import NoiseSetting, stage_name
from lexveil.base.runtime.tables import read_table, write_json
from lexveil.io.artifacts.levels import named_in_record, skipped_run
from lexveil.io.config import CLEAN, Params, load_configuration, load_params
from lexveil.io.execution.effort import foresee
from lexveil.io.execution.stage import named_run, stage_main
from lexveil.io.request import SENTENCES
from lexveil.lab.evaluation.evaluation_models import load_attackers, load_models
from lexveil.lab.evaluation.metrics import BY_NAME, METRICS
from lexveil.lab.evaluation.metrics.base import DatasetTexts, Entry, LeftOut, Models
from lexveil.lab.evaluation.metrics.membership import parts_of
from lexveil.lab.evaluation.recovery.runs import measure_recovery
from lexveil.lab.evaluation.recovery.sentence_runs import measure_sentences

LETTERS = 6  # mean number of letters of a word, including the space after it
# columns that rewriting does not change
KEPT = ["dataset", "doc_id", "split", "label", "attribute", "context"]


def read_run(mechanism: str, strategy: str, noise: NoiseSetting) -> pa.Table:
    """Read the rewritten documents of one run, ordered by (dataset, doc_id).

    Raises:
        MissingArtifactError: if the run was not made.
    """
    made_by = (
        "baseline" if mechanism == "none" else stage_name("privatize", mechanism, strategy, noise)
    )
    file = paths.private(mechanism, strategy, noise) / "documents.parquet"
    return read_table(file, made_by, [*KEPT, "text", "text_b"])


def evaluate(
    clean: pa.Table, private: pa.Table, params: Params, models: Models
) -> dict[str, dict[str, Entry]]:
    """Compute all evaluation metrics of one run, by data set.

    Args:
        clean: input documents: ``KEPT``, text, text_b.
        private: rewritten documents with the same columns, in the same order.

    Raises:
        RequestError: if ``clean`` and ``private`` have different documents.
    """
    if not clean.select(KEPT).equals(private.select(KEPT)):
        raise RequestError(
            "the run and the clean baseline have different documents; `lexveil run` renews "
            "what is out of date"
        )
    scores: dict[str, dict[str, Entry]] = {}
    for dataset in sorted(clean.column("dataset").unique().to_pylist()):
        given, rewritten = (
            table.filter(pc.equal(table.column("dataset"), dataset)) for table in (clean, private)
        )
        attackable = not isinstance(parts_of(given.column("label")), LeftOut)
        own = replace(models, attackers=load_attackers(dataset)) if attackable else models
        texts = DatasetTexts(dataset, given, rewritten, params.evaluation, params.seed, own)
        scores[dataset] = {metric.name: metric.compute(texts) for metric in METRICS}
    return scores


def main() -> None:
    """Run this stage of the DVC pipeline for the mechanism, strategy, and base epsilon or recovery
    level on the command line.

    Raises:
        MissingArtifactError: if the run, the clean baseline or one of the models was not made.
        RequestError: if the run and the baseline have different documents.
    """
    run = named_run("usage: python -m tasks.evaluate MECHANISM STRATEGY EPSILON, or none none 0.0")
    if skipped := skipped_run(*run):
        for file in (paths.evaluation(*run), paths.recovery(*run)):
            write_json(skipped.to_dict(), file)
        print(f"{skipped.name}: {skipped.skipped}")
        return
    params = load_params()
    private = read_run(*run)
    is_clean = run[0] == "none"
    settings = params.evaluation
    n_texts = private.num_rows
    n_words = (pc.sum(pc.utf8_length(private.column("text"))).as_py() or 0) / LETTERS
    named = min(
        1.0,
        (settings.max_texts or n_texts)
        * len(pc.unique(private.column("dataset")))
        / max(n_texts, 1),
    )
    work = {
        "texts scored": n_texts * settings.shuffles,
        "tokens named": 0 if is_clean else named * n_words,
    }
    what = f"evaluate: {n_texts:,} texts"
    way_out = "Lower evaluation.shuffles or evaluation.max_texts"
    foresee(what, work, way_out, load_configuration().machine)
    datasets = evaluate(
        private if is_clean else read_run(*CLEAN), private, params, load_models(settings)
    )
    record = {
        **named_in_record(*run),
        **{
            name: getattr(settings, name)
            for name in ("classifier", "encoder", "language_model", "shuffles")
        },
        "datasets": datasets,
    }
    write_json(record, paths.evaluation(*run))
    for dataset, entries in datasets.items():
        for name, entry in entries.items():
            left_out = entry["left_out"]
            print(
                f"{dataset}, {name}: "
                f"{BY_NAME[name].summary(entry) if left_out is None else f'left out, {left_out}'}"
            )
    if not is_clean:  # clean texts have no replaced words
        measure = measure_sentences if run[1] == SENTENCES else measure_recovery
        write_json(measure(*run, params), paths.recovery(*run))


if __name__ == "__main__":
    stage_main(main, pandas=False)
