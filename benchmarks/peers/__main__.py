"""Lexveil and the public implementations of the same mechanisms, in one run on the same words,
vectors, ε and thread.

    uv run python -m benchmarks.peers [--env DIR] [--peers mldp-text dp-diffractor] [--json FILE]

pip installs the peers from the package index into an environment of their own, which stays for the
next run. Each mechanism runs in a process of its own. Unknown words are 3 % of the text. The audit
treats the peer as a black box: it draws replacements of a few words of a small vocabulary and
searches for a privacy loss above the claim. The audit can prove a violation; a pass only means that
the audit found none.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from platformdirs import user_cache_path

from benchmarks.material import made_vectors, zipf_tokens
from benchmarks.peers.adapters import FAILED
from benchmarks.peers.judge import black_box, distances_of, shares, verdict
from benchmarks.table import print_table, show
from lexveil.base.runtime.hashes import version
from lexveil.base.runtime.project import ONE_THREAD
from lexveil.base.runtime.tables import write_json
from lexveil.base.types import Vectors
from lexveil.core.text.languages.english import STOP_WORDS

ROOT = Path(__file__).resolve().parents[2]
# Package that pip installs for each peer; these were the newest releases when the list was written.
PINS = {
    "mldp-text": "mldp-text==0.1.2",
    "dp-diffractor": "dp-diffractor==0.2.1",
    "pypantera": "pypantera==1.0.2",
    "presidio-anonymizer": "presidio-anonymizer==2.2.366",
}
VECTORS = ("madlib", "mahalanobis", "vickrey", "tem")
LISTS = ("diffractor_geometric", "diffractor_tem")
MECHANISMS: dict[str, tuple[str, ...]] = {
    "mldp-text": (*VECTORS, "truncated_gumbel"),
    "dp-diffractor": LISTS,
    "pypantera": ("madlib", "mahalanobis", "tem"),
    "clmldp": ("madlib", "gst", "mst"),
    "presidio-anonymizer": ("replace",),
    "lexveil": (*VECTORS, "truncated_gumbel", *LISTS),
}
SETTINGS = {"truncated_gumbel": {"calibration": "paper"}}  # the theorem covers none of these ε
# the first two segment a text before MADLIB; the last claims no guarantee
NOT_AUDITED = ("gst", "mst", "replace")
# words; how many; the share of words without a vector
SENTENCE = 20
SENTENCES = 500
UNKNOWN = 0.03
# words of the audit, their dimensions, the distance of the nearest two
SMALL = 150
PLACES = 5
NEAR = 0.005
INPUTS = 4
AUDITED = {"vectors": (2.0, 60.0), "lists": (0.3, 1.5)}  # ε
AGAIN = 0.5  # ε at which two processes are compared
COLUMNS = {
    "peer": "peer",
    "mechanism": "mechanism",
    "rate": "tokens/CPU-s",
    "ratio": "Lexveil's, times",
    "peak_mb": "MB",
    "clear": "unknown words unchanged",
    "unchanged": "known words unchanged",
    "lost": "words lost",
    "added": "words added",
    "bound": "claimed bound",
}


def install(folder: Path, peers: Sequence[str]) -> tuple[Path, dict[str, str]]:
    """Create the environment and install missing peers; return its Python, and the reason for each
    peer that could not be installed.
    """
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
    missing: dict[str, str] = {}
    wanted = [peer for peer in peers if peer in PINS]
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run(
        [*pip, *(PINS[peer] for peer in wanted)], capture_output=True, check=False
    ).returncode:
        for peer in wanted:  # a peer that fails must not prevent the others from being installed
            done = subprocess.run([*pip, PINS[peer]], capture_output=True, text=True, check=False)
            if done.returncode:
                missing[peer] = why(done.stderr)
    return python, missing


def why(errors: str) -> str:
    """Return the last error line of pip's output, without addresses."""
    lines = (
        [line for line in errors.splitlines() if line.startswith("ERROR")]
        or errors.splitlines()[-1:]
        or ["?"]
    )
    if any("No matching distribution" in line for line in lines):
        return "not on the package index, or not for this Python"
    return " ".join(word for word in lines[-1].removeprefix("ERROR:").split() if "://" not in word)


def made_words(n: int) -> list[str]:
    """Generate distinct words of letters, none of them a stop word. Each word is a number, written
    with letters as digits.
    """
    return ["w" + "".join("abcdefghij"[int(digit)] for digit in str(number)) for number in range(n)]


def small_vectors() -> Vectors:
    """Generate the (SMALL, PLACES) vectors of the audit. The first two are near each other and far
    from all others.

    The claim allows almost no loss between the words of these two vectors, so that any difference
    in their outputs shows at once.
    """
    points = np.random.default_rng(3).standard_normal((SMALL, PLACES)).astype(np.float32)
    points[0] *= 2
    points[1] = points[0]
    points[1, 0] += np.float32(NEAR)
    return points


