"""Calibration by recovery: how long it takes, and what a reader gets back of texts that it has not seen.

    python -m benchmarks.calibration sst2.parquet --mechanism tem --strategy S1 --recovery 0.1 --band rare
    python -m benchmarks.calibration --made 50000 --mechanism tem madlib     # speed, on made vectors

Epsilon is what `lexveil calibrate` finds with the model en, from nothing kept; CPU seconds, all threads. Of texts
(Parquet, column text) every perturbed word gets that epsilon. Of `public`: what was expected by public frequencies;
below it what the same reader names of each file's words, and what one names who knows that file's own frequencies.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks import material
from benchmarks.table import print_table
from lexveil.accounting.budgets import Action, Policy
from lexveil.artifacts.mechanisms import Prepared
from lexveil.artifacts.model import Model
from lexveil.errors import LexveilError
from lexveil.mechanisms.registry import build_mechanism
from lexveil.privatization.engine.plan import plan_tokens
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.bands import ALL, BANDS, bands_of, prior_of
from lexveil.recovery.by_word import build_adversary
from lexveil.recovery.calibration import Calibrated, Curve, epsilon_for, recovered
from lexveil.recovery.public_words import PublicWords
from lexveil.recovery.shares import by_band
from lexveil.text.encode import encode
from lexveil.types import Ids

OF_BAND = 2_000  # words of texts at most, of each band
SHOWN = {"mechanism": "mechanism", "strategy": "", "epsilon": "ε", "cpu": "CPU-s", "of": "of", "who": "reader"} | {
    name: name for name in (ALL, *BANDS)
}


def words_of(file: Path, model: Model, strategy: str, policy: Policy, prepared: Prepared) -> Ids:
    """The words of a file's texts that are perturbed, as numbers of the mechanism."""
    texts = [text for text in pq.read_table(file, columns=["text"]).column("text").to_pylist() if text]
    plan = plan_tokens(encode(texts, model.lexicon(strategy)), prepared.vocabulary.number, policy)
    found: Ids = plan.known[plan.action == Action.PERTURBED.value].astype(np.int64)
    return found


def measured(words: PublicWords, reader: Adversary, ids: Ids, epsilon: float) -> dict[str, float]:
    """What a reader names of some words, by band, and of all as the texts have them."""
    mass = np.bincount(words.bands[ids], minlength=len(BANDS)) / len(ids)
    rng = np.random.default_rng(3)
    some = np.concatenate(
        [
            rng.permutation(members)[:OF_BAND]
            for number in range(len(BANDS))
            if len(members := ids[words.bands[ids] == number])
        ]
    )
    budgets, mechanism = np.full(len(some), epsilon), words.prepared.mechanism
    outputs = mechanism.replace(some, budgets, mechanism.noise(budgets, rng))
    shares = by_band(reader.guess(outputs, budgets) == some, words.bands[some])
    found = {band: shares[band].share for band in BANDS if shares[band].n}
    return found | {ALL: float(sum(mass[BANDS.index(band)] * share for band, share in found.items()))}


def calibrated(words: PublicWords, recovery: float, band: str) -> Calibrated:
    """What `lexveil calibrate` does where nothing is kept."""
    return epsilon_for(Curve(words.expected, words.blind()), recovery, band, None, words.epsilon_near(recovery, band))


def on_texts(
    files: Sequence[Path], mechanism: str, strategy: str, recovery: float, band: str
) -> Iterator[dict[str, Any]]:
    """Calibrate from nothing, then read texts."""
    model = Model.load(None, "en")
    defaults = model.params.policy
    policy = Policy.of(strategy, defaults.stopwords, defaults.punctuation, defaults.oov)
    prepared = model.mechanism(mechanism, strategy, policy)
    start = time.process_time()
    words = PublicWords.of(model, mechanism, strategy, policy, prepared)
    found = calibrated(words, recovery, band)
    cpu, epsilon = time.process_time() - start, found.epsilon
    row = {"mechanism": mechanism, "strategy": strategy, "epsilon": epsilon}
    expected = {name: recovered(found.expected, name) for name in (ALL, *BANDS)}
    yield row | {"cpu": cpu, "of": "public", "who": "public"} | expected
    reader = words.adversary((epsilon, epsilon))
    for file in files:
        ids = words_of(file, model, strategy, policy, prepared)
        yield row | {"of": file.stem, "who": "public"} | measured(words, reader, ids, epsilon)
        own = prior_of(np.bincount(ids, minlength=prepared.mechanism.size).astype(np.float64))
        knows = build_adversary(prepared.mechanism, own, (epsilon, epsilon))
        yield row | {"of": file.stem, "who": "knows the set"} | measured(words, knows, ids, epsilon)


def on_made(n_words: int, mechanism: str, recovery: float, band: str) -> dict[str, Any]:
    """Calibrate over made vectors of 300 dimensions with Zipf's frequencies, from nothing."""
    vectors, counts = material.made_vectors(n_words, 300), 10_000_000 // np.arange(1, n_words + 1)
    orders = np.stack([np.random.default_rng(seed).permutation(n_words) for seed in range(2)]).astype(np.int32)
    made: Any = SimpleNamespace(mechanism=build_mechanism(mechanism, vectors, {}, orders))
    words = PublicWords(made, prior_of(counts), bands_of(counts, np.arange(n_words) < 150))
    start = time.process_time()
    found = calibrated(words, recovery, band)
    cpu = time.process_time() - start
    expected = {name: recovered(found.expected, name) for name in (ALL, *BANDS)}
    return {"mechanism": mechanism, "epsilon": found.epsilon, "cpu": cpu, "of": f"V = {n_words:,}"} | expected


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--made", type=int, metavar="V")
    parser.add_argument("--mechanism", nargs="+", default=["tem"])
    parser.add_argument("--strategy", nargs="+", default=["S1"])
    parser.add_argument("--recovery", type=float, default=0.1)
    parser.add_argument("--band", default="rare")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for mechanism in given.mechanism:
        if given.made:
            rows.append(on_made(given.made, mechanism, given.recovery, given.band))
            continue
        for strategy in given.strategy:
            try:
                rows += on_texts(given.files, mechanism, strategy, given.recovery, given.band)
            except LexveilError as error:
                print(f"{mechanism} {strategy}: {error}")
    print_table(SHOWN, rows)


if __name__ == "__main__":
    main()
