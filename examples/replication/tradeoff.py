"""Vickrey Figures 2 and 3 and Algorithm 2: inference error of the adversary against utility loss.

    python -m examples.replication.tradeoff PROJECT --max-loss 0.06

chooses ε and t by Algorithm 2 on the opinion words of a project that the preset vickrey made.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from examples.replication.literature import Literature
from examples.replication.measured import Measured, MeasureKey
from lexveil.base import paths
from lexveil.base.types import Floats, Ids, Vectors
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.registry import Space, build_mechanism
from lexveil.core.text.tokenize import sentences
from lexveil.io.artifacts.embeddings import load_embedding
from lexveil.lab.evaluation.inference_error import Tradeoff, measure
from lexveil.lab.report.formatting import MeanSd

STREAM = "replication"
SEED = 42
LEXICON = "opinion_lexicon"
TRADEOFF_JSON = Path("replication-tradeoff.json")  # file in the project with the measured values
EPSILONS = (1.0, 2.0, 5.0, 10.0, 15.0, 25.0, 50.0, 100.0)
SHARES = (0.25, 0.5, 0.75, 1.0)  # values of t in Figure 2
STEPS = tuple(round(0.05 * step, 2) for step in range(1, 21))  # values of t that Algorithm 2 tries
FIRST_EPSILON = 1.0  # ε₀ of Algorithm 2
MAX_EPSILON = 1000.0  # largest ε that Algorithm 2 tries
MAX_LOSSES = (0.02, 0.06, 0.1)  # bounds of utility loss in section 4
ALONE = 1e9  # t of neighbours that are never chosen, for Figure 3
N_NEIGHBOURS = 5  # number of neighbours in Figure 3


@dataclass(frozen=True, slots=True)
class WordList:
    """Words that a mechanism replaces by each other.

    Attributes:
        vectors: (W, p).
        labels: (W,) label of each word; zeros without labels.
        prior: (W,) probability of each word, adding up to 1.
    """

    vectors: Vectors
    labels: Ids
    prior: Floats


@dataclass(frozen=True, slots=True)
class TunedVickrey:
    """Result of Algorithm 2.

    Attributes:
        max_loss: bound of the utility loss.
        epsilon, t: the chosen values; None if no ε keeps the loss below the bound.
        inference_error, utility_loss: the values at this ε and t; None if there is no such ε.
    """

    max_loss: float
    epsilon: float | None
    t: float | None
    inference_error: float | None
    utility_loss: float | None


def tune(
    measure_at: Callable[[float, float], Tradeoff],
    max_loss: float,
    first_epsilon: float = FIRST_EPSILON,
    max_epsilon: float = MAX_EPSILON,
    steps: Sequence[float] = STEPS,
) -> TunedVickrey:
    """Run Algorithm 2: double ε until the utility loss of t = 0 is below a bound, then take the t
    with the largest inference error that keeps the loss within the bound.

    Source: Xu et al. (2021b), section 3.2.

    Args:
        measure_at: inference error and utility loss of Vickrey at an ε and a t.
        max_loss: C, the bound.
        first_epsilon: ε₀.
        max_epsilon: largest ε; beyond it nothing is chosen.
        steps: values of t to try.
    """
    epsilon = first_epsilon
    best = measure_at(epsilon, 0.0)
    while best.utility_loss >= max_loss:
        epsilon *= 2
        if epsilon > max_epsilon:
            return TunedVickrey(max_loss, None, None, None, None)
        best = measure_at(epsilon, 0.0)
    chosen = 0.0
    for t in steps:
        known = measure_at(epsilon, t)
        if known.utility_loss <= max_loss and known.inference_error > best.inference_error:
            best = known
            chosen = t
    return TunedVickrey(max_loss, epsilon, chosen, best.inference_error, best.utility_loss)


def opinion_words(n_words: int | None) -> WordList:
    """Return the opinion words that the embedding knows, each with its sentiment; words with both
    sentiments are left out.

    Args:
        n_words: number of the most frequent words to take; None takes all.
    """
    table = pq.read_table(paths.DOCUMENTS / f"{LEXICON}.parquet", columns=["text", "label"])
    labels: dict[str, set[str]] = {}
    for word, label in zip(*(column.to_pylist() for column in table.columns), strict=True):
        labels.setdefault(word, set()).add(label)
    space = load_embedding("word")
    rows = [row for row, word in enumerate(space.tokens) if len(labels.get(word, ())) == 1]
    rows = rows[:n_words]
    numbers = np.array([int(next(iter(labels[space.tokens[row]]))) for row in rows])
    return _word_list(space.vectors, rows, numbers, space.counts[rows])


def words_of_texts(dataset: str, n_words: int) -> WordList:
    """Return the most frequent words of a data set that the embedding knows, with their frequency
    in the data set as prior.
    """
    texts = pq.read_table(paths.DOCUMENTS / f"{dataset}.parquet", columns=["text"])
    space = load_embedding("word")
    number = {word: row for row, word in enumerate(space.tokens)}
    n_times = np.zeros(len(space.tokens), dtype=np.int64)
    for text in texts.column("text").to_pylist():
        for words in sentences(text):
            for word in words:
                if word in number:
                    n_times[number[word]] += 1
    chosen = np.argsort(-n_times, kind="stable")[:n_words]
    rows = np.sort(chosen[n_times[chosen] > 0]).tolist()
    return _word_list(space.vectors, rows, np.zeros(len(rows), dtype=np.int64), n_times[rows])


def _word_list(vectors: Vectors, rows: Sequence[int], labels: Ids, counts: Ids) -> WordList:
    prior = np.asarray(counts, dtype=np.float64)
    return WordList(np.ascontiguousarray(vectors[rows]), labels, prior / prior.sum())


def measured_at(
    words: WordList,
    name: str,
    parameters: Mapping[str, Any],
    epsilon: float,
    n_draws: int,
    run: int = 0,
) -> Tradeoff:
    """Measure the inference error and utility loss of one mechanism at one ε, in one run."""
    mechanism = build_mechanism(name, Space(words.vectors), {name: parameters})
    rng = stream(SEED, STREAM, name, str(sorted(parameters.items())), str(epsilon), str(run))
    return measure(mechanism, epsilon, words.labels, words.prior, rng, n_draws)


def mechanisms_of_figure_2() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the name and parameters of the mechanism of each line."""
    lines: dict[str, tuple[str, dict[str, Any]]] = {
        "madlib": ("madlib", {}),
        "mahalanobis": ("mahalanobis", {"lambda_": 0.2}),
    }
    for t in SHARES:
        lines[f"vickrey-t{t:g}"] = ("vickrey", {"t": t, "k": 2})
    return lines


