"""1-Diffractor Table 5 and Figures 6 and 7: memory and speed of mechanisms on this machine.

Source: 1-Diffractor, section 6: a random set of 1,000 words is perturbed; then the words of SST-2.
Memory is the peak of allocations by NumPy and Python while 1,000 words are replaced at once,
without the vectors and lists that exist before. Speed is measured on the same words one after
another, as in the paper's code, and on the words of SST-2 at once.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from examples.replication.measured import Measured, MeasureKey
from lexveil.base import paths
from lexveil.base.types import Ids
from lexveil.core.accounting.budgets import Policy
from lexveil.core.mechanisms.registry import Mechanism
from lexveil.core.mechanisms.variants import base_of
from lexveil.core.text.tokenize import sentences
from lexveil.io.artifacts.embeddings import load_embedding
from lexveil.io.artifacts.mechanisms import ModelSpace, prepare
from lexveil.io.artifacts.model_source import OwnRun
from lexveil.io.artifacts.project import Project
from lexveil.io.config import Params
from lexveil.lab.report import formatting
from lexveil.lab.report.formatting import MeanSd
from lexveil.lab.report.table import Column, Table

N_WORDS = 1000
N_PASSES = 5  # number of passes; the fastest counts
EPSILON = 1.0
SEED = 42
DAY = 86_400.0  # seconds
MIB = 2**20
TEXTS = "sst2"
MVC = "madlib"
ON_LISTS = "diffractor_geometric"


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Memory and speed of one mechanism.

    Attributes:
        mechanism: name of the mechanism.
        mebibytes: peak of memory over N_WORDS words.
        words_per_day: N_WORDS words, one after another, as tokens per day.
        texts_per_day: words of SST-2, all at once, as tokens per day; None without the data set.
    """

    mechanism: str
    mebibytes: float
    words_per_day: float
    texts_per_day: float | None


def measure_efficiency(params: Params) -> list[Efficiency]:
    """Measure each mechanism of the grid once; mechanisms on lists use L0."""
    source = OwnRun(Project.find(Path()))
    space = load_embedding("word")
    policy = Policy.of("S1", params.policy.stopwords, params.policy.punctuation, params.policy.oov)
    measured = []
    for base in dict.fromkeys(base_of(name) for name in params.grid.mechanisms):
        own = prepare(base, ModelSpace("word", space, policy, source), params.mechanisms)
        ids = np.random.default_rng(SEED).integers(own.mechanism.size, size=N_WORDS)
        tokens = _tokens_of_texts(space.tokens, own.vocabulary.number)
        measured.append(_measure(base, own.mechanism, ids, tokens))
    return measured


def _measure(name: str, mechanism: Mechanism, ids: Ids, tokens: Ids | None) -> Efficiency:
    rng = np.random.default_rng(SEED)
    _replace(mechanism, ids[:10], rng)  # work that is done once: compilation, sorting
    tracemalloc.start()
    _replace(mechanism, ids, rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    def each() -> None:
        for place in range(len(ids)):
            _replace(mechanism, ids[place : place + 1], rng)

    singly = _fastest(each)
    per_day = DAY * len(ids) / singly
    if tokens is None:
        return Efficiency(name, peak / MIB, per_day, None)
    together = _fastest(lambda: _replace(mechanism, tokens, rng))
    return Efficiency(name, peak / MIB, per_day, DAY * len(tokens) / together)


def _fastest(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of several passes, because other processes slow down single
    passes.
    """
    seconds = []
    for _ in range(N_PASSES):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _replace(mechanism: Mechanism, ids: Ids, rng: np.random.Generator) -> None:
    budgets = np.full(len(ids), EPSILON)
    mechanism.replace(ids, budgets, mechanism.noise(budgets, rng))


def _tokens_of_texts(tokens: Sequence[str], number: Ids) -> Ids | None:
    """Return the known words of SST-2 as ids; None without the data set."""
    file = paths.DOCUMENTS / f"{TEXTS}.parquet"
    if not file.is_file():
        return None
    row = {token: place for place, token in enumerate(tokens)}
    texts = pq.read_table(file, columns=["text"]).column("text").to_pylist()
    words = [word for text in texts for sentence in sentences(text) for word in sentence]
    ids = number[np.array([row[word] for word in words if word in row], dtype=np.int64)]
    return ids[ids >= 0]


def known_values(measured: Sequence[Efficiency]) -> Measured:
    """Return the values of Table 5, and the speed of the geometric 1-Diffractor as a multiple of
    MADLIB's.
    """
    words = frozenset(["words"])
    known: Measured = {}
    for one in measured:
        total = MeasureKey("memory_total", words, one.mechanism, "", "any", 0.0)
        known[total] = MeanSd(one.mebibytes, None)
        per_word = total._replace(measure="memory_per_word")
        known[per_word] = MeanSd(one.mebibytes / N_WORDS, None)
    by_name = {one.mechanism: one for one in measured}
    if MVC in by_name and ON_LISTS in by_name:
        fast = by_name[ON_LISTS]
        slow = by_name[MVC]
        key = MeasureKey("speedup_words", words, ON_LISTS, "", "any", 0.0)
        known[key] = MeanSd(fast.words_per_day / slow.words_per_day, None)
        if fast.texts_per_day is not None and slow.texts_per_day is not None:
            texts = key._replace(measure="speedup_texts")
            known[texts] = MeanSd(fast.texts_per_day / slow.texts_per_day, None)
    return known


def efficiency_table(measured: Sequence[Efficiency]) -> Table:
    """Return a table with one row per mechanism: Figures 6 and 7 in numbers."""
    columns = [
        Column("mechanism", "mechanism"),
        Column("words", f"tokens a day, {N_WORDS:,} words one by one", formatting.count),
        Column("texts", "tokens a day, SST-2 at once", formatting.count),
        Column("memory", f"MiB for {N_WORDS:,} words", formatting.two),
    ]
    rows = [
        {
            "mechanism": one.mechanism,
            "words": round(one.words_per_day),
            "texts": None if one.texts_per_day is None else round(one.texts_per_day),
            "memory": one.mebibytes,
        }
        for one in measured
    ]
    return Table("efficiency", columns, rows)
