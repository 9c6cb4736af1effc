"""What more processes and a Dask cluster of this machine bring, stage by stage, and that they change no byte.

    uv run python -m benchmarks.executors --corpus FOLDER [--megabytes 20] [--json FILE]

Every measurement runs in a fresh process. CPU time is that of all its processes, imports included. Parts are cut
smaller than the stages cut them, so that each worker has several: a corpus of this size would be done by the stage
itself. The vectors of the rewriting are random, 20,000 words of 100 dimensions; a tenth of the text is rewritten.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.corpus import corpus_texts

ROOT = Path(__file__).resolve().parents[1]
EXECUTORS = {"1 process": ("local", 1), "2 processes": ("local", 2), "Dask, 3 workers": ("dask", 3)}
WORDS, DIMENSIONS = 20_000, 100


def limits(folder: Path, executor: str, workers: int) -> Any:
    """Limits of the stages, the same for all."""
    from lexveil.config import MachineParams

    return MachineParams(
        memory_limit="2GB",
        threads=2,
        workers=workers,
        temp_directory=str(folder / "work"),
        executor="dask" if executor == "dask" else "local",
    )


def run_tokenize(folder: Path, out: Path, machine: Any) -> None:
    """The second half of sample_corpus."""
    from lexveil.collocations import sampling

    sampling.SMALL, sampling.BATCH = 0, 500
    sampling.tokenize(folder / "sample.parquet", out / "tokens.parquet", out / "words.parquet", machine)


def run_count(folder: Path, out: Path, machine: Any) -> None:
    """count_ngrams; several local workers are not used by it."""
    from lexveil.collocations import counting

    counting.SHARD_TOKENS = 2**18
    counting.count(folder / "tokens.parquet", folder / "words.parquet", out / "ngrams", 2, machine)


def run_segment(folder: Path, out: Path, machine: Any) -> None:
    """segment_corpus."""
    from lexveil.artifacts.collocation_tables import load_collocations
    from tasks.segment_corpus import segment_file

    with contextlib.chdir(folder):
        known = load_collocations()
    segment_file(folder / "tokens.parquet", folder / "words.parquet", out / "mst.txt", "mst", known, machine)


def run_rewrite(folder: Path, out: Path, machine: Any) -> None:
    """What privatize does to batches of documents."""
    import numpy as np
    import pyarrow.parquet as pq

    from lexveil.accounting.budgets import Policy
    from lexveil.accounting.vocabulary import Vocabulary
    from lexveil.mechanisms.registry import MECHANISMS
    from lexveil.privatization.engine.batch import Batch
    from lexveil.privatization.engine.rewrite import Components
    from lexveil.privatization.engine.worker import BatchWorker
    from lexveil.privatization.settings import Settings
    from lexveil.runtime.pool import ordered_map
    from lexveil.text.encode import Lexicon

    table = pq.read_table(folder / "words.parquet")
    order = np.argsort(-table.column("count").to_numpy(), kind="stable")[:WORDS]
    words = table.column("word").take(order).to_pylist()
    policy = Policy("perturb", "keep", "sample")
    vectors = np.random.default_rng(1).standard_normal((len(words), DIMENSIONS), dtype=np.float32)
    vocabulary = Vocabulary.of(words, vectors, policy)
    mechanism = MECHANISMS["madlib"](vocabulary.vectors)
    settings = Settings("madlib", "S1", 10.0, None, 1, policy, keep_layout=False)
    worker = BatchWorker(
        settings, Components(Lexicon.build("word", words, None), vocabulary, mechanism), budget_name="10.0"
    )
    texts = pq.read_table(folder / "sample.parquet").column("text").to_pylist()
    texts = texts[: len(texts) // 10]
    batches = (
        Batch(
            [[text] for text in part], [(str(first + i),) for i in range(len(part))], epsilon=np.full(len(part), 10.0)
        )
        for first in range(0, len(texts), 50)
        for part in [texts[first : first + 50]]
    )
    with (out / "private.txt").open("w", encoding="utf-8") as file:
        for done in ordered_map(worker.draw, batches, machine):
            file.writelines(text + "\n" for text in done.texts)


RUNS: dict[str, Callable[[Path, Path, Any], None]] = {
    "tokenize": run_tokenize,
    "count": run_count,
    "segment": run_segment,
    "rewrite": run_rewrite,
}


def child(name: str, folder: Path, out: Path, executor: str, workers: int) -> None:
    """Run one measurement; what the rest of the benchmark needs stays in ``out``."""
    RUNS[name](folder, out, limits(out, executor, workers))


def measure(name: str, folder: Path, out: Path, executor: str, workers: int) -> dict[str, Any]:
    """Run one measurement in a fresh process; its seconds and a hash of what it wrote."""
    out.mkdir()
    command = [sys.executable, "-m", "benchmarks.executors", "--child", name, str(folder), str(out)]
    start = time.monotonic()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen([*command, executor, str(workers)], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"benchmarks.executors: {name} ended with {process.returncode}")
    wall = time.monotonic() - start
    found = hashlib.sha256()
    for file in sorted(file for file in out.rglob("*") if file.is_file() and "work" not in file.parts):
        found.update(file.read_bytes())
    return {"wall_s": wall, "cpu_s": usage.ru_utime + usage.ru_stime, "sha256": found.hexdigest()}


def prepare(corpus: Path, megabytes: float, folder: Path) -> None:
    """Make what the stages read: a sample, and for the later ones its tokens, words and collocations."""
    from benchmarks.counting import write_sample
    from lexveil import paths
    from lexveil.collocations.counting import count
    from lexveil.collocations.scoring import build
    from lexveil.config import CollocationParams

    write_sample(corpus_texts(corpus), int(megabytes * 1e6), folder / "sample.parquet")
    machine = limits(folder, "local", 1)
    run_tokenize(folder, folder, machine)
    files = folder / "tokens.parquet", folder / "words.parquet", folder / "ngrams"
    totals = count(*files, 2, machine)
    build(folder / "ngrams", totals["n_tokens"], folder / paths.COLLOCATIONS, CollocationParams(), machine)


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--child"]:
        run, source, target, executor, n_workers = sys.argv[2:]
        child(run, Path(source), Path(target), executor, int(n_workers))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="lexveil-benchmark-") as scratch:
        folder = Path(scratch)
        prepare(arguments.corpus, arguments.megabytes, folder)
        for name in RUNS:
            results[name] = {}
            for title, (executor, workers) in EXECUTORS.items():
                result = measure(name, folder, folder / f"{name}-{executor}-{workers}", executor, workers)
                results[name][title] = result
                print(f"{name:10} {title:16} {result['wall_s']:8.1f} s wall {result['cpu_s']:8.1f} s CPU", flush=True)
            if len({result["sha256"] for result in results[name].values()}) != 1:
                raise SystemExit(f"benchmarks.executors: {name} gives other bytes elsewhere")
    print("the same bytes from all")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
