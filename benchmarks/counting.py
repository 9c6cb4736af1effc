"""How fast and how large counting is, beside Python's Counter and gensim's Phrases, and how it grows.

    uv run python -m benchmarks.counting [--corpus FOLDER] [--megabytes 100] [--kenlm FOLDER] [--json FILE]

Every measurement runs in a fresh process of its own. CPU time and wall time are those of the whole process, imports
and worker processes included; memory is the largest resident size of the process, plus that of its largest worker
times the number of workers. Counter and Phrases get the same sentences from the project's tokenizer in Python.

--kenlm names the folder with lmplz and count_ngrams of KenLM. The source distribution of the package kenlm has them:
unpack it, `cmake -B build -DCMAKE_BUILD_TYPE=Release && make -C build lmplz count_ngrams` with Boost's headers and
program_options, thread and system libraries; the programs are in build/bin. They get the sentences as lines of a file,
whose making is not counted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpus import corpus_texts

ROOT = Path(__file__).resolve().parents[1]
C4_TOKENS = 1.1e9  # 2.5 M texts of C4, the corpus of the collocation paper
STEPS = (1, 2, 4, 8, 16)


def zipfian_texts(seed: int) -> Iterator[str]:
    """Endless texts: words by Zipf's law among a million, function words and marks as often as in English."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlcumwfgypbvk"))
    n_words = 1_000_000
    spelled = [
        "".join(letters[(rank // len(letters) ** np.arange(1 + int(math.log(rank + 1, 22)))) % 22])
        for rank in range(n_words)
    ]
    frequent = "the , of and to a in is for on with . that it was as at by be this".split()
    vocabulary = np.array(frequent + spelled, dtype=object)
    weights = 1 / (np.arange(len(vocabulary)) + 2.7)
    edges = np.cumsum(weights / weights.sum())
    while True:
        drawn = vocabulary[np.searchsorted(edges, rng.random(100_000)).clip(max=len(vocabulary) - 1)]
        cuts = np.cumsum(rng.integers(5, 35, 6_000))
        sentences = [" ".join(words) + "." for words in np.split(drawn, cuts[cuts < len(drawn)]) if len(words)]
        for start in range(0, len(sentences), 12):
            yield " ".join(sentences[start : start + 12])


def write_sample(texts: Iterator[str], n_bytes: int, out: Path) -> int:
    """Write texts of about ``n_bytes`` as the sample stage does; return how many bytes there were."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("doc_id", pa.string()), ("text", pa.string())])
    written = number = 0
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        waiting: list[tuple[str, str]] = []
        for text in texts:
            waiting.append((f"{number:032x}", text))
            number += 1
            written += len(text.encode())
            if len(waiting) == 5_000 or written >= n_bytes:
                writer.write_table(pa.table([list(column) for column in zip(*waiting, strict=True)], schema))
                waiting = []
            if written >= n_bytes:
                break
        if waiting:
            writer.write_table(pa.table([list(column) for column in zip(*waiting, strict=True)], schema))
    return written


# What runs in a process of its own. Each returns what it found, so that results can be compared.


def machine(folder: Path, options: dict[str, Any]) -> Any:
    """Limits of the stages."""
    from lexveil.config import MachineParams

    return MachineParams(
        memory_limit=options["memory_limit"],
        threads=options["threads"],
        workers=options["workers"],
        temp_directory=str(folder / "work"),
    )


def run_tokenize(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """The second half of sample_corpus."""
    from lexveil.collocations.sampling import tokenize

    files = folder / "tokens.parquet", folder / "words.parquet"
    return {"sentences": tokenize(folder / "sample.parquet", *files, machine(folder, options))}


def run_count(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """count_ngrams."""
    from lexveil.collocations.counting import count

    files = folder / "tokens.parquet", folder / "words.parquet", folder / "ngrams"
    return count(*files, options["min_count"], machine(folder, options))


def run_pmi(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """build_collocations."""
    from lexveil.collocations.scoring import build
    from lexveil.config import CollocationParams

    params = CollocationParams(min_count=options["min_count"])
    return build(folder / "ngrams", options["n_tokens"], folder / "collocations", params, machine(folder, options))


def sentences_of(folder: Path, clock: list[float]) -> Iterator[list[str]]:
    """Tokens of every sentence by the tokenizer in Python; adds the CPU seconds it takes to ``clock``."""
    import pyarrow.parquet as pq

    from lexveil.text.tokenize import sentences

    for batch in pq.ParquetFile(folder / "sample.parquet").iter_batches(batch_size=500, columns=["text"]):
        start = time.process_time()
        split = [sentence for text in batch.column("text").to_pylist() for sentence in sentences(text)]
        clock[0] += time.process_time() - start
        yield from split


def run_tokens_only(folder: Path, _options: dict[str, Any]) -> dict[str, Any]:
    """The tokenizer in Python and nothing else: what Counter and Phrases pay before they count."""
    return {"n_tokens": sum(map(len, sentences_of(folder, [0.0])))}


def run_counter(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Words, bigrams and trigrams in Counters; ``same``: without those of punctuation and connectors, as ours."""
    from collections import Counter

    from lexveil.text.function_words import CONNECTORS
    from lexveil.text.tokenize import has_letters

    class Counts(dict[str, bool]):
        def __missing__(self, word: str) -> bool:
            self[word] = found = has_letters(word) and word not in CONNECTORS
            return found

    counted, clock = Counts(), [0.0]
    words: Counter[str] = Counter()
    bigrams: Counter[tuple[str, str]] = Counter()
    trigrams: Counter[tuple[str, str, str]] = Counter()
    for sentence in sentences_of(folder, clock):
        words.update(sentence)
        runs = [sentence]
        if options["same"]:
            runs = [[]]
            for word in sentence:
                if counted[word]:
                    runs[-1].append(word)
                elif runs[-1]:
                    runs.append([])
        for run in runs:
            bigrams.update(pairwise(run))
            trigrams.update(zip(run, run[1:], run[2:], strict=False))
    least = options["min_count"]
    return {
        "n_tokens": words.total(),
        "n_words": len(words),
        "n_bigrams": sum(count >= least for count in bigrams.values()),
        "n_trigrams": sum(count >= least for count in trigrams.values()),
        "tokenize_cpu_s": clock[0],
    }


def run_phrases(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Phrases of gensim with its defaults and its connector words: bigrams only."""
    from gensim.models.phrases import ENGLISH_CONNECTOR_WORDS, Phrases

    clock = [0.0]
    model = Phrases(
        sentences_of(folder, clock), min_count=options["min_count"], connector_words=ENGLISH_CONNECTOR_WORDS
    )
    return {"n_vocab": len(model.vocab), "tokenize_cpu_s": clock[0]}


def run_write_lines(folder: Path, _options: dict[str, Any]) -> dict[str, Any]:
    """The sentences as KenLM reads them: one a line, tokens between spaces."""
    with (folder / "sentences.txt").open("w", encoding="utf-8") as file:
        file.writelines(" ".join(sentence) + "\n" for sentence in sentences_of(folder, [0.0]))
    return {}


def run_kenlm(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """One of KenLM's programs on trigrams; with as much memory as ours may take."""
    memory = options["memory_limit"].removesuffix("B")
    command = [options["program"], "-o", "3", "-S", memory, "-T", str(folder / "work" / "kenlm")]
    if Path(options["program"]).name == "count_ngrams":
        command += ["--write_vocab_list", str(folder / "kenlm.words")]
    else:
        command += ["--skip_symbols"]
    (folder / "work").mkdir(exist_ok=True)
    with (folder / "sentences.txt").open("rb") as text, (folder / "kenlm.out").open("wb") as out:
        done = subprocess.run(command, stdin=text, stdout=out, stderr=subprocess.PIPE, check=True, text=True)
    found = re.search(r"Unigram tokens (\d+) types (\d+)", done.stderr)
    return {} if found is None else {"n_tokens": int(found[1])}


RUNS: dict[str, Callable[[Path, dict[str, Any]], dict[str, Any]]] = {
    "tokenize": run_tokenize,
    "count": run_count,
    "pmi": run_pmi,
    "tokens_only": run_tokens_only,
    "counter": run_counter,
    "phrases": run_phrases,
    "write_lines": run_write_lines,
    "kenlm": run_kenlm,
}


def child(name: str, folder: Path, options: dict[str, Any]) -> None:
    """Run one measurement and print what it found and how large it grew."""
    largest = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            largest[0] = max(largest[0], tree_bytes(folder / "work"))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    stdout = os.dup(1)
    os.dup2(2, 1)  # progress is not the result
    found = RUNS[name](folder, options)
    sys.stdout.flush()
    os.dup2(stdout, 1)
    done.set()
    watcher.join()
    own, workers = (
        resource.getrusage(who).ru_maxrss * 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    if name == "kenlm":  # what grows is the program, not the process that starts it
        own = workers
    if name == "tokenize":  # a small text is tokenized without workers
        own += workers * options["workers"]
    print(json.dumps({"found": found, "memory": own, "disk": largest[0]}))


def tree_bytes(folder: Path) -> int:
    """Bytes of all files below a folder that may change meanwhile."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(where) / name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def measure(name: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Run one measurement in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.counting", "--child", name, str(folder), json.dumps(options)]
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"benchmarks.counting: {name} ended with {process.returncode}")
    return {
        "wall_s": time.monotonic() - start,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        **json.loads(printed.splitlines()[-1]),
    }


def ours(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """The three steps, one process each as DVC runs them: times added up, memory and disk of the largest."""
    steps = {"tokenize": measure("tokenize", folder, **options)}
    steps["count"] = measure("count", folder, **options)
    found = steps["count"]["found"]
    steps["pmi"] = measure("pmi", folder, n_tokens=found["n_tokens"], **options)
    for left in ("ngrams", "collocations", "work"):
        shutil.rmtree(folder / left, ignore_errors=True)
    return {
        "found": found | {"collocations": steps["pmi"]["found"]},
        **{key: sum(step[key] for step in steps.values()) for key in ("wall_s", "cpu_s")},
        **{key: max(step[key] for step in steps.values()) for key in ("memory", "disk")},
        "steps": {name: {key: step[key] for key in ("wall_s", "cpu_s", "memory")} for name, step in steps.items()},
    }


def exponent(sizes: list[float], values: list[float]) -> float:
    """The slope of log value over log size."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def show(name: str, one: dict[str, Any], beside: dict[str, Any] | None = None) -> None:
    """Print a line of the comparison; ratios are of ``one`` to ``beside``."""
    line = f"{name:34} {one['wall_s']:8.1f} s wall {one['cpu_s']:8.1f} s CPU {one['memory'] / 1e6:8.0f} MB"
    if beside:
        line += "   " + ", ".join(
            f"{one[key] / beside[key]:.1f}x {what}"
            for key, what in (("wall_s", "wall"), ("cpu_s", "CPU"), ("memory", "memory"))
        )
    print(line, flush=True)


def compare(folder: Path, options: dict[str, Any], peers: bool, kenlm: Path | None) -> dict[str, Any]:
    """Ours on some text, and Counter, Phrases and KenLM's programs on the same."""
    results = {"ours": ours(folder, options)}
    own = results["ours"]
    show(f"ours, min_count {options['min_count']}, with PMI", own)
    for name, step in own["steps"].items():
        show(f"  {name}", step)
    if peers:
        _beside_python(folder, options, results)
    if kenlm is None:
        return results
    measure("write_lines", folder)
    show("  count and pmi of ours, no tokenizing", counted := without(own, "tokenize"))
    for title, program in (("KenLM count_ngrams, trigrams", "count_ngrams"), ("KenLM lmplz, order 3", "lmplz")):
        one = measure("kenlm", folder, program=str(kenlm / program), **options)
        results[title] = one
        show(title, one, counted)
        if one["found"].get("n_tokens", own["found"]["n_tokens"]) != own["found"]["n_tokens"]:
            raise SystemExit(f"benchmarks.counting: {program} read {one['found']['n_tokens']:,} tokens")
    return results


def _beside_python(folder: Path, options: dict[str, Any], results: dict[str, Any]) -> None:
    """Counter and Phrases on the same text, and whether the counts agree."""
    own = results["ours"]
    results["tokens_only"] = measure("tokens_only", folder)
    show("tokenizing in Python alone", results["tokens_only"])
    for title, name, same in (
        ("Counter, the same n-grams", "counter", True),
        ("Counter, all n-grams", "counter", False),
        ("gensim Phrases, bigrams", "phrases", False),
    ):
        one = measure(name, folder, same=same, min_count=options["min_count"])
        results[title] = one
        show(title, one, own)
    for key in ("n_tokens", "n_words", "n_bigrams", "n_trigrams"):
        counted = results["Counter, the same n-grams"]["found"][key]
        if counted != own["found"][key]:
            raise SystemExit(f"benchmarks.counting: {key} is {own['found'][key]:,}, a Counter says {counted:,}")
    print("the counts agree with those of Counter")


def without(one: dict[str, Any], name: str) -> dict[str, Any]:
    """Time and memory of the steps of ours but one."""
    steps = [step for other, step in one["steps"].items() if other != name]
    return {key: sum(step[key] for step in steps) for key in ("wall_s", "cpu_s")} | {
        "memory": max(step["memory"] for step in steps)
    }


def grow(texts: Callable[[], Iterator[str]], megabytes: float, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Ours on 1/16 to 16/16 of ``megabytes`` of text, and what C4 would take."""
    points = []
    for step in STEPS:
        write_sample(texts(), int(megabytes * 1e6 * step / STEPS[-1]), folder / "sample.parquet")
        points.append(ours(folder, options))
        show(f"x{step}: {points[-1]['found']['n_tokens']:,} tokens", points[-1])
    tokens = [point["found"]["n_tokens"] for point in points]
    fitted: dict[str, Any] = {"points": points}
    for key, unit, scale in (("cpu_s", "CPU s", 1), ("wall_s", "s", 1), ("memory", "MB", 1e6), ("disk", "MB", 1e6)):
        values = [point[key] for point in points]
        power = exponent(tokens, values)
        # Small texts are mostly imports, which flattens the power law: the straight line is the cautious one.
        each, fixed = np.polyfit(tokens, values, 1)
        far = {
            "power": values[-1] * (C4_TOKENS / tokens[-1]) ** power,
            "line": float(fixed + each * C4_TOKENS),
        }
        fitted[key] = {"exponent": power, "fixed": float(fixed), "per_token": float(each), "c4": far}
        print(
            f"{key}: exponent {power:.2f}, or {fixed / scale:,.1f} {unit} and {each / scale * 1e6:.3g} {unit} for each "
            f"million tokens; at 1.1e9 tokens {far['power'] / scale:,.0f} by the power law, "
            f"{far['line'] / scale:,.0f} {unit} by the line"
        )
    memory = [point["memory"] for point in points]
    middle = (max(memory) + min(memory)) / 2
    print(
        f"memory from x1 to x16: {min(memory) / 1e6:.0f} to {max(memory) / 1e6:.0f} MB, "
        f"+-{(max(memory) - middle) / middle:.0%}"
    )
    return fitted


def main() -> None:
    """Parse, measure, print."""
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        child(sys.argv[2], Path(sys.argv[3]), json.loads(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="folder with *.json.gz shards; without it text is made up")
    parser.add_argument("--megabytes", type=float, default=100, help="text to compare on")
    parser.add_argument("--largest", type=float, help="megabytes of the x16 of the growth (default: --megabytes)")
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--min-count", type=int, default=1, help="1: every n-gram, as Counter does")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="without Counter and Phrases")
    parser.add_argument("--kenlm", type=Path, metavar="FOLDER", help="where lmplz and count_ngrams of KenLM are")
    parser.add_argument("--no-growth", dest="growth", action="store_false", help="compare, and leave the growth out")
    parser.add_argument("--seed", type=int, default=1, help="of text that is made up")
    parser.add_argument("--json", type=Path, help="write all figures here")
    asked = parser.parse_args()

    def texts() -> Iterator[str]:
        return corpus_texts(asked.corpus) if asked.corpus else zipfian_texts(asked.seed)

    options = {
        "memory_limit": asked.memory_limit,
        "threads": asked.threads,
        "workers": asked.threads,
        "min_count": asked.min_count,
    }
    with tempfile.TemporaryDirectory(prefix="lexveil-counting-") as name:
        folder = Path(name)
        written = write_sample(texts(), int(asked.megabytes * 1e6), folder / "sample.parquet")
        print(f"{written / 1e6:.0f} MB of text, {asked.threads} threads, memory limit {asked.memory_limit}", flush=True)
        results: dict[str, Any] = {
            "bytes": written,
            "options": options,
            "compare": compare(folder, options, asked.peers, asked.kenlm),
        }
        if asked.growth:
            results["growth"] = grow(texts, asked.largest or asked.megabytes, folder, options)
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
