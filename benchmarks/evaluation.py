"""What evaluating a run costs: utility, attacks, membership, similarity and perplexity of its texts.

    uv run python -m benchmarks.evaluation FILE.parquet … [--texts 10000] [--profile]

Equally many texts of each file (columns text, split, label, attribute; what a file lacks is left out), the default
parameters, the model en. They are rewritten once by TEM, S3; then the stages that evaluate run as processes of their
own: `train_attackers`, which is for all runs, `evaluate` of the clean texts, and `evaluate` of the run, as often as
--runs says. Processor seconds are those of whole processes, imports included. --profile shows where the time of the
last one goes.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lexveil
from benchmarks.table import print_table
from lexveil import paths
from lexveil.artifacts.embeddings import write_embedding
from lexveil.artifacts.language_models import write_language_model
from lexveil.artifacts.model_store import find
from lexveil.config import CLEAN
from lexveil.evaluation.kneser_ney import train
from lexveil.text.fast_tokenize import tokenize_texts

ROOT = Path(__file__).resolve().parents[1]
SEED = 1
RUN = ("tem", "S3", 10.0)
KEPT = ("split", "label", "attribute")
COLUMNS = {"stage": "stage", "cpu_s": "CPU s", "wall_s": "wall s", "memory_mb": "MB"}


def drawn(files: Sequence[Path], n_texts: int) -> pa.Table:
    """Documents as the baseline has them, equally many of each file."""
    rng, tables = np.random.default_rng(SEED), []
    for file in files:
        table = pq.read_table(file)
        rows = np.sort(rng.permutation(len(table))[: n_texts // len(files)])
        table = table.take(pa.array(rows))
        columns = {
            name: table.column(name).cast(pa.string()).combine_chunks()
            if name in table.schema.names
            else pa.nulls(len(table), pa.string())
            for name in (*KEPT, "text", "text_b")
        }
        ids = {"dataset": [file.stem] * len(table), "doc_id": [f"{row:08d}" for row in range(len(table))]}
        tables.append(pa.table({**ids, **columns}))
    return pa.concat_tables(tables).combine_chunks()


def make_project(folder: Path, clean: pa.Table) -> int:
    """What `evaluate` reads, but for the attackers; return how many tokens the clean texts have."""
    texts = clean.column("text").to_pylist()
    mechanism, strategy, epsilon = RUN
    done = lexveil.privatize(texts, mechanism=mechanism, strategy=strategy, epsilon=epsilon, seed=SEED, model="en")
    column = clean.schema.get_field_index("text")
    private = clean.set_column(column, "text", pa.array(done.values, pa.string()))
    for run, documents in ((CLEAN, clean), (RUN, private)):
        file = folder / paths.private(*run) / "documents.parquet"
        file.parent.mkdir(parents=True)
        pq.write_table(documents, file)
    embedding = folder / paths.embedding("word")
    embedding.parent.mkdir(parents=True)
    write_embedding(find("en").space("word"), embedding)
    cut = tokenize_texts(pa.array(texts, pa.large_string()))
    words = cut.words.to_pylist()
    ends = np.concatenate([[0], np.cumsum(cut.sentence_sizes)]).astype(np.int64)
    model = train(cut.ids.astype(np.int64), ends, len(words), 3)
    write_language_model(model, words, {}, folder / "artifacts/language_model")
    shutil.copy(ROOT / paths.PARAMS, folder / paths.PARAMS)
    return len(cut.ids)


def measured(folder: Path, *command: str, profile: bool = False) -> dict[str, object]:
    """Run a stage in a process of its own."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    python = [sys.executable, *(("-m", "cProfile", "-s", "cumulative") if profile else ()), "-m", *command]
    done = subprocess.run(
        python, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"benchmarks.evaluation: {' '.join(command)} ended with {done.returncode}\n{done.stderr[-2000:]}"
        )
    if profile:
        print("\n".join(line for line in done.stdout.splitlines() if "lexveil" in line or "import" in line)[:6000])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    stage = " ".join(command).removeprefix("tasks.")
    return {
        "stage": stage,
        "cpu_s": round(spent, 2),
        "wall_s": round(time.monotonic() - start, 2),
        "memory_mb": round(after.ru_maxrss / 1024),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the project, run the stages, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evaluation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=2, help="times that the run is evaluated")
    parser.add_argument("--profile", action="store_true", help="show where the time of one more goes")
    options = parser.parse_args(arguments)
    clean = drawn([file.absolute() for file in options.files], options.texts)
    with tempfile.TemporaryDirectory(prefix="lexveil-evaluation-") as name:
        folder = Path(name)
        n_tokens = make_project(folder, clean)
        print(f"{len(clean):,} texts, {n_tokens:,} tokens, of {len(options.files)} files", flush=True)
        run = [str(part) for part in RUN]
        rows = [
            measured(folder, "tasks.train_attackers"),
            measured(folder, "tasks.evaluate", *map(str, CLEAN)),
            *(measured(folder, "tasks.evaluate", *run) for _ in range(options.runs)),
        ]
        print_table(COLUMNS, rows)
        if options.profile:
            measured(folder, "tasks.evaluate", *run, profile=True)


if __name__ == "__main__":
    main()
