r"""Tokens per CPU second and peak memory of every mechanism, in comparison with the per-word
implementation and the machine's own limit.

    uv run python -m benchmarks.mechanisms
    uv run python -m benchmarks.mechanisms --space artifacts/embeddings/word \
        --text artifacts/segmented/word.txt

Each mechanism runs in a process of its own, with one thread, in batches of the size that a run
uses; its time includes the noise and all other work. Lists of near words are computed once for each
V, as in `build_neighborhoods`, and the mechanisms that use them map them into memory; the time for
the lists is printed. Limits are measured in the same process, just before and after the mechanism.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import limits, material, per_word
from benchmarks.table import print_table
from lexveil.base.runtime.tables import write_json
from lexveil.core.embeddings.extent import largest_distance
from lexveil.core.embeddings.kernels.dot import processor_kind
from lexveil.core.embeddings.neighborhoods import NearTable
from lexveil.core.embeddings.screen import Screen
from lexveil.core.mechanisms.base import DRAW, MOST_NOISE
from lexveil.core.mechanisms.registry import MECHANISMS, Space, build_mechanism
from lexveil.core.mechanisms.tem import Tem
from lexveil.io.artifacts.neighborhoods import add_lists, key_of, open_lists

SIZES = (20_000, 50_000, 100_000)
EPSILONS = (1.0, 10.0, 50.0)
DIMENSIONS = 300
TOKENS = 1_000_000
SECONDS = (
    4.0  # time limit of noisy searches per mechanism and ε; faster mechanisms replace all tokens
)
# one search per token: measuring their speed needs no million tokens
NOISY = ("madlib", "mahalanobis", "vickrey", "rank_remap")
BY_LISTS = ("tem", "tem_context", "truncated_gumbel", "rank_remap")
ON_LISTS = [name for name, mechanism in MECHANISMS.items() if mechanism.may_lack_words]
SETTINGS: dict[str, dict[str, Any]] = {
    "truncated_gumbel": {"calibration": "paper"},  # the theorem covers none of these epsilons
    "rank_remap": {"enabled": True, "c": 0.5, "ranks": 32},
}
COLUMNS = {
    "n_words": "V",
    "mechanism": "mechanism",
    "epsilon": "ε",
    "mode": "noise of",
    "tokens": "tokens",
    "rate": "tokens/CPU-s",
    "limit": "limit",
    "of_limit": "of limit",
    "of_noise": "share of time for keys or noise",
    "limited_by": "limited by",
    "per_word_rate": "per word",
    "speed_up": "ratio",
    "tidy_rate": "per word, tidy noise",
    "tidy_speed_up": "ratio ",
    "beside_vectors_mb": "MB besides vectors",
}


def chunks(n: int, row_bytes: int) -> Iterator[slice]:
    """Yield batches of the size that ``rewrite`` gives to a mechanism."""
    size = -(-MOST_NOISE // (DRAW * row_bytes)) * DRAW
    for start in range(0, n, size):
        yield slice(start, start + size)


def run(
    mechanism: Any,
    ids: npt.NDArray[np.int64],
    epsilon: npt.NDArray[np.float64],
    rng: np.random.Generator,
    seconds: float,
) -> tuple[int, float, float]:
    """Replace tokens until none are left or ``seconds`` are over.

    Returns:
        the number of tokens, their CPU seconds, and the share of these seconds spent on drawing
            noise.
    """
    done = 0
    drawing = 0.0
    start = time.process_time()
    row_bytes = mechanism.noise(epsilon[:1], rng).nbytes
    for chunk in chunks(len(ids), row_bytes):
        begun = time.process_time()
        noise = mechanism.noise(epsilon[chunk], rng)
        drawing += time.process_time() - begun
        mechanism.replace(ids[chunk], epsilon[chunk], noise)
        done += len(ids[chunk])
        if time.process_time() - start > seconds:
            break
    spent = time.process_time() - start
    return done, spent, drawing / spent


def run_per_word(
    replace: per_word.PerWord, ids: npt.NDArray[np.int64], epsilon: float, seconds: float
) -> float:
    """Return the tokens per CPU second of the per-word implementation."""
    rng = np.random.default_rng(0)
    replace(int(ids[0]), epsilon, rng)
    done = 0
    start = time.process_time()
    for word in ids.tolist():
        replace(word, epsilon, rng)
        done += 1
        if time.process_time() - start > seconds and done >= 5:
            break
    return done / (time.process_time() - start)


def make(
    name: str,
    vectors: npt.NDArray[np.float32],
    orders: npt.NDArray[np.int32],
    near: NearTable | None = None,
) -> Any:
    """Build a new mechanism, so that state from one epsilon does not help the next."""
    inner = "madlib" if name == "rank_remap" else name
    own = {key: value for key, value in SETTINGS.items() if key == name}
    return build_mechanism(inner, Space(vectors, orders, near), own)


def limit_of(
    name: str, made: Any, vectors: Any, ids: Any, epsilon: Any, rng: np.random.Generator
) -> tuple[float, str]:
    """Return the largest number of tokens per second that the machine allows, and the operation
    that sets this limit.
    """
    n_words, dimensions = vectors.shape
    product = 2.0 * n_words * dimensions
    if name in ON_LISTS:
        return limits.words_of(rng) / 2, "generator"
    if isinstance(made, Tem):
        # Each proposal reads a sketch from a random position; a list counts as one proposal.
        return len(ids) * limits.random_rows(made.sketch.rows) / proposals_of(
            made, ids, epsilon
        ), "random rows"
    if name == "truncated_gumbel":  # one uniform number for each of its neighbours
        return limits.words_of(rng) / (1 + made.k_most), "generator"
    return limits.sgemm(dimensions) / product, "sgemm"


def proposals_of(made: Tem, ids: npt.NDArray[np.int64], epsilon: npt.NDArray[np.float64]) -> float:
    """Estimate, from some of the tokens, the number of proposals that all tokens take, plus one for
    each list that is read.
    """
    count = len(ids)
    some = np.arange(0, len(ids), max(1, len(ids) // 200))
    # A few words at a time, because all of them at once would be the largest memory of the process.
    law = np.concatenate(
        [
            np.exp(made.log_pmf(ids[few], epsilon[few]))[np.arange(len(few)), ids[few]]
            for few in np.array_split(some, -(-len(some) // 8))
        ]
    )
    plain = made.plain(ids[some], epsilon[some])
    # The word itself has weight 1, so its probability is one over the weight of all words.
    distances = made.near.lists(ids[some]).distances[:, np.minimum(made.shells, made.near.size - 1)]
    weights = np.exp(
        -epsilon[some, None] / 2 * np.minimum(distances, made.gamma(epsilon[some])[:, None])
    )
    listed = weights @ np.append(np.diff(made.shells), made.size)
    return float((np.where(plain, made.size, listed) * law + ~plain).mean() * count)


def measure(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all rows of one mechanism at one V, measured in this process."""
    name = spec["mechanism"]
    seconds = spec["seconds"]
    vectors = np.load(spec["vectors"], mmap_mode="r", allow_pickle=False)
    ids = np.load(spec["ids"], allow_pickle=False)
    near = open_lists(Path(spec["lists"]), spec["key"]) if "lists" in spec else None
    if name in NOISY:
        ids = ids[: len(ids) // 10]
    n_words, dimensions = vectors.shape
    orders = np.random.default_rng(0).permutation(n_words).astype(np.int32)[None]
    # Compile on a small vocabulary.
    small = make(name, np.ascontiguousarray(vectors[:300]), np.arange(300, dtype=np.int32)[None])
    for e in (0.001, 1.0, 100.0):
        run(small, np.arange(300), np.full(300, e), np.random.default_rng(0), 1.0)
    if name in NOISY and (kind := processor_kind()) >= 0:
        Screen(small.vectors, kind).nearest_k(np.ones((1, dimensions)), 1)
    limits.sgemm(dimensions)
    rows: list[dict[str, Any]] = []
    made: Any = None
    for epsilon in spec["epsilons"]:
        for mode in spec["modes"]:
            per_document = mode == "per document"
            budgets = (
                material.document_epsilons(len(ids), epsilon)
                if per_document
                else np.full(len(ids), float(epsilon))
            )
            rng = limits.generators()["experiment" if per_document else mode]()
            # Δmin and Δmax depend on the vocabulary alone, and take longer than the measured work.
            if made is None or name != "truncated_gumbel":
                made = make(name, vectors, orders, near)
            before, _ = (
                limit_of(name, made, vectors, ids[:1000], budgets, rng)
                if name in NOISY
                else (0.0, "")
            )
            done, spent, drawing = run(made, ids, budgets, rng, seconds)
            limit, by = limit_of(name, made, vectors, ids[:done], budgets, rng)
            limit = max(limit, before)
            rows.append(
                {
                    "n_words": n_words,
                    "dimensions": dimensions,
                    "mechanism": name,
                    "epsilon": epsilon,
                    "mode": mode,
                    "tokens": done,
                    "rate": done / spent,
                    "limit": limit,
                    "limited_by": by,
                    "of_limit": done / spent / limit,
                    "of_noise": drawing,
                }
            )
    # The largest memory so far; the per-word implementation runs after this line.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for row in rows:
        row["peak_mb"] = peak
        row["beside_vectors_mb"] = peak - spec["idle_mb"] - vectors.nbytes / 2**20
    for row in rows if spec["compare"] else ():
        if row["mode"] == "per document":
            continue
        parameters = {}
        if name == "truncated_gumbel":
            parameters["scale"] = float(made.scale(np.array([row["epsilon"]]))[0])
        plain = per_word.build(name, orders[0] if name in ON_LISTS else vectors, **parameters)
        row["per_word_rate"] = run_per_word(plain, ids, row["epsilon"], 0.5)
        row["speed_up"] = row["rate"] / row["per_word_rate"]
        if name == "madlib":
            tidy = per_word.madlib(vectors, per_word.tidy_noise)
            row["tidy_rate"] = run_per_word(tidy, ids, row["epsilon"], 0.5)
            row["tidy_speed_up"] = row["rate"] / row["tidy_rate"]
    return rows


def in_child(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run ``measure`` in a process of its own, with one thread."""
    threads = dict.fromkeys(
        ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    )
    command = [sys.executable, "-m", "benchmarks.mechanisms", "--child", json.dumps(spec)]
    done = subprocess.run(
        command, env=os.environ | threads, stdout=subprocess.PIPE, text=True, check=True
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def idle_memory() -> float:
    """Return the megabytes of a process that has only imported the modules of this benchmark."""
    code = (
        "import resource, benchmarks.mechanisms; "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    return float(
        subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the mechanisms, print the table, and write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mechanisms", description=__doc__)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=list(SIZES), metavar="V", help="vocabulary sizes"
    )
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS), metavar="E")
    parser.add_argument(
        "--mechanisms", nargs="+", default=[*MECHANISMS, "rank_remap"], metavar="NAME"
    )
    parser.add_argument(
        "--tokens", type=int, default=TOKENS, help=f"length of the text (default {TOKENS:,})"
    )
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="CPU seconds for each noisy search"
    )
    parser.add_argument(
        "--space", type=Path, help="folder of a trained space to use instead of made vectors"
    )
    parser.add_argument(
        "--text", type=Path, help="segmented text of that space to use instead of Zipfian tokens"
    )
    parser.add_argument(
        "--lists", type=Path, help="folder where lists of near words are kept for the next run"
    )
    parser.add_argument(
        "--no-compare", action="store_true", help="without the per-word implementations"
    )
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        json.dump(measure(json.loads(options.child)), sys.stdout)
        return
    rows: list[dict[str, Any]] = []
    idle = idle_memory()
    with tempfile.TemporaryDirectory() as scratch:
        for n_words in options.sizes:
            vectors = (
                material.space_vectors(options.space, n_words)
                if options.space
                else material.made_vectors(n_words, DIMENSIONS)
            )
            if vectors is None:
                print(f"V = {n_words:,}: {options.space} has fewer words; left out", flush=True)
                continue
            if options.text and options.space:
                ids = material.text_tokens(options.text, options.space, options.tokens, n_words)
            else:
                ids = material.zipf_tokens(options.tokens, n_words)
            files = {name: f"{scratch}/{name}.npy" for name in ("vectors", "ids")}
            np.save(files["vectors"], vectors)
            np.save(files["ids"], ids)
            print(
                f"V = {n_words:,} x {vectors.shape[1]}: {len(ids):,} tokens, "
                f"{len(np.unique(ids)):,} distinct",
                flush=True,
            )
            lists = {}
            if any(name in BY_LISTS for name in options.mechanisms):
                folder = options.lists or Path(scratch)
                key = key_of(vectors)
                lists = {"lists": str(folder / str(n_words)), "key": key}
                begun = time.process_time()
                add_lists(folder / str(n_words), vectors, key, n_words, largest_distance(vectors))
                print(
                    f"  lists of near words: {time.process_time() - begun:,.1f} CPU-s", flush=True
                )
            del vectors
            for name in options.mechanisms:
                modes = ["experiment"]
                if name in ON_LISTS:
                    modes.append("release")
                if name == "tem":
                    modes.append("per document")
                spec = (
                    {
                        "mechanism": name,
                        "epsilons": options.epsilons,
                        "modes": modes,
                        "seconds": options.seconds if name in NOISY else 120.0,
                        "compare": not options.no_compare,
                        "idle_mb": idle,
                    }
                    | files
                    | lists
                )
                rows += in_child(spec)
                print(
                    f"  {name}: "
                    + ", ".join(
                        f"{row['rate']:,.0f}"
                        for row in rows
                        if row["mechanism"] == name and row["n_words"] == n_words
                    ),
                    flush=True,
                )
    machine = {
        "cpu": platform.processor() or platform.machine(),
        "sgemm_gflops": limits.sgemm(DIMENSIONS) / 1e9,
        "copy_gb_per_s": limits.copy_bandwidth() / 1e9,
        **{
            f"{mode}_million_words_per_s": limits.words_of(generator()) / 1e6
            for mode, generator in limits.generators().items()
        },
    }
    print_table(COLUMNS, rows)
    print(
        ", ".join(
            f"{name} {value if isinstance(value, str) else f'{value:,.1f}'}"
            for name, value in machine.items()
        )
    )
    if options.json:
        write_json({"machine": machine, "rows": rows}, options.json)


if __name__ == "__main__":
    main()