def write_vectors(words: Sequence[str], vectors: Vectors, stem: Path) -> dict[str, str]:
    """Write vectors as text, with and without a header; the peers read these files."""
    rows = [
        f"{word} {' '.join(f'{x:.7g}' for x in row)}\n"
        for word, row in zip(words, vectors.tolist(), strict=True)
    ]
    files = {"with_header": stem.with_suffix(".w2v"), "without_header": stem.with_suffix(".txt")}
    files["without_header"].write_text("".join(rows), encoding="utf-8")
    head = f"{len(words)} {vectors.shape[1]}\n"
    files["with_header"].write_text(head + "".join(rows), encoding="utf-8")
    return {name: str(file) for name, file in files.items()}


def made_sentences(words: Sequence[str]) -> list[list[str]]:
    """Generate sentences of words with frequencies as 1/rank, some of them words without a
    vector.
    """
    ids = zipf_tokens(SENTENCE * SENTENCES, len(words))
    rng = np.random.default_rng(4)
    text = [
        f"zq{words[word]}" if unknown else words[word]
        for word, unknown in zip(ids.tolist(), rng.random(len(ids)) < UNKNOWN, strict=True)
    ]
    return [text[start : start + SENTENCE] for start in range(0, len(text), SENTENCE)]


def collocations(
    sentences: Sequence[Sequence[str]],
) -> dict[str, list[tuple[tuple[str, ...], float]]]:
    """Return the pairs and triples that occur more than once, with their counts as scores."""
    pairs = Counter(pair for words in sentences for pair in pairwise(words))
    triples = Counter(
        triple for words in sentences for triple in zip(words, words[1:], words[2:], strict=False)
    )
    return {
        name: [(gram, float(count)) for gram, count in found.items() if count > 1]
        for name, found in (("bigrams", pairs), ("trigrams", triples))
    }


def data_of_nltk(folder: Path) -> None:
    """Write the files that the peers read from NLTK's data, which no package contains: Lexveil's
    stop words, and an empty folder.
    """
    (folder / "corpora" / "wordnet").mkdir(parents=True)
    (folder / "corpora" / "stopwords").mkdir()
    (folder / "corpora" / "stopwords" / "english").write_text(
        "\n".join(sorted(STOP_WORDS)), encoding="utf-8"
    )


