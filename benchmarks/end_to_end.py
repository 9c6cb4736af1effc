r"""Speed of `lexveil privatize` from JSON lines to JSON lines, as users run it: release mode,
ledger, record, token log.

    uv run python -m benchmarks.end_to_end [--corpus FOLDER] [--mechanisms tem madlib] \
        [--against CHECKOUT] [--profile]

A packaged model of V words is made in a data folder of its own: the most frequent words of the
text, with vectors in clusters (benchmarks/material.py). Every run is a process of its own with its
workers; the CPU time is summed over all of these processes, including imports and start. The first
run on the text also writes the files that a model needs once (lists of near words, epsilons of
levels), and has a row of its own; the other row has the medians of the later runs.

--against names another checkout of Lexveil with its environment: its runs alternate with ours, and
an experiment with a known seed must give the same bytes in both. --profile prints the share of one
process's time that each function of Lexveil takes.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import itertools
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq

from benchmarks.corpus import corpus_texts
from benchmarks.limits import sgemm
from benchmarks.material import made_vectors, zipf_tokens
from benchmarks.table import print_table
from lexveil.base.runtime.tables import write_json
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.text.encode import Lexicon, encode
from lexveil.io.artifacts.packaged_model import ModelContent, write_packaged

ROOT = Path(__file__).resolve().parents[1]
DIMENSIONS = 300
# megabytes of text by mechanism; SLOW for all others
MEGABYTES = {"tem": 40.0, "diffractor_geometric": 80.0, "diffractor_tem": 80.0}
SLOW = 1.0
AVERAGE_WORDS = 200.0  # average words of a document, by which ε is multiplied to get the budget
# invented words per word of the model; the surplus words are outside its vocabulary
MORE_WORDS = 1.2
# seconds between checks of memory; smaller processes (bytes) are left out
POLL = 0.05
SMALL_PROCESS = 20 * 2**20
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux's prctl
SAMPLE = 0.002  # seconds of CPU time between two samples of the profile
COLUMNS = {
    "mechanism": "mechanism",
    "code": "code",
    "run": "run",
    "tokens": "tokens",
    "perturbed": "perturbed",
    "cpu_s": "CPU s",
    "per_cpu_s": "tokens/CPU-s",
    "wall_s": "wall s",
    "per_s": "tokens/s",
    "load": "load",
    "resident_mb": "MB, of each process",
}


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout of Lexveil and the Python that runs it."""

    name: str
    folder: Path
    python: str


def made_texts(n_words: int, seed: int = 5) -> Iterator[str]:
    """Yield texts of more than ``n_words`` invented words with frequencies as 1/rank, and a full
    stop after every twelve words.
    """
    n_words = int(n_words * MORE_WORDS)
    letters = np.random.default_rng(seed).integers(97, 123, size=(n_words, 7), dtype=np.uint8)
    words = [row.tobytes().decode() for row in letters]
    for part in itertools.count():
        ids = zipf_tokens(24_000, n_words, seed + part).reshape(-1, 240).tolist()
        for text in ids:
            yield " ".join(
                " ".join(words[word] for word in text[start : start + 12]).capitalize() + "."
                for start in range(0, len(text), 12)
            )


def write_model(folder: Path, texts: Sequence[str], n_words: int) -> None:
    """Write a packaged model of the most frequent words of some texts."""
    found: Counter[str] = Counter()
    for start in range(0, len(texts), 2000):
        found.update(encode(texts[start : start + 2000], Lexicon.build("word", [], None)).words)
    kept = [(word, count) for word, count in found.most_common() if word.isalpha()][:n_words]
    if len(kept) < n_words:
        raise SystemExit(
            f"benchmarks.end_to_end: the text has only {len(kept):,} different words; give a "
            "larger --corpus"
        )
    vectors = made_vectors(n_words, DIMENSIONS)
    card = {
        "name": folder.name,
        "version": "1.0",
        "language": "en",
        "license": "CC0-1.0",
        "built": "2026-01-01",
    }
    lists: dict[str, Any] = {"sources": [], "cleaning": [], "known_faults": []}
    tables: dict[str, Any] = {"dropped": {}, "parameters": {}, "made_with": {}, "quality": {}}
    orders = np.stack([np.random.default_rng(seed).permutation(n_words) for seed in (1, 2)]).astype(
        np.int32
    )
    write_packaged(
        folder,
        {
            **card,
            **lists,
            **tables,
            "description": "of a benchmark",
            "average_words": AVERAGE_WORDS,
        },
        ModelContent(
            WordSpace([word for word, _ in kept], vectors, np.array([count for _, count in kept])),
            np.zeros(n_words),
            {"word": orders, "all": orders},
            {},
            "Made by a benchmark.\n",
        ),
    )


