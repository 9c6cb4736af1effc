"""Recovery by the unigram adversaries: their speed, and the shortfall of the estimated adversary
against the exact adversary.

    uv run python -m benchmarks.recovery            # speed, on made vectors
    uv run python -m benchmarks.recovery --errors   # against TEM's closed form, and on toys
    uv run python -m benchmarks.recovery --bands    # recovery by band at equal overall recovery

Speed is measured for a run of texts of about 20 tokens, each with an epsilon of its own, in CPU
seconds of all threads of the process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import limits, material
from benchmarks.table import markdown, print_table
from lexveil.base.errors import LexveilError
from lexveil.base.types import Bytes, Floats, Orders, Vectors
from lexveil.core.mechanisms.base import Mechanism
from lexveil.core.mechanisms.registry import MECHANISMS, Space, build_mechanism
from lexveil.core.text.languages.english import STOP_WORDS
from lexveil.core.text.normal_forms import is_punctuation
from lexveil.io.artifacts.packaged_model import PackagedModel
from lexveil.readers.adversary import Adversary, Ladder
from lexveil.readers.bands import BANDS, bands_of, prior_of
from lexveil.readers.calibration import Curve, epsilon_for, without_output
from lexveil.readers.estimate import EstimatedAdversary
from lexveil.readers.shares import Expected, WordSample, expected
from lexveil.readers.tem import RATIO, TemAdversary
from lexveil.readers.unigram import build_adversary

N_WORDS = 30_000
DIMENSIONS = 300
TOKENS = 200_000
# These ε leave about a third of the words unchanged on made vectors.
EPSILONS = {"tem": 5.0, "diffractor_geometric": 1.0, "diffractor_tem": 1.0, "truncated_gumbel": 5.0}
NOISY = 40.0
AGAINST = 2_000, (2.0, 4.0, 7.0)  # words and epsilons of TEM, for the comparison
OF_BAND = 1_000  # words of each band, for a 95% interval of at most ± 0.031
LEVELS = (0.05, 0.2, 0.5)  # recovered shares of the content words
# first epsilon of the search, for mechanisms on the vectors of the model en
NEAR = 8.0
SPREAD = 4.5  # budgets of a run lie between epsilon / SPREAD and epsilon * SPREAD
PAPER = {"truncated_gumbel": {"calibration": "paper"}}
SPEED = {
    "mechanism": "mechanism",
    "n_words": "V",
    "rungs": "rungs",
    "build": "build CPU-s",
    "product": "product CPU-s",
    "tokens": "tokens",
    "decode": "decode CPU-s",
    "microseconds": "µs/token",
    "recovered": "recovered",
    "unchanged": "unchanged",
}
BANDED = {"epsilon": "ε", "reader": "reader", "overall": "all words"} | {
    band: band for band in BANDS
}
AT_LEVEL = (
    {"level": "content words", "mechanism": "mechanism", "epsilon": "ε"}
    | {band: band for band in BANDS}
    | {"rare_unchanged": "rare, unchanged", "note": ""}
)
TOYS = {
    "mechanism": "mechanism",
    "dimensions": "p",
    "epsilon": "ε",
    "table": "table",
    "estimate": "estimate",
    "unchanged": "outputs unchanged",
}


def speed(name: str, n_words: int, dimensions: int, tokens: int) -> dict[str, Any]:
    """Build the adversary of one mechanism for a run, decode the outputs, and return the times."""
    vectors = material.made_vectors(n_words, dimensions)
    prior = prior_of(10_000_000 // np.arange(1, n_words + 1))
    orders = np.stack(
        [np.random.default_rng(seed).permutation(n_words) for seed in range(2)]
    ).astype(np.int32)
    mechanism = build_mechanism(name, Space(vectors, orders), PAPER)
    centre = EPSILONS.get(name, NOISY)
    low = centre / SPREAD
    high = centre * SPREAD
    _warm_up(name)
    ids = material.draw_tokens(tokens, prior)
    epsilon = np.clip(material.document_epsilons(tokens, centre), low, high)
    rng = np.random.default_rng(0)
    outputs = mechanism.replace(ids, epsilon, mechanism.noise(epsilon, rng))
    start = time.process_time()
    reader = build_adversary(mechanism, prior, (low, high))
    built = time.process_time()
    guesses = reader.guess(outputs, epsilon)
    done = time.process_time()
    return {
        "mechanism": name,
        "n_words": n_words,
        "rungs": len(ladder.rungs)
        if isinstance(ladder := getattr(reader, "ladder", None), Ladder)
        else 0,
        "build": built - start,
        "product": n_words**2 * dimensions / limits.sgemm(dimensions),  # half of all pairs
        "tokens": tokens,
        "decode": done - built,
        "microseconds": 1e6 * (done - built) / tokens,
        "recovered": float((guesses == ids).mean()),
        "unchanged": float((outputs == ids).mean()),
    }


def _warm_up(name: str) -> None:
    vectors = material.made_vectors(3000, 8)
    orders = np.arange(3000, dtype=np.int32)[None]
    mechanism = build_mechanism(name, Space(vectors, orders), PAPER)
    build_adversary(mechanism, np.full(3000, 1 / 3000), (9.0, 11.0)).guess(
        np.arange(9), np.full(9, 10.0)
    )


class Words(NamedTuple):
    """The most frequent words of the model en, with their vectors, orders, prior and bands."""

    vectors: Vectors
    orders: Orders
    prior: Floats
    bands: Bytes

    @classmethod
    def of(cls, n_words: int) -> Words:
        """Load the first ``n_words`` words that are not punctuation, and their orders in the
        model.
        """
        import lexveil.models

        model = PackagedModel(Path(lexveil.models.__path__[0]) / "en")
        space = model.space("word")
        orders = model.word_lists("word", "L0").orders
        rows = np.flatnonzero([not is_punctuation(token) for token in space.tokens])[:n_words]
        number = np.full(len(space.tokens), -1)
        number[rows] = np.arange(len(rows))
        of_these = np.stack([of[of >= 0] for order in orders for of in (number[order],)]).astype(
            np.int32
        )
        bands = bands_of(
            space.counts[rows], np.array([space.tokens[row] in STOP_WORDS for row in rows])
        )
        return cls(
            np.ascontiguousarray(space.vectors[rows]), of_these, prior_of(space.counts[rows]), bands
        )

    def mechanism(self, name: str) -> Any:
        """Build a mechanism over the words."""
        return build_mechanism(name, Space(self.vectors, self.orders), PAPER)


def by_bands(words: Words, name: str) -> Iterator[dict[str, Any]]:
    """Yield the expected recovery of each band at each level of recovered content words, computed
    as in `lexveil calibrate`.
    """
    mechanism = words.mechanism(name)
    sample = WordSample.draw(words.prior, words.bands, np.random.default_rng(5), OF_BAND // 2)

    def compute(epsilon: float) -> Expected:
        reader = build_adversary(mechanism, words.prior, (epsilon, epsilon))
        return expected(mechanism, reader, sample, epsilon, np.random.default_rng(9))

    curve = Curve(compute, without_output(words.prior, words.bands))
    for level in LEVELS:
        row: dict[str, Any] = {"level": level, "mechanism": name}
        try:
            epsilon, found = epsilon_for(curve, level, "content", start=EPSILONS.get(name, NEAR))
        except LexveilError as error:
            yield row | {"note": str(error)}
            continue
        shares = {
            band: f"{share.share:.1%} ({100 * share.low:.1f}–{100 * share.high:.1f})"
            for band, share in found.recovered.items()
        }
        yield (
            row
            | {"epsilon": epsilon}
            | shares
            | {"rare_unchanged": f"{found.unchanged['rare'].share:.1%}"}
        )


def against_tem(n_words: int, epsilons: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Yield the recovery of both adversaries from the same TEM outputs, by band, on the most
    frequent words of the model en.
    """
    words = Words.of(n_words)
    prior = words.prior
    mechanism = words.mechanism("tem")
    sample = WordSample.draw(prior, words.bands, np.random.default_rng(5), OF_BAND)
    ends = min(epsilons), max(epsilons)
    readers: dict[str, Adversary] = {
        f"exact, epsilons spaced by a factor of {RATIO:.2f}": TemAdversary(
            mechanism, prior, (ends[0] * 0.93, ends[1] * 1.07)
        ),
        "estimated, between these epsilons": EstimatedAdversary(
            mechanism, prior, (ends[0] * 0.7, ends[1] * 1.4)
        ),
    }
    for epsilon in epsilons:
        for name, reader in readers.items():
            found = expected(mechanism, reader, sample, epsilon, np.random.default_rng(9))
            shares = {band: found.recovered[band].share for band in BANDS}
            yield {
                "epsilon": epsilon,
                "reader": name,
                "overall": found.overall(found.recovered),
            } | shares


