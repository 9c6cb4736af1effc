"""gensim reading the corpus itself (as the stage trains) against gensim fed by a Python iterator, and with two workers.

    uv run python -m benchmarks.training [--corpus FOLDER] [--documents N] [--repeat N] [--json FILE]

Same text, same settings, same run, one epoch; vocabulary building is left out, because it is the same in both. The
variants take turns and the best of each is kept, since others may use the machine. CPU seconds are of all threads.

There are two iterators: gensim's own over the segmented file, and the one whoever has no such file writes, which
tokenizes and segments each document in Python, epoch after epoch. To the file's time that of making it (stage
segment_corpus) is added once for the second comparison.
"""

from __future__ import annotations

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.per_sentence import tidy_gst
from benchmarks.segmented import ROOT, segmented_corpus
from lexveil import paths
from lexveil.config import EmbeddingParams, load_params
from lexveil.text.tokenize import sentences
from tasks import segment_corpus

FILE, LINES, DOCUMENTS = "corpus_file", "iterator", "segmenting iterator"
VARIANTS = [(FILE, 1), (LINES, 1), (FILE, 2), (LINES, 2), (DOCUMENTS, 1)]


class Segmenting:
    """Sentences of the sample, tokenized and cut by GST in Python, as often as they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.sample = folder / paths.SAMPLE
        self.known: list[dict[tuple[str, ...], float]] = []
        for name, size in (("bigrams", 2), ("trigrams", 3)):
            table = pq.read_table(folder / paths.COLLOCATIONS / f"{name}.parquet").to_pydict()
            grams = zip(*(table[f"{which}_word"] for which in ("first", "second", "third")[:size]), strict=True)
            self.known.append(dict(zip(grams, table["pmi_bits"], strict=True)))

    def __iter__(self) -> Iterator[list[str]]:
        for batch in pq.ParquetFile(self.sample).iter_batches(batch_size=500, columns=["text"]):
            for text in batch.column("text").to_pylist():
                for words in sentences(text):
                    ends = list(accumulate(tidy_gst(words, *self.known), initial=0))
                    yield ["_".join(words[start:end]) for start, end in pairwise(ends)]


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
            runs: dict[str, list[dict[str, float]]] = {named(*variant): [] for variant in VARIANTS}
            for _ in range(arguments.repeat):
                for variant in VARIANTS:
                    one = measure(corpus, settings, skip_gram, *variant)
                    runs[named(*variant)].append(one)
                    print(f"skip_gram {skip_gram}, {named(*variant)}: {one}", file=sys.stderr, flush=True)
            result["skip-gram" if skip_gram else "cbow"] = summary(runs, segmenting(corpus))
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")


def named(source: str, workers: int) -> str:
    """A variant in the output."""
    return f"{source}, {workers} worker{'s' * (workers > 1)}"


def segmenting(corpus: Path) -> dict[str, float]:
    """CPU and wall seconds of making the file anew from the numbered tokens."""
    cpu, wall = time.process_time(), time.perf_counter()
    with contextlib.chdir(corpus.parents[2]), contextlib.redirect_stdout(sys.stderr):
        sys.argv = ["segment_corpus", corpus.stem]
        segment_corpus.main()
    return {"cpu_s": time.process_time() - cpu, "s": time.perf_counter() - wall}


def measure(corpus: Path, settings: EmbeddingParams, skip_gram: bool, source: str, workers: int) -> dict[str, float]:
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
    text: dict[str, Any] = {"corpus_file": str(corpus)}
    if source != FILE:
        text = {"corpus_iterable": LineSentence(str(corpus)) if source == LINES else Segmenting(corpus.parents[2])}
    n_tokens = model.corpus_total_words
    cpu, wall = time.process_time(), time.perf_counter()
    model.train(**text, total_examples=model.corpus_count, total_words=n_tokens, epochs=1)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"tokens": n_tokens, "tokens_per_cpu_s": round(n_tokens / cpu), "tokens_per_s": round(n_tokens / wall)}


def summary(runs: dict[str, list[dict[str, float]]], made: dict[str, float]) -> dict[str, Any]:
    """The best of each variant, and how many times as fast the file is as each iterator with as many workers.

    Args:
        made: seconds of making the file, added to those of the epoch against the iterator that makes its own sentences.
    """
    rates = ("tokens_per_cpu_s", "tokens_per_s")
    best = {name: {rate: max(run[rate] for run in many) for rate in rates} for name, many in runs.items()}
    n_tokens = runs[named(FILE, 1)][0]["tokens"]
    for source, workers in VARIANTS:
        file, one = best[named(FILE, workers)], best[named(source, workers)]
        for rate in rates if source != FILE else ():
            seconds = n_tokens / file[rate] + (made[rate.removeprefix("tokens_per_")] if source == DOCUMENTS else 0)
            one[rate.replace("tokens", "file_is_times")] = round(n_tokens / one[rate] / seconds, 2)
    return {"segmenting": made, **best}


if __name__ == "__main__":
    main()
