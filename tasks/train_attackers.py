"""Pipeline stage that trains the attack models of membership inference, once for all runs:
private/none/none/0.0/documents.parquet -> attackers/.

The attack models are trained on clean texts only (lexveil/lab/evaluation/metrics/membership.py),
and use nothing from any run.
"""

from __future__ import annotations

import lexveil.base.runtime.blas  # isort: skip - before NumPy  # noqa: F401

import pyarrow.compute as pc

from lexveil.base import paths
from lexveil.base.runtime.tables import read_table
from lexveil.core.language_models.base import classified_texts
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.io.config import CLEAN, load_params
from lexveil.io.execution.stage import stage_main
from lexveil.lab.evaluation.evaluation_models import write_attackers
from lexveil.lab.evaluation.metrics.membership import STREAM, Parts, attackers, parts_of
from lexveil.lab.evaluation.ngrams import Ngrams


def main() -> None:
    """Run this stage of the DVC pipeline: train and write the attack models of every data set that
    can be attacked.
    """
    params = load_params()
    clean = read_table(
        paths.private(*CLEAN) / "documents.parquet",
        "baseline",
        ["dataset", "label", "text", "text_b", "context"],
    )
    trained = {}
    for dataset in sorted(clean.column("dataset").unique().to_pylist()):
        documents = clean.filter(pc.equal(clean.column("dataset"), dataset))
        parts = parts_of(documents.column("label").to_pylist())
        if not isinstance(parts, Parts):
            continue
        counts = Ngrams.counted(classified_texts(documents))[1]
        rngs = [
            stream(params.seed, STREAM, dataset, str(number))
            for number in range(params.evaluation.shuffles)
        ]
        trained[dataset] = attackers(counts, parts, rngs)
        print(f"{dataset}: attack models trained on {len(parts.rows):,} texts")
    write_attackers(trained, paths.ATTACKERS)


if __name__ == "__main__":
    stage_main(main, pandas=False)
