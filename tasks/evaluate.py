"""Score one run, what a task and an attacker get from its texts: private/**/documents.parquet -> evaluation/**.json.

Every data set is scored for itself. The clean texts are those of the run `none none 0.0`, which is evaluated like any
other: its scores are what the report compares the others with. What is learnt from, and in which order, is the same for
all runs, so that runs differ by their texts only.
"""

from __future__ import annotations

import tasks.io.blas  # noqa: F401  # isort: skip - before NumPy

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import RequestError
from tasks.evaluation.classifier import CLASSIFIERS, joined
from tasks.evaluation.evaluate import TARGET_OF, LeftOut, attack, entry, problem_of, shuffles_of, utility
from tasks.io import paths
from tasks.io.params import Params, load_params
from tasks.io.stage import stage_main
from tasks.io.tables import read_table, write_json
from tasks.privacy.rng import stream

STAGE = "evaluate"  # the name of its streams
KEPT = ["dataset", "doc_id", "split", "label", "attribute"]  # what rewriting leaves as it is
CLEAN = ("none", "none", 0.0)


def read_run(mechanism: str, strategy: str, epsilon: float) -> pa.Table:
    """The documents of one run, ordered by (dataset, doc_id).

    Raises:
        MissingArtifact: if it was not made.
    """
    made_by = "baseline" if mechanism == "none" else f"privatize@{mechanism}-{strategy}-{epsilon}"
    file = paths.private(mechanism, strategy, epsilon) / "documents.parquet"
    return read_table(file, made_by, [*KEPT, "text", "text_b"])


def by_dataset(clean: pa.Table, private: pa.Table) -> Iterator[tuple[str, pa.Table, list[str], list[str]]]:
    """Name, documents, clean texts and rewritten texts of each data set."""
    for dataset in sorted(clean.column("dataset").unique().to_pylist()):
        one, other = (table.filter(pc.equal(table.column("dataset"), dataset)) for table in (clean, private))
        texts = (joined(*(table.column(name).to_pylist() for name in ("text", "text_b"))) for table in (one, other))
        yield dataset, one, *texts


def evaluate(clean: pa.Table, private: pa.Table, params: Params) -> dict[str, Any]:
    """Utility and attack of every data set, by its name.

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
    settings = params.evaluation
    make = CLASSIFIERS[settings.classifier]
    results: dict[str, Any] = {}
    for dataset, documents, clean_texts, private_texts in by_dataset(clean, private):
        results[dataset] = {}
        for name, measure, max_classes in (("utility", utility, None), ("attack", attack, settings.max_classes)):
            target = TARGET_OF[name]
            splits, classes = (documents.column(column).to_pylist() for column in ("split", target))
            problem = problem_of(target, splits, classes, max_classes)
            if isinstance(problem, LeftOut):
                results[dataset][name] = {"left_out": problem.reason}
                continue
            rngs = [stream(params.seed, STAGE, dataset, target, str(number)) for number in range(settings.shuffles)]
            shuffles = shuffles_of(problem, rngs, settings.train_share)
            measured = measure(clean_texts, private_texts, problem, shuffles, make)
            results[dataset][name] = entry(problem, shuffles, measured)
    return results


def run(mechanism: str, strategy: str, epsilon: float, params: Params, out: Path) -> dict[str, Any]:
    """Write the scores of one run to ``out`` and return them.

    Raises:
        MissingArtifact: if the run or the clean baseline was not made.
        RequestError: if the two are not of the same documents.
    """
    private = read_run(mechanism, strategy, epsilon)
    clean = private if mechanism == "none" else read_run(*CLEAN)
    record = {
        "mechanism": mechanism,
        "strategy": strategy,
        "epsilon": epsilon,
        "classifier": params.evaluation.classifier,
        "shuffles": params.evaluation.shuffles,
        "datasets": evaluate(clean, private, params),
    }
    write_json(record, out)
    return record


def main() -> None:
    """Run the stage for the mechanism, strategy and base epsilon named on the command line."""
    usage = f"usage: python -m tasks.{STAGE} MECHANISM STRATEGY EPSILON, or none none 0.0"
    if len(sys.argv) != 4:
        raise RequestError(usage)
    mechanism, strategy = sys.argv[1:3]
    try:
        epsilon = float(sys.argv[3])
    except ValueError:
        raise RequestError(usage) from None
    made = run(mechanism, strategy, epsilon, load_params(), paths.evaluation(mechanism, strategy, epsilon))
    for dataset, one in made["datasets"].items():
        for name, result in one.items():
            if result["left_out"] is not None:
                print(f"{dataset}, {name}: left out, {result['left_out']}")
                continue
            scores = ", ".join(
                f"{setting} {score['macro_f1']['mean']:.3f}" for setting, score in result["scores"].items()
            )
            print(f"{dataset}, {name}: macro F1 {scores}; majority {result['majority']['macro_f1']:.3f}")


if __name__ == "__main__":
    stage_main(main)
