"""What public lengths of vectors do to recovery and utility: the figures behind docs/decisions/0013.

    uv run python -m benchmarks.scaling FILE.parquet... [--mechanism madlib] [--texts N] [--words N] [--json FILE]

For each rule of lengths and each target, ε is the one at which the best reader by the word recovers that share of the
content words: of TEM exactly, by the whole channel Pr[M(w)=y] over the most frequent words of the model `en`; of MADLIB
by the estimate that the library has for noisy searches. At this ε
the texts are rewritten (S1: stop words and punctuation are kept, unknown words drawn uniformly; the same ε for every
perturbed token), and a classifier is trained and evaluated on them. A FILE has columns text, label, split; others of
the files' columns that hold what is predicted are named as FILE:COLUMN.
"""

from __future__ import annotations

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from lexveil.artifacts.model_store import find
from lexveil.embeddings.scaling import frequency_factors
from lexveil.embeddings.word_space import WordSpace, unit_vectors
from lexveil.evaluation.classifier import Linear
from lexveil.evaluation.ngrams import CountedTexts
from lexveil.evaluation.utility import LeftOut, Problem, problem_of, shuffles_of, utility
from lexveil.mechanisms.base import Mechanism
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.tem import Tem, truncation
from lexveil.recovery.bands import BANDS, bands_of, prior_of
from lexveil.recovery.by_word import build_adversary
from lexveil.recovery.calibration import Curve, without_output
from lexveil.recovery.calibration import epsilon_for as calibrated
from lexveil.recovery.shares import Expected, Sample, expected
from lexveil.text.encode import Encoded, Lexicon, TokenClass, encode
from lexveil.text.function_words import STOP_WORDS
from lexveil.text.tokenize import is_punctuation
from lexveil.types import Bytes, Floats, Vectors

TARGETS = (0.1, 0.3, 0.5, 0.7)  # recovery of content words
RULES: dict[str, tuple[str, float]] = {  # lengths before the factor, and its exponent
    "none": ("none", 0.0),
    "unit": ("unit", 0.0),
    **{f"unit, count^{a}": ("unit", a) for a in (0.1, 0.2, 0.3)},
    **{f"none, count^{a}": ("none", a) for a in (0.1, 0.2, 0.3)},
}
BETA = 0.001
BLOCK = 1000  # words measured at a time
NEVER = 1e-300  # of a word that is never meant: an adversary takes logarithms
STEPS = 10  # of the search for ε, each halving the range in ln ε: to 1%
LEAST, MOST = 0.25, 4096.0
SHUFFLES = 3
WORDS_OF_TEXT = 100  # longer ones are cut