def mechanisms_of_figure_3() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return, for r from 1 to 5, a Vickrey mechanism that always takes the r-th nearest word."""
    lines: dict[str, tuple[str, dict[str, Any]]] = {"nearest 1": ("madlib", {})}
    for place in range(1, N_NEIGHBOURS):
        t = [ALONE] * max(place + 1, 3)
        t[place] = 0.0
        lines[f"nearest {place + 1}"] = ("vickrey", {"t": t, "k": len(t)})
    return lines


def measure_project(
    n_words: int | None,
    n_draws: int,
    n_runs: int,
    epsilons: Sequence[float],
    others: Sequence[str],
) -> dict[str, Any]:
    """Measure all points of the figures in the project of this folder, and return them as JSON
    values.

    Args:
        n_words: number of opinion words, and of words of each other data set; None takes all
            opinion words.
        n_draws: draws of each word in a run.
        n_runs: runs behind the mean of a point, at least 2.
        epsilons: epsilons of the figures.
        others: data sets whose inference error is measured without a utility loss.
    """
    words = opinion_words(n_words)
    sizes = {"n_words": len(words.prior), "n_draws": n_draws, "n_runs": n_runs}
    found: dict[str, Any] = {**sizes, "figures": {}}
    for figure, lines in (("2", mechanisms_of_figure_2()), ("3", mechanisms_of_figure_3())):
        found["figures"][figure] = _lines(words, lines, epsilons, n_draws, n_runs)
    for dataset in others:
        own = words_of_texts(dataset, len(words.prior))
        lines = mechanisms_of_figure_2()
        found["figures"][f"2 {dataset}"] = _lines(own, lines, epsilons, n_draws, n_runs)

    @cache
    def at(epsilon: float, t: float) -> Tradeoff:
        return measured_at(words, "vickrey", {"t": t, "k": 2}, epsilon, n_draws)

    found["tuned"] = [asdict(tune(at, max_loss)) for max_loss in MAX_LOSSES]
    return found


def _lines(
    words: WordList,
    lines: Mapping[str, tuple[str, dict[str, Any]]],
    epsilons: Sequence[float],
    n_draws: int,
    n_runs: int,
) -> dict[str, list[tuple[float, float, float, float]]]:
    """Return the points of each line: ε, inference error, utility loss, and the standard error of
    the inference error.
    """
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for label, (name, parameters) in lines.items():
        found[label] = []
        for epsilon in epsilons:
            runs = np.array(
                [
                    measured_at(words, name, parameters, epsilon, n_draws, run)
                    for run in range(n_runs)
                ]
            )
            error, loss = runs.mean(axis=0).tolist()
            spread = float(runs[:, 0].std(ddof=1) / np.sqrt(n_runs))
            found[label].append((epsilon, error, loss, spread))
    return found


def known_values(found: Mapping[str, Any], figures: Sequence[Literature]) -> Measured:
    """Return our measurements of the values that section 4 prints."""
    known: Measured = {}
    datasets = frozenset([LEXICON])
    for line, points in found["figures"]["2"].items():
        mechanism, _, variant = line.partition("-")
        for epsilon, _, loss, _ in points:
            key = MeasureKey("utility_loss", datasets, mechanism, variant, "S1", epsilon)
            known[key] = MeanSd(loss, None)
    for tuned in found["tuned"]:
        variant = f"loss at most {tuned['max_loss']:g}"
        if tuned["t"] is not None:
            key = MeasureKey("chosen_t", datasets, "vickrey", variant, "S1", 0.0)
            known[key] = MeanSd(tuned["t"], None)
    wanted = {figure.measure for figure in figures}
    return {key: value for key, value in known.items() if key.measure in wanted}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run Algorithm 2 in a project."""
    parser = argparse.ArgumentParser(prog="python -m examples.replication.tradeoff")
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("project", type=Path)
    parser.add_argument("--max-loss", type=float, required=True, metavar="C")
    parser.add_argument("--first-epsilon", type=float, default=FIRST_EPSILON, metavar="EPSILON")
    parser.add_argument("--words", type=int, help="the most frequent ones; default: all")
    parser.add_argument("--draws", type=int, default=100, help="draws of each word")
    options = parser.parse_args(arguments)
    if not 0 < options.max_loss < 1:
        parser.error(f"--max-loss {options.max_loss}: it must be between 0 and 1")
    if not options.first_epsilon > 0:
        parser.error(f"--first-epsilon {options.first_epsilon}: it must be greater than 0")
    if not (options.project / paths.DOCUMENTS / f"{LEXICON}.parquet").is_file():
        parser.error(f"{options.project} has no {LEXICON}; make it with --paper vickrey")
    with contextlib.chdir(options.project):
        words = opinion_words(options.words)

        def at(epsilon: float, t: float) -> Tradeoff:
            return measured_at(words, "vickrey", {"t": t, "k": 2}, epsilon, options.draws)

        print(json.dumps(asdict(tune(at, options.max_loss, options.first_epsilon)), indent=2))


if __name__ == "__main__":
    main()
