"""Words per CPU second of scoring and segmentation, beside Python one sentence at a time and the machine's own limit.

    uv run python -m benchmarks.segmentation
    uv run python -m benchmarks.segmentation --corpus data/corpus --json segmentation.json

Without a corpus: Zipfian sentences, and as many collocations as the paper has (3.02 million bigrams, 1.31 million
trigrams). With one: its own sentences, and the collocations counted in them. One thread. Every way of cutting in Python
is compared with the compiled one, token by token, before its speed is printed.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from benchmarks import limits
from benchmarks.corpus import corpus_texts
from benchmarks.material import draw_tokens
from benchmarks.per_sentence import PUBLISHED, TIDY
from benchmarks.table import print_table, show
from lexveil.runtime.tables import write_json
from lexveil.text.collocation_index import Collocations
from lexveil.text.function_words import CONNECTORS
from lexveil.text.segment import segment, write_lines
from lexveil.text.tokenize import has_letters, sentences
from lexveil.types import Floats, Ids

SEED = 20
N_WORDS = 400_000
N_BIGRAMS, N_TRIGRAMS = 3_020_000, 1_310_000  # CLMLDP section 4.1.1
COUNTED = 10_000_000  # words of a corpus that collocations are counted in
MEASURED = 2_000_000  # words the compiled code cuts
COMPARED = 200_000  # words cut in Python
MIN_PMI = 2.0
BITS = 21

COLUMNS = {
    "what": "what",
    "rate": "words/CPU-s",
    "kernel_rate": "without scoring",
    "tidy_rate": "tidy Python",
    "tidy_ratio": "ratio",
    "published_rate": "as published",
    "published_ratio": "ratio ",
}


@dataclass(frozen=True, slots=True)
class Material:
    """Sentences and collocations as ids, and the words they stand for.

    Attributes:
        words: word by id.
        ids, offsets: (n,) words, and where each of the s sentences starts, (s + 1,).
        bigrams, trigrams: columns of ids; bigram_pmi, trigram_pmi in bits.
    """

    words: Sequence[str]
    ids: npt.NDArray[np.int32]
    offsets: Ids
    bigrams: list[Ids]
    bigram_pmi: Floats
    trigrams: list[Ids]
    trigram_pmi: Floats

    def first(self, n: int) -> tuple[npt.NDArray[np.int32], Ids]:
        """The whole sentences among the first ``n`` words."""
        offsets = self.offsets[: np.searchsorted(self.offsets, n, side="right")]
        return self.ids[: offsets[-1]], offsets


def made(seed: int = SEED) -> Material:
    """Sentences of about 18 words: connectors, single words, and collocations, each kind by Zipf's law."""
    rng = np.random.default_rng(seed)
    n_connectors = 100  # the first ids
    n_content = N_WORDS - n_connectors
    weights = np.arange(1.0, n_content + 1) ** -0.6  # of a word in collocations: flatter than in text
    drawn = [n_connectors + draw_tokens(2 * N_BIGRAMS, weights, seed + number) for number in (1, 2)]
    keys = rng.permutation(np.unique(drawn[0] << BITS | drawn[1]))[:N_BIGRAMS]
    bigrams = [keys >> BITS, keys & (1 << BITS) - 1]
    third = n_connectors + draw_tokens(N_TRIGRAMS, weights, seed + 3)
    longer = rng.permutation(len(keys))[:N_TRIGRAMS]
    trigrams = [*(column[longer] for column in bigrams), third]

    kind = rng.choice(4, size=MEASURED, p=[0.45, 0.4, 0.1, 0.05])
    sizes = np.array([1, 1, 2, 3])[kind]
    starts = np.cumsum(sizes) - sizes
    ids = np.empty(int(sizes.sum()), dtype=np.int32)
    ids[starts[kind == 0]] = rng.integers(n_connectors, size=np.count_nonzero(kind == 0))
    ids[starts[kind == 1]] = n_connectors + draw_tokens(
        int(np.count_nonzero(kind == 1)), 1 / np.arange(1, n_content + 1), seed + 4
    )
    for size, columns in ((2, bigrams), (3, trigrams)):
        at = starts[kind == size]
        chosen = draw_tokens(len(at), 1 / np.arange(1, len(columns[0]) + 1), seed + 3 + size)
        for place, column in enumerate(columns):
            ids[at + place] = column[chosen]
    ends = np.cumsum(rng.geometric(1 / 18, size=len(ids) // 9))
    offsets = np.concatenate([[0], ends[ends < len(ids)], [len(ids)]])
    bigram_pmi, trigram_pmi = (
        MIN_PMI + rng.exponential(scale, size=len(columns[0])) for scale, columns in ((3.0, bigrams), (8.0, trigrams))
    )
    return Material(
        [f"w{number}" for number in range(N_WORDS)], ids, offsets, bigrams, bigram_pmi, trigrams, trigram_pmi
    )


def counted(corpus: Path, min_count: int) -> Material:
    """The first sentences of a corpus, and the collocations counted in them (CLMLDP section 4.1)."""
    number: dict[str, int] = {}
    listed: list[int] = []
    ends = [0]
    for text in corpus_texts(corpus):
        for sentence in sentences(text):
            listed += [number.setdefault(word, len(number)) for word in sentence]
            ends.append(len(listed))
        if len(listed) >= COUNTED:
            break
    if not listed:
        raise SystemExit(f"{corpus} holds no text in *.json.gz shards")
    words = list(number)
    ids, offsets = np.array(listed, dtype=np.int32), np.array(ends)
    allowed = np.array([word not in CONNECTORS and has_letters(word) for word in words])[ids]
    numbers = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))  # of each word's sentence
    joined = allowed[:-1] & allowed[1:] & (numbers[:-1] == numbers[1:])
    places = {2: np.flatnonzero(joined), 3: np.flatnonzero(joined[:-1] & joined[1:])}
    log_share = np.log2(np.bincount(ids) / len(ids))
    columns, pmi = {}, {}
    for size, starts in places.items():
        packed = np.zeros(len(starts), dtype=np.int64)
        for position in range(size):
            packed = packed << BITS | ids[starts + position]
        keys, counts = np.unique(packed, return_counts=True)
        words_of = [keys >> BITS * (size - 1 - position) & (1 << BITS) - 1 for position in range(size)]
        bits = np.log2(counts / len(ids)) - sum(log_share[column] for column in words_of)
        kept = (counts >= min_count) & (bits >= MIN_PMI)
        columns[size], pmi[size] = [column[kept] for column in words_of], bits[kept]
    n = int(np.searchsorted(offsets, MEASURED, side="right"))
    return Material(words, ids[: offsets[n - 1]], offsets[:n], columns[2], pmi[2], columns[3], pmi[3])