@dataclass(frozen=True)
class Channel:
    """TEM over W words, with how likely each is to be meant.

    Attributes:
        vectors: (W, p).
        prior: (W,) adding up to 1; 0 of words that are kept.
        bands: (W,) places in ``BANDS``.
    """

    vectors: Vectors
    prior: Floats
    bands: Bytes

    def recovery(self, epsilon: float) -> dict[str, Any]:
        """Shares of occurrences that the best reader recovers, and that come out unchanged, by band and overall."""
        n = len(self.prior)
        gamma = float(truncation(np.array([epsilon]), BETA, n)[0])
        squares = np.einsum("vp,vp->v", self.vectors, self.vectors)

        def weights(rows: slice) -> Vectors:
            gap: Vectors = self.vectors[rows] @ self.vectors.T
            gap *= -2
            gap += squares[rows, None]
            gap += squares
            np.maximum(gap, 0, out=gap)
            gap[np.arange(gap.shape[0]), np.arange(n)[rows]] = 0
            np.sqrt(gap, out=gap)
            np.minimum(gap, np.float32(gamma), out=gap)
            gap *= np.float32(-epsilon / 2)
            np.exp(gap, out=gap)
            return gap

        blocks = [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
        totals = np.concatenate([weights(rows).sum(axis=1, dtype=np.float64) for rows in blocks])
        joint = (self.prior / totals).astype(np.float32)
        right = np.zeros(len(BANDS))
        for rows in blocks:  # distances are symmetric: a row is an output here
            of_output = weights(rows) * joint
            guess = of_output.argmax(axis=1)
            np.add.at(right, self.bands[guess], of_output[np.arange(len(guess)), guess])
        mass = np.bincount(self.bands, weights=self.prior, minlength=len(BANDS))
        same = np.bincount(self.bands, weights=self.prior / totals, minlength=len(BANDS))
        there = {band: number for number, band in enumerate(BANDS) if mass[number] > 0}
        return {
            "recovered": {band: round(float(right[at] / mass[at]), 4) for band, at in there.items()},
            "unchanged": {band: round(float(same[at] / mass[at]), 4) for band, at in there.items()},
            "overall": round(float(right.sum()), 4),
            "overall_unchanged": round(float(same.sum()), 4),
        }

    def epsilon_for(self, target: float) -> float:
        """The ε at which the overall recovery is the target."""
        low, high = np.log(LEAST), np.log(MOST)
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.recovery(float(np.exp(middle)))["overall"] < target else (low, middle)
        return float(np.exp((low + high) / 2))


@dataclass(frozen=True)
class NoisyChannel:
    """MADLIB over W words, with how likely each is to be meant; see ``Channel``."""

    mechanism: Madlib
    prior: Floats
    bands: Bytes

    def expected(self, epsilon: float) -> Expected:
        """What the estimated reader names of words that are as frequent as the prior says."""
        prior = np.maximum(self.prior, NEVER)
        adversary = build_adversary(self.mechanism, prior, (epsilon, epsilon))
        sample = Sample.draw(self.prior, self.bands, stream(1, "words"))
        return expected(self.mechanism, adversary, sample, epsilon, stream(1, "noise"))

    def recovery(self, epsilon: float) -> dict[str, Any]:
        """Shares of occurrences that the reader recovers, and that come out unchanged, by band and overall."""
        found = self.expected(epsilon)
        there = [band for band in BANDS if found.mass[band] > 0]
        return {
            "recovered": {band: round(found.recovered[band].share, 4) for band in there},
            "unchanged": {band: round(found.unchanged[band].share, 4) for band in there},
            "overall": round(found.overall(found.recovered), 4),
            "overall_unchanged": round(found.overall(found.unchanged), 4),
        }

    def epsilon_for(self, target: float) -> float:
        """The ε at which the overall recovery is the target."""
        curve = Curve(self.expected, without_output(self.prior, self.bands))
        return calibrated(curve, target, start=10.0).epsilon


@dataclass(frozen=True)
class Task:
    """Labelled texts, and what is predicted."""

    name: str
    texts: list[str]
    encoded: Encoded
    problem: Problem


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="FILE or FILE:COLUMN")
    parser.add_argument("--texts", type=int, default=3000, help="of each file at most")
    parser.add_argument("--words", type=int, default=10_000, help="the most frequent of the model `en`")
    parser.add_argument("--mechanism", choices=["tem", "madlib"], default="tem")
    parser.add_argument("--targets", type=float, nargs="*", default=list(TARGETS))
    parser.add_argument("--rules", nargs="*", default=list(RULES), choices=list(RULES))
    parser.add_argument("--json", type=Path, help="write the figures here, too, after each cell")
    options = parser.parse_args()
    space = words_of_en(options.words)
    lexicon = Lexicon.build("word", space.tokens, None)
    tasks = [read_task(file, options.texts, lexicon) for file in options.files]
    is_function = np.array([token in STOP_WORDS for token in space.tokens])
    prior = np.where(is_function, 0.0, prior_of(space.counts))
    prior, bands = prior / prior.sum(), bands_of(space.counts, is_function)
    result: dict[str, Any] = {
        "words": len(space.tokens),
        "texts": {task.name: len(task.texts) for task in tasks},
        "perturbed": {task.name: int(perturbed(task.encoded).sum()) for task in tasks},
        "clean": {task.name: score(task, task.texts) for task in tasks},
        "cells": [],
    }
    for rule in options.rules:
        lengths, exponent = RULES[rule]
        vectors = unit_vectors(space.vectors) if lengths == "unit" else space.vectors
        vectors = (vectors * frequency_factors(space.counts, exponent)[:, None]).astype(np.float32)
        channel: Channel | NoisyChannel
        mechanism: Mechanism
        if options.mechanism == "tem":
            channel, mechanism = Channel(vectors, prior, bands), Tem(vectors, beta=BETA)
        else:
            mechanism = Madlib(vectors)
            channel = NoisyChannel(mechanism, prior, bands)
        for target in options.targets:
            began = time.process_time()
            epsilon = channel.epsilon_for(target)
            cell = {"rule": rule, "target": target, "epsilon": round(epsilon, 3), **channel.recovery(epsilon)}
            cell["utility"] = {
                task.name: score(task, rewritten(task, space.tokens, mechanism, epsilon)) for task in tasks
            }
            result["cells"].append(cell)
            print(json.dumps(cell), f"{time.process_time() - began:.0f} CPU-s", file=sys.stderr, flush=True)
            if options.json:
                options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


