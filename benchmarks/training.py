"""gensim reading the corpus itself (as the stage trains) against gensim fed by a Python iterator, and with two workers.

    uv run python -m benchmarks.training [--corpus FOLDER] [--documents N] [--repeat N] [--json FILE]

Same text, same settings, same run, one epoch; vocabulary building is left out, because it is the same in both. The
variants take turns and the best of each is kept, since others may use the machine. CPU seconds are of all threads.
"""

from __future__ import annotations

import tasks.io.blas  # noqa: F401  # isort: skip - before NumPy

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.segmented import ROOT, segmented_corpus
from tasks.io.params import EmbeddingParams, load_params

VARIANTS = {
    "corpus_file, 1 worker": (True, 1),
    "iterator, 1 worker": (False, 1),
    "corpus_file, 2 workers": (True, 2),
    "iterator, 2 workers": (False, 2),
}


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="folder of shards in C4's form; without it the embedded default")
    parser.add_argument("--documents", type=int, default=5_000, help="at most so many, chosen by hash")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    arguments = parser.parse_args()
    settings = load_params(ROOT / "params.yaml").embeddings
    result: dict[str, Any] = {"dimensions": settings.dimensions, "min_count": settings.min_count}
    with segmented_corpus(arguments.corpus, "gst", arguments.documents) as corpus:
        for skip_gram in (True, False):
            runs: dict[str, list[dict[str, float]]] = {name: [] for name in VARIANTS}
            for _ in range(arguments.repeat):
                for name, (by_file, workers) in VARIANTS.items():
                    runs[name].append(measure(corpus, settings, skip_gram, by_file, workers))
                    print(f"skip_gram {skip_gram}, {name}: {runs[name][-1]}", file=sys.stderr, flush=True)
            result["skip-gram" if skip_gram else "cbow"] = summary(runs)
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")


def measure(corpus: Path, settings: EmbeddingParams, skip_gram: bool, by_file: bool, workers: int) -> dict[str, float]:
    """Train one epoch; tokens per CPU second and per second of wall time."""
    from gensim.models import Word2Vec
    from gensim.models.word2vec import LineSentence

    model = Word2Vec(
        vector_size=settings.dimensions,
        window=settings.window,
        min_count=settings.min_count,
        negative=settings.negative,
        sg=int(skip_gram),
        workers=workers,
        seed=1,
    )
    model.build_vocab(corpus_file=str(corpus))
    source = {"corpus_file": str(corpus)} if by_file else {"corpus_iterable": LineSentence(str(corpus))}
    n_tokens = model.corpus_total_words
    cpu, wall = time.process_time(), time.perf_counter()
    model.train(**source, total_examples=model.corpus_count, total_words=n_tokens, epochs=1)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"tokens": n_tokens, "tokens_per_cpu_s": round(n_tokens / cpu), "tokens_per_s": round(n_tokens / wall)}


def summary(runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """The best of each variant, and how many times the iterator's rate it is at the same number of workers."""
    rates = ("tokens_per_cpu_s", "tokens_per_s")
    best = {name: {rate: max(run[rate] for run in many) for rate in rates} for name, many in runs.items()}
    for name, one in best.items():
        other = best[name.replace("corpus_file", "iterator")]
        one |= {rate.replace("tokens", "times_iterator"): round(one[rate] / other[rate], 2) for rate in rates}
        one |= {"times_1_worker_per_s": round(one["tokens_per_s"] / best["corpus_file, 1 worker"]["tokens_per_s"], 2)}
    return best


if __name__ == "__main__":
    main()
