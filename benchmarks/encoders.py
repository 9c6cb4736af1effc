r"""Measure vectors of a sentence encoder for a bank of sentences, in comparison with the means of
word vectors that banks have.

    python -m benchmarks.encoders --data FOLDER --work FOLDER --json rows.json

MiniLM needs the extra `neural`. The bank is the one that ships; MiniLM gives vectors to its
sentences and to texts of 40 words. The purpose `sentiment` has the same coordinate in both spaces.
Texts become four sentences each, at several epsilon. A linear classifier learns from rewritten
texts and predicts held-out ones; a reader who knows the exact channel looks for the source of each
output among up to 1,000 distinct texts of the data set. Noise is seeded: this protects nothing.
Vectors are kept in the folder; what the file of rows has is not measured again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import PROBLEMS, Problem, Sizes
from benchmarks.sentences import interval, pool_of
from benchmarks.table import markdown
from lexveil.base.runtime.tables import write_json
from lexveil.base.types import Floats, Vectors
from lexveil.core.embeddings.sentences import UNIT
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.io.artifacts.default_bank import bank_of
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import SentenceBank, open_bank, units_of_texts
from lexveil.readers.sentence_levels import PublicSources, found_at
from lexveil.readers.shares import Share

SEED = 1
SIZES = Sizes(train=1_200, test=800, words=40, read=0)
PER_TEXT = 4
MEANS = "means"
ENCODERS = (MEANS, "minilm")
WEIGHTS = (0.0, 3.0)
EPSILONS = (5.0, 10.0, 14.0, 20.0, 28.0, 40.0)
COLUMNS = {
    "problem": "texts",
    "weight": "w",
    "encoder": "vectors",
    "epsilon": "ε",
    "utility": "utility",
    "attack": "attack",
    "linkage": "found among 1,000 (95 %)",
}
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Encoder:
    """Gives vectors to texts and to the sentences of a bank, by one encoder."""

    name: str
    bank: SentenceBank
    model: Model
    work: Path

    def vectors(self, texts: Sequence[str], called: str) -> Vectors:
        """Return the vectors of texts, with the coordinate of the purpose if there is one."""
        means = self.bank.space.embed(units_of_texts(texts, self.model))
        if self.name == MEANS:
            return means
        file = self.work / f"{self.name}-{called}.npy"
        if not file.exists():
            from lexveil.lab.evaluation.minilm import MiniLm

            np.save(file, MiniLm().encode(texts))
        of_encoder = np.load(file) * np.float32(UNIT)
        n_axes = len(self.bank.space.axes)
        axes = means[:, means.shape[1] - n_axes :]
        return np.concatenate([of_encoder, axes], axis=1, dtype=np.float32)


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield all rows, those that were measured before first."""
    kept = json.loads(options.json.read_text()) if options.json.exists() else []
    yield from kept
    there = {tuple(row[key] for key in ("problem", "weight", "encoder", "epsilon")) for row in kept}
    options.work.mkdir(parents=True, exist_ok=True)
    for problem in (one for one in PROBLEMS if one.file in options.only):
        drawn = problem.drawn(options.data, SIZES)
        for weight in options.weights:
            model = Model.load(name=f"en+sentiment={weight:g}" if weight else "en")
            bank = open_bank(bank_of(model), model)
            for name in options.encoders:
                encoder = Encoder(name, bank, model, options.work)
                wanted = [
                    epsilon
                    for epsilon in options.epsilons
                    if (problem.name, weight, name, epsilon) not in there
                ]
                for row in rows_of(drawn, encoder, wanted):
                    yield {"problem": problem.name, "weight": weight, "encoder": name} | row


def rows_of(problem: Problem, encoder: Encoder, epsilons: Sequence[float]) -> Iterator[Row]:
    """Yield the figures of a data set at some epsilon."""
    if not epsilons:
        return
    bank = encoder.bank
    mechanism = SentenceDraws(encoder.vectors([*bank.texts], "bank"), bank.space.radius)
    queries = encoder.vectors(problem.texts, problem.file)
    pool = pool_of(problem)
    places = {text: place for place, text in enumerate(problem.texts)}
    of_pool = queries[[places[text] for text in pool]]
    sources = PublicSources(
        vectors=of_pool,
        unit_of=np.repeat(np.arange(len(pool)), PER_TEXT),
        starts=np.arange(len(pool) + 1) * PER_TEXT,
        words=np.zeros((len(pool), 1), dtype=np.float32),  # no words are named here
        is_rare=np.zeros(1, dtype=np.bool_),
    )
    for epsilon in epsilons:
        predicted = problem.predicted(_outputs(mechanism, queries, bank, epsilon))
        share = found_at(mechanism, sources, epsilon).linkage
        found = Share.of(round(share * len(pool)), len(pool))
        row: Row = {"epsilon": epsilon, "share": share, "candidates": len(pool)}
        row["linkage"] = f"{share:.3f} ({found.low:.3f}–{found.high:.3f})"
        row |= {what: interval(problem, predicted[what], what) for what in problem.columns}
        print(problem.name, encoder.name, row, file=sys.stderr, flush=True)
        yield row


def _outputs(
    mechanism: SentenceDraws, queries: Vectors, bank: SentenceBank, epsilon: float
) -> list[str]:
    of = np.repeat(np.arange(len(queries)), PER_TEXT)
    spent: Floats = np.full(len(of), epsilon)
    noise = mechanism.noise(spent, stream(SEED, "encoders"))
    rows = mechanism.replace_queries(queries, of, spent, noise).reshape(-1, PER_TEXT)
    return [" ".join(bank.texts[row] for row in each) for each in rows.tolist()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encoders", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, metavar="FOLDER", required=True)
    parser.add_argument("--work", type=Path, metavar="FOLDER", required=True)
    parser.add_argument("--json", type=Path, help="keep the rows here", required=True)
    parser.add_argument("--only", nargs="+", default=["sst2", "movie_authors"], metavar="FILE")
    parser.add_argument("--encoders", nargs="+", default=ENCODERS, choices=ENCODERS)
    parser.add_argument("--weights", type=float, nargs="+", default=WEIGHTS, metavar="W")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS, metavar="E")
    options = parser.parse_args(arguments)
    rows = list[Row]()
    for row in measure(options):
        rows.append(row)
        write_json(rows, options.json)
    print(markdown(COLUMNS, rows))


if __name__ == "__main__":
    main()