def in_process(
    python: Path, peer: str, tasks: Sequence[Mapping[str, Any]], minutes: int, folder: Path
) -> list[dict[str, Any]]:
    """Return the results of ``adapters.py`` in a process of its own with one thread; ``{"why": …}``
    for a task that fails.
    """
    spec = folder / "spec.json"
    out = folder / "found"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    spec.write_text(
        json.dumps({"peer": peer, "tasks": tasks, "minutes": minutes}), encoding="utf-8"
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "LANG", "NUMBA_CACHE_DIR")
    }
    own = {
        "HOME": str(folder),
        "NLTK_DATA": str(folder / "nltk"),
        "NUMBA_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    lexveil = {"PYTHONPATH": str(ROOT)} if peer == "lexveil" else {}
    done = subprocess.run(
        [str(python), str(ROOT / "benchmarks" / "peers" / "adapters.py"), str(spec), str(out)],
        env=kept | ONE_THREAD | own | lexveil,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return [{"why": (done.stderr.strip().splitlines() or ["?"])[-1][:200]}] * len(tasks)
    files = [out / f"{number}.json" for number in range(len(tasks))]
    late = {"why": f"ended without a result, or took longer than {minutes} minutes"}
    return [
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else late for file in files
    ]


def task_of(
    peer: str, mechanism: str, material: Mapping[str, Any], options: argparse.Namespace
) -> dict[str, Any]:
    """Return the task of one mechanism of a peer."""
    on_list = mechanism in LISTS
    small = {
        **material["small"],
        "inputs": material["small_words"][:INPUTS],
        "n": INPUTS,
        "samples": options.samples,
    }
    small["on_list"] = SMALL // 2 if on_list else 0  # inputs from the middle of the list
    return {
        **material["large"],
        "peer": peer,
        "mechanism": mechanism,
        "settings": {mechanism: SETTINGS.get(mechanism, {})},
        "epsilon": options.epsilon,
        "sentences": material["sentences"],
        "seconds": options.seconds,
        "wall": 10 * options.seconds,
        "audits": [small | {"epsilon": epsilon} for epsilon in audited(mechanism)],
        "again": {**material["small"], "epsilon": AGAIN},
        **collocations(material["sentences"]),
    }


def audited(mechanism: str) -> tuple[float, ...]:
    """Return the epsilons at which a mechanism is audited."""
    return () if mechanism in NOT_AUDITED else AUDITED["lists" if mechanism in LISTS else "vectors"]


def measure(
    peer: str,
    mechanisms: Sequence[str],
    python: Path,
    material: Mapping[str, Any],
    options: argparse.Namespace,
    folder: Path,
) -> list[dict[str, Any]]:
    """Return the rows of a peer."""
    tasks = [task_of(peer, mechanism, material, options) for mechanism in mechanisms]
    found = in_process(python, peer, tasks, options.minutes, folder)
    again = in_process(
        python, peer, [task | {"seconds": 0} for task in tasks], options.minutes, folder
    )
    pairs = zip(mechanisms, found, again, strict=True)
    return [
        {"peer": peer, **row_of(mechanism, one, other, material, options)}
        for mechanism, one, other in pairs
    ]


def row_of(
    mechanism: str,
    found: Mapping[str, Any],
    again: Mapping[str, Any],
    material: Mapping[str, Any],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Return the row of a mechanism from the results of two processes."""
    row: dict[str, Any] = {"mechanism": mechanism}
    if "why" in found:
        return row | {"bound": f"not run: {found['why']}"}
    sentences = material["sentences"][: len(found["out"])]
    row |= {"rate": sum(map(len, sentences)) / found["cpu_s"], "peak_mb": found["peak_mb"]}
    said = shares(sentences, found["out"], set(material["words"]))
    row |= {"lost": said.lost, "added": said.added}
    if mechanism in NOT_AUDITED:
        return row | {
            "bound": "claims nothing"
            if mechanism == "replace"
            else "as for madlib, for the remaining tokens"
        }
    words = material["small_words"]
    results = []
    for epsilon, audit in zip(audited(mechanism), found["audits"], strict=True):
        distances = distances_of(mechanism, words, material["small_vectors"], audit["order"])
        results.append(black_box(audit["drawn"], words, distances, epsilon))
    failed = sum(
        word == FAILED for one in found["audits"] for out in one["drawn"].values() for word in out
    )
    bound = verdict(results, options.samples, again.get("again") == found["again"])
    row |= {"clear": said.clear, "unchanged": said.unchanged, "failed": failed}
    return row | {"bound": bound + (f"; {failed:,} errors" if failed else "")}


def main(arguments: Sequence[str] | None = None) -> None:
    """Install the peers, measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--env",
        type=Path,
        default=user_cache_path("lexveil") / "peers",
        help="environment of the peers",
    )
    parser.add_argument(
        "--peers", nargs="+", default=list(MECHANISMS), choices=list(MECHANISMS), metavar="PEER"
    )
    parser.add_argument("--mechanisms", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--words", type=int, default=5_000, help="words of the vocabulary")
    parser.add_argument("--dimensions", type=int, default=100)
    parser.add_argument("--epsilon", type=float, default=10.0)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="CPU seconds for each throughput"
    )
    parser.add_argument("--samples", type=int, default=4_000, help="draws of each word of an audit")
    parser.add_argument("--minutes", type=int, default=10, help="minutes that a mechanism may take")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    python, missing = install(options.env.resolve(), options.peers)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="lexveil-benchmark-") as name:
        folder = Path(name)
        data_of_nltk(folder / "nltk")
        words = made_words(options.words)
        small_words = made_words(SMALL)
        few = small_vectors()
        large = made_vectors(options.words, options.dimensions)
        material = {
            "words": words,
            "sentences": made_sentences(words),
            "large": write_vectors(words, large, folder / "large"),
            "small_words": small_words,
            "small_vectors": few,
            "small": write_vectors(small_words, few, folder / "small"),
        }
        for peer in options.peers:
            mechanisms = [
                one for one in MECHANISMS[peer] if one in (options.mechanisms or MECHANISMS[peer])
            ]
            if peer in missing:
                bound = f"not installed: {missing[peer]}"
                rows += [
                    {"peer": peer, "mechanism": mechanism, "bound": bound}
                    for mechanism in mechanisms
                ]
                continue
            one = Path(sys.executable) if peer == "lexveil" else python
            for row in measure(peer, mechanisms, one, material, options, folder):
                rows.append(row)
                print(
                    ", ".join(f"{key} {show(value)}" for key, value in row.items()),
                    file=sys.stderr,
                    flush=True,
                )
    ours = {
        row["mechanism"]: row["rate"] for row in rows if row["peer"] == "lexveil" and "rate" in row
    }
    for row in rows:
        if row["peer"] != "lexveil" and "rate" in row and row["mechanism"] in ours:
            row["ratio"] = ours[row["mechanism"]] / row["rate"]
    print_table(COLUMNS, rows)
    versions = [*(pin for peer, pin in PINS.items() if peer not in missing), f"lexveil {version()}"]
    print(
        f"{', '.join(versions)}; {datetime.date.today()}; V = {options.words:,} x "
        f"{options.dimensions}, "
        f"ε = {options.epsilon:g}, one thread, load {os.getloadavg()[0]:.0f}"
    )
    if options.json:
        write_json({"versions": versions, "rows": rows}, options.json)


if __name__ == "__main__":
    main()