def write_texts(file: Path, texts: Sequence[str], megabytes: float) -> None:
    """Write JSON lines with the text and other columns."""
    size = 0
    with file.open("w", encoding="utf-8") as lines:
        for number, text in enumerate(texts):
            if size > megabytes * 1e6:
                break
            row = {"id": number, "text": text, "source": "benchmark", "stars": number % 5}
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            size += len(text.encode())


def arguments_of(
    source: Path, out: Path, mechanism: str, epsilon: float, workers: int, *more: str
) -> list[str]:
    """Return the arguments of `lexveil`; stop words are perturbed, so that nearly all tokens are
    perturbed.
    """
    fixed = ["--strategy", "S1", "--stopwords", "perturb", "--model", "benchmark"]
    given = ["--mechanism", mechanism, "--epsilon", str(epsilon), "--workers", str(workers)]
    return ["privatize", str(source), "-o", str(out), *fixed, *given, *more]


def run(code: Checkout, folder: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Run the command in a process of its own; return its seconds and the peak memory of each of
    its processes.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("LEXVEIL")
    }
    # with this setting, every process would compile all modules that it imports
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment |= {
        "LEXVEIL_HOME": str(folder / "home"),
        "PYTHONPATH": str(code.folder),
        "PWD": str(folder),
    }
    script = (
        f"import os, sys; os.chdir({str(folder)!r}); from lexveil.faces.cli.main import main; "
        "sys.exit(main())"
    )
    before = os.times()
    begin = time.perf_counter()
    log = folder / "log"
    process = os.posix_spawn(
        code.python,
        [code.python, "-c", script, *arguments],
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, one, str(log), os.O_WRONLY | os.O_CREAT, 0o600) for one in (1, 2)
        ],
    )
    resident = dict[int, int]()
    status = None
    while status is None:
        time.sleep(POLL)
        for one in _family(process):
            with contextlib.suppress(psutil.Error):
                resident[one.pid] = max(resident.get(one.pid, 0), one.memory_info().rss)
        done, ended = os.waitpid(process, os.WNOHANG)
        status = ended if done else None
    if status:
        raise SystemExit(
            f"benchmarks.end_to_end: {' '.join(arguments)}: "
            f"{log.read_text(encoding='utf-8')[-2000:]}"
        )
    wall = time.perf_counter() - begin
    wait_for_orphans()
    after = os.times()
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    largest = ", ".join(
        f"{size / 2**20:.0f}"
        for size in sorted(resident.values(), reverse=True)
        if size > SMALL_PROCESS
    )
    return {"wall_s": wall, "cpu_s": cpu, "load": os.getloadavg()[0], "resident_mb": largest}


def adopt_orphans() -> None:
    """Make this process the parent of processes whose parent ends before them, so that their time
    is counted.
    """
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def wait_for_orphans() -> None:
    """Wait for all processes that a run has left behind."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _family(process: int) -> list[psutil.Process]:
    """Return a process and the processes that it started."""
    try:
        first = psutil.Process(process)
        return [first, *first.children(recursive=True)]
    except psutil.Error:
        return []


def measure(
    codes: Sequence[Checkout], folder: Path, mechanism: str, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Alternate runs of all checkouts on the same text; return the first run, and the medians of
    the other runs.

    A short text is rewritten first, so that each checkout compiles its kernels.
    """
    source = folder / f"{mechanism}.jsonl"
    small = folder / "small.jsonl"
    found: dict[str, list[dict[str, Any]]] = {code.name: [] for code in codes}
    rows = []
    out = folder / "out.jsonl"
    for number in range(options.runs + 2):
        for code in codes:
            for file in folder.glob("out.jsonl*"):
                file.unlink()
            made = ("cache", "recovery") if number == 1 else ()
            for name in ("ledger", *made):
                shutil.rmtree(folder / "home" / name, ignore_errors=True)
            (folder / "home" / "ledger-anchor.json").unlink(missing_ok=True)
            given = source if number else small
            arguments = arguments_of(given, out, mechanism, options.epsilon, options.workers)
            result = run(code, folder, arguments)
            if number:
                found[code.name].append(result)
    counts = json.loads(out.with_name("out.jsonl.operator.json").read_text(encoding="utf-8"))[
        "counts"
    ]
    assert (
        pq.ParquetFile(out.with_name("out.jsonl.tokens.parquet")).metadata.num_rows
        == counts["n_tokens_in"]
    )
    for code in codes:
        first, *others = found[code.name]
        later = others[-1] | {
            key: statistics.median(one[key] for one in others)
            for key in ("wall_s", "cpu_s", "load")
        }
        for name, result in (("first", first), ("lists made", later)):
            row: dict[str, Any] = {"mechanism": mechanism, "code": code.name, "run": name}
            row |= {"tokens": counts["n_tokens_in"], "perturbed": counts["n_perturbed"], **result}
            row |= {
                "per_cpu_s": row["tokens"] / row["cpu_s"],
                "per_s": row["tokens"] / row["wall_s"],
            }
            rows.append(row)
    return rows