@numba.njit(cache=True)
def _probe(table: npt.NDArray[np.void], slots: Ids) -> int:
    """Read one key at each place."""
    seen = 0
    for k in range(len(slots)):
        seen ^= table[slots[k]].key
    return seen


def random_probes(table: npt.NDArray[np.void]) -> float:
    """Slots per second that can be read at random places of a table."""
    slots = np.random.default_rng(0).integers(len(table), size=1_000_000)

    def work() -> float:
        _probe(table, slots)
        return float(len(slots))

    return limits.best_rate(work)


def probes(material: Material, known: Collocations) -> int:
    """How many look-ups scoring cannot do without: pairs of words that take part, triples whose pair starts one."""
    offsets = material.offsets
    place = np.full(int(material.ids.max()) + 1, -1)
    place[: min(len(place), len(known.numbers))] = known.numbers[: len(place)]
    takes_part = place[material.ids] >= 0
    sentence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    joined = takes_part[:-1] & takes_part[1:] & (sentence[:-1] == sentence[1:])
    key = material.ids[:-1].astype(np.int64) << BITS | material.ids[1:]
    starts = joined & np.isin(key, material.trigrams[0] << BITS | material.trigrams[1])
    return int(joined.sum() + (starts[:-1] & joined[1:]).sum())


def one_by_one(
    cut: Callable[..., list[int]], batch: Sequence[Sequence[str]], scores: Sequence[dict[Any, float]]
) -> tuple[float, list[int]]:
    """Words per CPU second of a function that cuts one sentence, and all its token sizes."""
    sizes: list[list[int]] = []

    def work() -> float:
        sizes[:] = [cut(words, *scores) for words in batch]
        return float(sum(map(len, batch)))

    rate = limits.best_rate(work, 2.0)
    return rate, [size for of_sentence in sizes for size in of_sentence]


def compare(
    ways: dict[str, Callable[..., list[int]]], name: str, expected: list[int], batch: Any, scores: Any
) -> float | None:
    """Words per CPU second in Python, if there is such a way; it has to give the same tokens."""
    if name not in ways:
        return None
    rate, sizes = one_by_one(ways[name], batch, scores)
    if sizes != expected:
        raise RuntimeError(f"{ways[name].__name__} does not cut as the compiled {name} does")
    return rate


def quality(pair: Floats, triple: Floats, offsets: Ids) -> dict[str, float]:
    """How far greedy mst stays behind the largest total PMI, over sentences that have a collocation."""
    totals = {}
    for name in ("mst", "mst_exact"):
        lengths = segment(name, pair, triple, offsets)
        value = np.where(lengths == 2, pair, np.where(lengths == 3, triple, 0.0))
        totals[name] = np.add.reduceat(np.append(value, 0.0), offsets[:-1])
    some = totals["mst_exact"] > 0
    worse = totals["mst_exact"] > totals["mst"] + 1e-9
    return {
        "sentences": len(offsets) - 1,
        "with_collocations": int(some.sum()),
        "mst_not_optimal_share": float(worse.mean()),
        "mst_to_exact_score_mean": float((totals["mst"][some] / totals["mst_exact"][some]).mean()),
        "mst_to_exact_score_total": float(totals["mst"].sum() / totals["mst_exact"].sum()),
    }


