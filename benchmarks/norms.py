"""What rare words and the length of vectors do to MADLIB: the figures behind docs/decisions/0008.

    uv run python -m benchmarks.norms [--corpus FOLDER] [--documents N] [--json FILE]

Trains one space per min_count on the same text (segmentation gst, the settings of params.yaml but fewer epochs) and
replaces the same words in it as it is (none), with every vector at length 1 (unit), and again at length 1 with ε scaled
so that ε times the mean distance of two occurrences in running text is that of the space as it is (unit, scaled).
"""

from __future__ import annotations

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.segmented import ROOT, segmented_corpus
from lexveil.artifacts.base_model import DIMENSIONS
from lexveil.config import load_params
from lexveil.embeddings.scaling import scaled
from lexveil.embeddings.training import Word2VecSettings, displacement, train_word2vec
from lexveil.embeddings.word_space import WordSpace
from lexveil.mechanisms.deniability import distinct_counts, draw_replacements, unchanged_counts
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.noise.streams import stream

EPSILONS = (1.0, 10.0, 50.0)
MIN_COUNTS = (2, 5, 20)
BANDS = (1, 5, 20, 100, 1000, 10_000)  # least count of each
OCCURRENCES = 4000  # of running text, replaced once each
WORDS, DRAWS = 60, 40  # for N_w and S_w
LONGEST = 100
PAIRS = 20_000  # whose mean distance sets the scale


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="folder of shards in C4's form; without it the embedded default")
    parser.add_argument("--documents", type=int, default=10_000, help="at most so many, chosen by hash")
    parser.add_argument("--epochs", type=int, default=0, help="3 for a given corpus, else those of params.yaml")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    arguments = parser.parse_args()
    settings = load_params(ROOT / "params.yaml").embeddings
    epochs = arguments.epochs or (3 if arguments.corpus else settings.epochs)
    spaces, trained = {}, []
    with segmented_corpus(arguments.corpus, "gst", arguments.documents) as corpus:
        n_tokens = sum(line.count(" ") + 1 for line in corpus.open(encoding="utf-8"))
        for min_count in MIN_COUNTS:
            cpu = time.process_time()
            spaces[min_count] = train_word2vec(
                str(corpus),
                Word2VecSettings(
                    settings.dimensions or DIMENSIONS,
                    settings.window,
                    min_count,
                    epochs,
                    settings.negative,
                    settings.skip_gram,
                    workers=1,
                    seed=1,
                ),
            ).space
            trained.append(describe(spaces[min_count], min_count, n_tokens))
            say(f"min_count {min_count}: {trained[-1]['n_tokens']:,} vectors, {time.process_time() - cpu:.0f} CPU-s")
    common = words_for_statistics(spaces[MIN_COUNTS[-1]])
    cells = [cell for min_count, space in spaces.items() for cell in outputs(space, min_count, common)]
    about = {"epochs": epochs, "dimensions": settings.dimensions, "tokens": n_tokens}
    result = about | {"spaces": trained, "cells": cells}
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")


def describe(space: WordSpace, min_count: int, n_tokens: int) -> dict[str, Any]:
    """Size, lengths by band of frequency, and how much training moved."""
    norms, moved = np.linalg.norm(space.vectors, axis=1), displacement(space.vectors, 1)
    band = np.searchsorted(BANDS, space.counts, side="right") - 1
    return {
        "min_count": min_count,
        "n_tokens": len(space.tokens),
        "coverage": round(int(space.counts.sum()) / n_tokens, 4),
        "hardly_moved": round(float((moved < 1).mean()), 4),
        "bands": [
            {
                "least_count": BANDS[one],
                "n_tokens": int((band == one).sum()),
                "norm_median": round(float(np.median(norms[band == one])), 3),
                "norm_largest": round(float(norms[band == one].max()), 3),
                "hardly_moved": round(float((moved[band == one] < 1).mean()), 4),
            }
            for one in range(len(BANDS))
            if (band == one).any()
        ],
    }


def words_for_statistics(space: WordSpace) -> list[str]:
    """Words that every space has, drawn uniformly from the smallest vocabulary."""
    rows = np.flatnonzero(words(space))
    chosen = stream(1, "words").choice(rows, size=min(WORDS, len(rows)), replace=False)
    return [space.tokens[row] for row in chosen.tolist()]


def words(space: WordSpace) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which tokens hold a letter: punctuation is not perturbed."""
    return np.array([any(sign.isalpha() for sign in token) for token in space.tokens])


def outputs(space: WordSpace, min_count: int, common: list[str]) -> list[dict[str, Any]]:
    """One cell per normalisation and epsilon."""
    rng = stream(1, "occurrences")
    share = space.counts * words(space)
    share = share / share.sum()
    occurrences = rng.choice(len(share), size=OCCURRENCES, p=share)
    row_of = {token: row for row, token in enumerate(space.tokens)}
    ids = np.array([row_of[token] for token in common], dtype=np.int64)
    left, right = rng.choice(len(share), size=(2, PAIRS), p=share)
    unit = scaled(space, "unit")
    scale = mean_distance(space, left, right) / mean_distance(unit, left, right)
    longest = np.argsort(-np.linalg.norm(space.vectors, axis=1), kind="stable")[:LONGEST]
    band = np.searchsorted(BANDS, space.counts, side="right") - 1
    cells = []
    for how, one, factor in (("none", space, 1.0), ("unit", unit, 1.0), ("unit, scaled", unit, scale)):
        mechanism = Madlib(one.vectors)
        cpu = time.process_time()
        for epsilon in EPSILONS:
            budget = epsilon * factor
            drawn = draw_replacements(mechanism, occurrences, budget, 1, stream(1, "text", how, str(epsilon)))[:, 0]
            again = draw_replacements(mechanism, ids, budget, DRAWS, stream(1, "words", how, str(epsilon)))
            wins = np.sort(np.bincount(drawn, minlength=len(one.tokens)))[::-1]
            changed = drawn != occurrences
            cosine = np.einsum("np,np->n", unit.vectors[occurrences[changed]], unit.vectors[drawn[changed]])
            cells.append(
                {
                    "min_count": min_count,
                    "scale": how,
                    "epsilon": epsilon,
                    "epsilon_used": round(budget, 3),
                    "unchanged": round(1 - float(changed.mean()), 4),
                    "cosine_of_changed": round(float(cosine.mean()), 4) if changed.any() else None,
                    "outputs_by_band": [round(float((band[drawn] == b).mean()), 4) for b in range(len(BANDS))],
                    "to_longest_100": round(float(np.isin(drawn, longest).mean()), 4),
                    "to_top_10_outputs": round(float(wins[:10].sum() / OCCURRENCES), 4),
                    "distinct_outputs": int((wins > 0).sum()),
                    "n_w_mean": round(float(unchanged_counts(ids, again).mean()) / DRAWS, 4),
                    "s_w_mean": round(float(distinct_counts(again).mean()) / DRAWS, 4),
                }
            )
        say(f"min_count {min_count}, {how}: {time.process_time() - cpu:.0f} CPU-s")
    return cells


def mean_distance(space: WordSpace, left: Any, right: Any) -> float:
    """Mean distance of pairs of occurrences."""
    return float(np.linalg.norm(space.vectors[left] - space.vectors[right], axis=1).mean())


def say(line: str) -> None:
    """Progress, beside the figures on stdout."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
