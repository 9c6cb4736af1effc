"""Train the attack models of membership inference, once for all runs:
private/none/none/0.0/documents.parquet -> attackers/.

They are trained on clean texts only (lexveil/evaluation/metrics/membership.py), and use nothing
from any run.
"""

from __future__ import annotations

import lexveil.runtime.blas  # isort: skip - before NumPy  # noqa: F401

import pyarrow.compute as pc

from lexveil import paths
from lexveil.artifacts.evaluation_models import write_attackers
from lexveil.config import CLEAN, load_params
from lexveil.evaluation.base import classified_texts
from lexveil.evaluation.metrics.membership import STREAM, Parts, attackers, parts_of
from lexveil.evaluation.ngrams import Ngrams
from lexveil.mechanisms.noise.streams import stream
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import read_table


def main() -> None:
    """Run the stage: write the models of every data set that can be attacked."""
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
        print(f"{dataset}: attack models of {len(parts.rows):,} texts")
    write_attackers(trained, paths.ATTACKERS)


if __name__ == "__main__":
    stage_main(main, pandas=False)