def words_of_en(n_words: int) -> WordSpace:
    """The most frequent words of the model that ships, without punctuation."""
    space = find("en").space("word")
    rows = [row for row, token in enumerate(space.tokens) if not is_punctuation(token)][:n_words]
    return WordSpace([space.tokens[row] for row in rows], space.vectors[rows], space.counts[rows])


def read_task(given: str, n_texts: int, lexicon: Lexicon) -> Task:
    """The labelled texts of a file, some of them drawn, cut to ``WORDS_OF_TEXT`` words."""
    name, _, column = given.partition(":")
    rows = pq.read_table(name, columns=["text", "split", column or "label"]).to_pylist()
    rows = [row for row in rows if row[column or "label"] is not None]
    drawn = stream(1, "texts", Path(name).stem).permutation(len(rows))[:n_texts]
    rows = [rows[number] for number in sorted(drawn.tolist())]
    texts = [" ".join(str(row["text"]).split()[:WORDS_OF_TEXT]) for row in rows]
    problem = problem_of("label", [row["split"] for row in rows], [str(row[column or "label"]) for row in rows])
    if isinstance(problem, LeftOut):
        raise SystemExit(f"{given}: {problem.reason}")
    encoded = encode(texts, lexicon)
    # The clean texts in the same form, so that only the words differ.
    return Task(Path(name).stem, joined(encoded, encoded.words), encoded, problem)


def perturbed(encoded: Encoded) -> Any:
    """(n,) which tokens a mechanism replaces in S1."""
    return (encoded.kind == TokenClass.WORD.value) & (encoded.rows >= 0)


def rewritten(task: Task, tokens: Sequence[str], mechanism: Mechanism, epsilon: float) -> list[str]:
    """The texts of a task, rewritten."""
    encoded, rng = task.encoded, stream(1, task.name)
    at, unknown = perturbed(encoded), encoded.kind == TokenClass.OOV.value
    budgets = np.full(int(at.sum()), epsilon)
    rows = np.zeros(len(at), dtype=np.int64)
    rows[at] = mechanism.replace(encoded.rows[at], budgets, mechanism.noise(budgets, rng))
    rows[unknown] = rng.integers(len(tokens), size=int(unknown.sum()))
    words = [
        tokens[row] if new else word for row, new, word in zip(rows.tolist(), at | unknown, encoded.words, strict=True)
    ]
    return joined(encoded, words)


def joined(encoded: Encoded, words: Sequence[str]) -> list[str]:
    """Texts of the words of a batch."""
    offsets = encoded.offsets().tolist()
    return [" ".join(words[start:end]) for start, end in pairwise(offsets)]


def score(task: Task, texts: list[str]) -> float:
    """Mean macro F1 of a classifier that is trained and evaluated on these texts."""
    shuffles = shuffles_of(task.problem, [stream(1, task.name, str(number)) for number in range(SHUFFLES)], 0.9)
    clean, private = CountedTexts.each(texts, texts)
    measured = utility(clean, private, task.problem, shuffles, Linear)["private"]
    return round(float(np.mean([one.scores.macro_f1 for one in measured])), 4)


if __name__ == "__main__":
    main()