def toy(name: str, dimensions: int, epsilon: float, remap: bool = False) -> dict[str, Any]:
    """Return the recovery of the estimated adversary on a toy vocabulary, and the largest recovery
    that the table of its draws allows.
    """
    n_words = 200
    draws = 1000
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(n_words, dimensions)) * np.exp(rng.normal(0, 0.4, n_words))[:, None]
    given: dict[str, Any] = PAPER | {"rank_remap": {"enabled": remap}}
    mechanism: Mechanism = build_mechanism(name, Space(vectors.astype(np.float32)), given)
    prior = 1 / np.arange(1, n_words + 1)
    prior /= prior.sum()
    ids = np.repeat(np.arange(n_words), draws)
    words = np.arange(n_words)
    budgets = np.full(len(ids), epsilon)
    outputs = mechanism.replace(ids, budgets, mechanism.noise(budgets, rng))
    table = (
        np.bincount(ids * n_words + outputs, minlength=n_words**2).reshape(n_words, n_words) / draws
    )
    guess = EstimatedAdversary(mechanism, prior, (epsilon, epsilon)).guess(
        words, np.full(n_words, epsilon)
    )
    return {
        "mechanism": f"{name}, rank_remap" if remap else name,
        "dimensions": dimensions,
        "epsilon": epsilon,
        "table": float((prior[:, None] * table).max(axis=0).sum()),
        "estimate": float((prior[guess] * table[guess, words]).sum()),
        "unchanged": float((prior * table.diagonal()).sum()),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure recovery, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__)
    parser.add_argument("--mechanisms", nargs="+", default=list(MECHANISMS), metavar="NAME")
    parser.add_argument("--words", type=int, default=N_WORDS, help="size of the vocabulary")
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS)
    parser.add_argument("--tokens", type=int, default=TOKENS, help="tokens of a run")
    parser.add_argument("--errors", action="store_true", help="measure errors instead of speed")
    parser.add_argument(
        "--bands",
        action="store_true",
        help="measure recovery by band, with --words words of the model en",
    )
    options = parser.parse_args(arguments)
    if options.bands:
        words = Words.of(options.words)
        rows = [row for name in options.mechanisms for row in by_bands(words, name)]
        print(markdown(AT_LEVEL, sorted(rows, key=lambda row: float(row["level"]))))
        return
    if not options.errors:
        sizes = options.words, options.dimensions, options.tokens
        print_table(SPEED, [speed(name, *sizes) for name in options.mechanisms])
        return
    start = time.process_time()
    print_table(BANDED, list(against_tem(*AGAINST)))
    named = ("tem", "madlib", "mahalanobis", "vickrey", "truncated_gumbel")
    rows = [
        toy(name, p, e)
        for p, ladder in ((3, (3.0, 12.0)), (10, (3.0, 6.0)))
        for e in ladder
        for name in named
    ]
    rows += [
        toy("madlib", p, e, remap=True) for p, e in ((3, 3.0), (3, 12.0), (10, 3.0), (10, 6.0))
    ]
    print_table(TOYS, rows)
    print(f"{time.process_time() - start:.0f} CPU-s")


if __name__ == "__main__":
    main()