def measure(material: Material) -> dict[str, Any]:
    """All figures of some sentences with some collocations."""
    start = time.process_time()
    columns = (material.bigrams, material.bigram_pmi, material.trigrams, material.trigram_pmi)
    known = Collocations.for_ids(*columns)
    build_seconds = time.process_time() - start
    ids, offsets = material.ids, material.offsets
    n = len(ids)
    pair, triple = known.scores(ids, offsets)
    floor = [random_probes(known.tables[0])]

    def scoring() -> float:
        known.scores(ids, offsets)
        return float(n)

    score_rate = limits.best_rate(scoring, 1.0)
    some_ids, some_offsets = material.first(COMPARED)
    text = [material.words[number] for number in some_ids.tolist()]
    batch = [text[a:b] for a, b in pairwise(some_offsets.tolist())]
    named = [[[material.words[number] for number in column.tolist()] for column in grams] for grams in columns[::2]]
    scores = [
        dict(zip(zip(*words, strict=True), pmi.tolist(), strict=True))
        for words, pmi in zip(named, columns[1::2], strict=True)
    ]
    joined = [{"_".join(gram): bits for gram, bits in table.items()} for table in scores]
    rows: list[dict[str, Any]] = [{"what": "scoring", "rate": score_rate}]
    for name in ("gst", "mst", "mst_exact"):

        def cutting(name: str = name) -> float:
            segment(name, pair, triple, offsets)
            return float(n)

        kernel_rate = limits.best_rate(cutting)
        rate = 1 / (1 / score_rate + 1 / kernel_rate)
        lengths = segment(name, *known.scores(some_ids, some_offsets), some_offsets)
        expected = lengths[lengths > 0].tolist()
        row = {"what": name, "rate": rate, "kernel_rate": kernel_rate}
        for label, ways, table in (("tidy", TIDY, scores), ("published", PUBLISHED, joined)):
            if slow := compare(ways, name, expected, batch, table):
                row |= {f"{label}_rate": slow, f"{label}_ratio": rate / slow}
        rows.append(row)
    floor.append(random_probes(known.tables[0]))
    rows.append(writing(material, segment("mst", pair, triple, offsets)))
    n_probes = probes(material, known)
    return {
        "rows": rows,
        "material": {
            "words": n,
            "sentences": len(offsets) - 1,
            "bigrams": len(material.bigram_pmi),
            "trigrams": len(material.trigram_pmi),
            "table_mb": sum(table.nbytes for table in known.tables) / 1e6,
            "build_cpu_seconds": build_seconds,
        },
        "floor": {
            "probes_per_word": n_probes / n,
            "random_probes_per_second": max(floor),
            "scoring_probes_per_second": score_rate * n_probes / n,
            "scoring_of_floor": score_rate * n_probes / n / max(floor),
            "copy_gb_per_second": limits.copy_bandwidth() / 1e9,
            "scoring_gb_per_second": score_rate * (ids.itemsize + pair.itemsize + triple.itemsize) / 1e9,
        },
        "mst": quality(pair, triple, offsets),
    }


def join_tokens(words: list[str], lengths: npt.NDArray[np.int8], sentence_offsets: npt.NDArray[np.int64]) -> str:
    """What ``write_lines`` writes, from Python strings; there is at least one word."""
    pieces = np.empty(2 * len(words), dtype=object)
    pieces[0::2] = words
    glue = np.full(len(words), " ", dtype=object)
    glue[:-1][lengths[1:] == 0] = "_"
    ends = sentence_offsets[1:]
    glue[ends[ends > 0] - 1] = "\n"
    pieces[1::2] = glue
    return "".join(pieces.tolist())


def writing(material: Material, lengths: npt.NDArray[np.int8]) -> dict[str, Any]:
    """Lines of joined tokens: as bytes from ids, and as Python strings."""
    encoded = [word.encode() for word in material.words]
    table = np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)])
    ids, offsets = material.first(COMPARED)
    some = lengths[: len(ids)]
    start = time.process_time()
    text = join_tokens([material.words[number] for number in ids.tolist()], some, offsets)
    tidy_rate = len(ids) / (time.process_time() - start)
    if write_lines(*table, ids, some, offsets).tobytes() != text.encode():
        raise RuntimeError("write_lines does not write what join_tokens does")

    def work() -> float:
        write_lines(*table, material.ids, lengths, material.offsets)
        return float(len(material.ids))

    rate = limits.best_rate(work)
    return {"what": "lines", "rate": rate, "tidy_rate": tidy_rate, "tidy_ratio": rate / tidy_rate}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.segmentation", description=__doc__)
    parser.add_argument("--corpus", type=Path, help="folder of *.json.gz shards to use instead of made sentences")
    parser.add_argument("--min-count", type=int, default=2, help="rarest collocation of that corpus (default 2)")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    figures = measure(counted(options.corpus, options.min_count) if options.corpus else made())
    figures["machine"] = {"cpu": platform.processor() or platform.machine()}
    print_table(COLUMNS, figures["rows"])
    for name in ("material", "floor", "mst"):
        print(f"{name}: " + ", ".join(f"{key} {show(value)}" for key, value in figures[name].items()))
    if options.json:
        write_json(figures, options.json)


if __name__ == "__main__":
    main()