def check_same(
    codes: Sequence[Checkout], folder: Path, mechanism: str, options: argparse.Namespace
) -> None:
    """Check that an experiment gives the same texts, token log and counts in all checkouts."""
    hashes = set()
    for code in codes:
        for file in folder.glob("seeded.jsonl*"):
            file.unlink()
        out = folder / "seeded.jsonl"
        source = folder / "small.jsonl"
        run(
            code,
            folder,
            arguments_of(source, out, mechanism, options.epsilon, options.workers, "--seed", "7"),
        )
        tokens = pq.read_table(f"{out}.tokens.parquet").to_pylist()
        counts = json.loads(Path(f"{out}.operator.json").read_text(encoding="utf-8"))["counts"]
        hashes.add(
            hashlib.sha256(out.read_bytes() + json.dumps([tokens, counts]).encode()).hexdigest()
        )
    if len(hashes) != 1:
        raise SystemExit(f"benchmarks.end_to_end: {mechanism}: another checkout gives other bytes")
    print(f"{mechanism}: the same bytes from {len(codes)} checkouts", flush=True)


def profile(folder: Path, mechanism: str, options: argparse.Namespace) -> None:
    """Print the CPU time of a run in this process, by function.

    Python handles a signal only after compiled code returns, so a sample counts for all the time
    since the previous sample.
    """
    from lexveil.faces.cli.main import main as lexveil

    seen: Counter[tuple[str, str]] = Counter()
    last = time.process_time_ns()

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal last
        del number
        now = time.process_time_ns()
        since = now - last
        last = now
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            if module.startswith("lexveil"):
                seen[module, frame.f_code.co_qualname] += since
                return
            frame = frame.f_back
        seen["other", ""] += since

    for file in folder.glob("out.jsonl*"):
        file.unlink()
    os.environ["LEXVEIL_HOME"] = str(folder / "home")
    os.chdir(folder)
    sys.argv = [
        "lexveil",
        *arguments_of(
            folder / f"{mechanism}.jsonl", folder / "out.jsonl", mechanism, options.epsilon, 1
        ),
    ]
    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE, SAMPLE)
    try:
        lexveil()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    total = sum(seen.values())
    modules: Counter[str] = Counter()
    for (module, _), count in seen.items():
        modules[module] += count
    print(f"{mechanism}: {total / 1e9:.1f} CPU-s of one process")
    for module, count in modules.most_common(18):
        inside = [
            f"{name} {n / total:.1%}" for (one, name), n in seen.most_common() if one == module
        ][:4]
        print(f"  {count / total:6.1%}  {module}: {', '.join(inside)}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the checkouts and print the table."""
    adopt_orphans()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--corpus", type=Path, help="folder of shards in C4's form; else texts of invented words"
    )
    parser.add_argument(
        "--mechanisms", nargs="+", default=["diffractor_geometric", "tem", "madlib"], metavar="NAME"
    )
    parser.add_argument("--words", type=int, default=50_000, help="of the vocabulary")
    parser.add_argument("--epsilon", type=float, default=10.0)
    parser.add_argument(
        "--megabytes",
        type=float,
        help="megabytes of text; default: a size that suits the mechanism",
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--against", type=Path, help="another checkout, with a .venv")
    parser.add_argument("--profile", action="store_true", help="only say where the time goes")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    codes = [Checkout("this", ROOT, sys.executable)]
    if options.against:
        folder = options.against.resolve()
        codes.insert(0, Checkout("other", folder, str(folder / ".venv" / "bin" / "python")))
    sizes = {name: options.megabytes or MEGABYTES.get(name, SLOW) for name in options.mechanisms}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="lexveil-benchmark-") as name:
        folder = Path(name)
        source = corpus_texts(options.corpus) if options.corpus else made_texts(options.words)
        texts = list[str]()
        size = 0
        for text in source:
            texts.append(text)
            size += len(text)
            if size > max(*sizes.values(), 20.0) * 1e6:
                break
        write_model(folder / "home" / "models" / "benchmark", texts, options.words)
        write_texts(folder / "small.jsonl", texts, 0.2)
        for mechanism, megabytes in sizes.items():
            write_texts(folder / f"{mechanism}.jsonl", texts, megabytes)
            if options.profile:
                profile(folder, mechanism, options)
                continue
            if len(codes) > 1:
                check_same(codes, folder, mechanism, options)
            rows += measure(codes, folder, mechanism, options)
            print_table(COLUMNS, rows)
    if rows:
        limit = sgemm(DIMENSIONS) / 1e9
        print(f"float32 matrix product: {limit:,.0f} GFLOP/s per core, {os.cpu_count()} cores")
    if options.json and rows:
        write_json({"sgemm_gflops": limit, "rows": rows}, options.json)


if __name__ == "__main__":
    main()
