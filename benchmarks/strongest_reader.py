"""The n-gram adversary against the trained adversary: the content words that each names at the
levels of protection.

    uv run python -m benchmarks.strongest_reader --corpus FOLDER --check FILE.parquet FILE.parquet

Texts are public, and these three parts have no text in common. The n-gram model learns from the
first half of the files of the corpus (JSON lines, compressed); the trained adversary learns from
rewritten texts of the second half without the last file. Both are compared on texts of the last
file, from which the levels were computed, and of other data sets. Both see the same outputs. At
each level one trained adversary learns from the outputs of all mechanisms named. With ``--json``,
levels that do not hold against it get a smaller epsilon. Noise is seeded, so the output is not
private. ``--evidence`` stores what was computed from the texts, so that an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.learnt_reader import (
    KEPT,
    OFFSETS,
    Evidence,
    Weights,
    Words,
    guesses,
    trained,
)
from benchmarks.protection import (
    RARE,
    Measuring,
    drawn,
    largest,
    learnt,
    read_texts,
    write_levels,
)
from benchmarks.table import markdown
from lexveil.base.types import Bytes, Floats, Ids, Vectors
from lexveil.core.language_models.language_model import NgramModel
from lexveil.core.protection import LEVELS, MeasuredLevel, Shares
from lexveil.io.artifacts.levels import level_of, measured_levels
from lexveil.io.artifacts.model import Model
from lexveil.readers.context import LIKELY, LOOKED_AT, ContextualAdversary
from lexveil.readers.counted_words import NEVER
from lexveil.readers.seen_tokens import Symbols

MECHANISMS = ("tem", "tem_context", "madlib", "diffractor_geometric")
SEED = 1
LONGEST = 200  # largest number of words of a text
SIDE_BY_SIDE = 10_000  # words that are rewritten and read at a time
DRAWS = 2_000  # bootstrap draws of the documents, for an interval
PER_CENT = 100
LOWEST = 4  # the search of a new epsilon ends at this fraction of the known epsilon
COLUMNS = {
    "texts": "texts",
    "mechanism": "mechanism",
    "level": "level",
    "epsilon": "ε",
    "learnt_from": "training words",
    "n": "content words",
    "candidates": "true word among candidates",
    "by_word": "by word",
    "by_context": "by n-grams",
    "learnt": "learnt",
    "more": "trained minus n-grams",
    "n_rare": "rare words",
    "rare_by_context": "rare by n-grams",
    "rare_learnt": "rare, learnt",
    "rare_more": "rare, trained minus n-grams",
}


class Read(NamedTuple):
    """Replaced words, (n,) each, with the evidence about them.

    Attributes:
        evidence: input of the trained adversary.
        true: the source words.
        by_word, by_context: guesses of the unigram and of the contextual adversary.
    """

    evidence: Evidence
    true: Ids
    by_word: Ids
    by_context: Ids

    @classmethod
    def joined(cls, parts: Sequence[Read]) -> Read:
        """Concatenate the words of several batches of texts."""
        evidence = Evidence.joined([part.evidence for part in parts])
        rest = (np.concatenate(each) for each in zip(*(part[1:] for part in parts), strict=True))
        return cls(evidence, *rest)

    def save(self, file: Path) -> None:
        """Write the words to a file, each array by its name."""
        partly = file.with_suffix(".part.npz")
        known = {name: getattr(self, name) for name in self._fields[1:]}
        np.savez(partly, allow_pickle=False, **self.evidence._asdict(), **known)
        partly.replace(file)

    @classmethod
    def load(cls, file: Path) -> Read:
        """Read a file that ``save`` wrote."""
        with np.load(file, allow_pickle=False) as arrays:
            evidence = Evidence(*(arrays[name] for name in Evidence._fields))
            return cls(evidence, *(arrays[name] for name in cls._fields[1:]))


class EvidenceReader(ContextualAdversary):
    """The contextual adversary, which also collects the input of the trained adversary."""

    def __init__(self, measuring: Measuring, epsilon: float, words: Words) -> None:
        """Build the adversary of one mechanism at one epsilon."""
        public = measuring.public
        adversary = public.adversary((epsilon / 1.01, epsilon * 1.01))
        prior = np.maximum(public.prior, NEVER)
        model = measuring.language_model
        assert model is not None
        super().__init__(adversary, prior, model, measuring.pieces, with_output_only=True)
        self.words = words
        self.gathered = list[Evidence]()
        # The kept words are function words, the most frequent ones of the n-gram model.
        frequent = np.argsort(-self.bigrams.single, kind="stable")[:KEPT]
        self.number_of_kept = np.zeros(len(self.bigrams.single), dtype=np.int64)
        self.number_of_kept[frequent] = np.arange(1, len(frequent) + 1)

    def guess_part(self, tokens: Symbols) -> list[Ids]:
        """Return the guesses, as ``ContextualAdversary`` does; the contextual adversary considers
        fewer candidates than the trained one.
        """
        found = self.adversary.in_texts(tokens, LOOKED_AT)
        chains = self._decode(tokens, *self._suiting(found, *self._neighbours(tokens)))
        near = (found.ids >= 0) & (found.log_joint > found.log_joint[:, :1] - LIKELY)
        log_p = np.where(near, found.log_joint - np.log(self.prior[found.ids]), -np.inf)
        channel = log_p - log_p.max(axis=1, keepdims=True)
        likelihood = np.where(near, np.maximum(np.exp(channel), NEVER), 0)
        posterior = np.maximum(self._decode(tokens, found.ids, likelihood).posterior, 0)
        context = np.log(np.maximum(posterior, NEVER)) - np.where(near, channel, 0)
        context = np.where(near, context, -np.inf)
        context -= context.max(axis=1, keepdims=True)
        known = np.where(near, found.ids, -1), channel, context, posterior
        self.gathered.append(self._evidence(tokens, *known))
        return [found.ids[:, 0], chains.best(), np.empty(0, dtype=np.int64)]

    def _evidence(
        self, tokens: Symbols, ids: Ids, channel: Floats, context: Floats, posterior: Floats
    ) -> Evidence:
        drawn = np.flatnonzero(tokens.outputs >= 0)
        text_of = np.unique(tokens.text_of[drawn], return_inverse=True)[1]
        kept, around = self._around(tokens, drawn)
        means = self._means(ids, posterior)
        sizes = np.bincount(text_of)
        sums = np.add.reduceat(means, np.cumsum(sizes) - sizes, axis=0)
        topic = (sums[text_of] - means) / np.maximum(sizes[text_of] - 1, 1)[:, None]
        repeated = repeats(text_of, ids, posterior)
        return Evidence(
            ids=ids.astype(np.int32),
            channel=channel.astype(np.float32),
            context=context.astype(np.float16),
            repeated=repeated.astype(np.float16),
            kept=kept.astype(np.int16),
            around=around,
            outputs=tokens.outputs[drawn],
            means=means.astype(np.float16),
            topic=topic.astype(np.float16),
            text_of=text_of,
        )

    def _around(self, tokens: Symbols, drawn: Ids) -> tuple[Ids, Ids]:
        """Return for each replaced word the numbers of the kept words around it, 0 if none was kept
        there; and the numbers of the replaced words around it, else -1.
        """
        n = len(tokens.text_of)
        number = np.full(len(tokens.text_of), -1)
        number[drawn] = np.arange(len(drawn))
        kept = np.where(tokens.first >= 0, self.number_of_kept[tokens.first], 0)
        at = drawn[:, None] + OFFSETS
        inside = (at >= 0) & (at < n)
        at = np.where(inside, at, 0)
        inside &= tokens.text_of[at] == tokens.text_of[drawn, None]
        return np.where(inside, kept[at], 0), np.where(inside, number[at], -1)

    def _means(self, ids: Ids, posterior: Floats) -> Vectors:
        """Return the mean vectors of candidates, (n, p)."""
        means = np.empty((len(ids), self.words.vectors.shape[1]), np.float32)
        for start in range(0, len(ids), 2048):
            some = slice(start, start + 2048)
            vectors = self.words.vectors[ids[some]]
            weights = posterior[some].astype(np.float32)
            means[some] = (weights[:, None] @ vectors)[:, 0]
        return means


def repeats(text_of: Ids, ids: Ids, posterior: Floats) -> Floats:
    """Return the expected number of occurrences of each candidate of n words elsewhere in its text,
    (n, k).
    """
    keys = text_of[:, None] * (ids.max(initial=0) + 2) + ids + 1
    _, place = np.unique(keys.ravel(), return_inverse=True)
    total = np.bincount(place, posterior.ravel())[place].reshape(ids.shape)
    return np.maximum(total - posterior, 0)


def read(measuring: Measuring, texts: Sequence[str], epsilon: float, words: Words) -> Read:
    """Rewrite texts at an epsilon, and run the adversaries on them."""
    reader = EvidenceReader(measuring, epsilon, words)
    parts = list[Read]()
    number = 0
    for some in batches(texts):
        names = [str(number + place) for place in range(len(some))]
        number += len(some)
        seen = measuring.seen(measuring.rewritten(some, epsilon, names))
        reader.gathered.clear()
        found = reader.guess(seen)
        assert seen.source is not None
        true = seen.source[seen.outputs >= 0]
        evidence = Evidence.joined(reader.gathered)
        parts.append(Read(evidence, true, found.by_word, found.by_context))
    return Read.joined(parts)


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield texts in order, about ``SIDE_BY_SIDE`` words at a time."""
    some = list[str]()
    n_words = 0
    for text in texts:
        some.append(text)
        n_words += len(text.split())
        if n_words >= SIDE_BY_SIDE:
            yield some
            some = []
            n_words = 0
    if some:
        yield some


def public_words(measuring: Measuring) -> Words:
    """Return the vectors and frequencies of the words of a mechanism."""
    rows = measuring.public.prepared.vocabulary.rows
    space = measuring.engine.model.embedding("S1")
    vectors = np.asarray(space.vectors[rows], dtype=np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    # Words with prior 0 are no candidates.
    log_prior = np.log(np.maximum(measuring.public.prior, 1e-12))
    return Words(vectors, (log_prior - log_prior.mean()).astype(np.float32))


def interval(text_of: Ids, right: Floats) -> tuple[float, float, float]:
    """Return the mean over n words and its 95% interval, by a bootstrap over their texts."""
    sizes = np.bincount(text_of)
    sums = np.bincount(text_of, right)
    times = np.random.default_rng(SEED).multinomial(
        len(sizes), np.full(len(sizes), 1 / len(sizes)), DRAWS
    )
    means = (times @ sums) / (times @ sizes)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(right.mean()), float(low), float(high)


class Cell(NamedTuple):
    """A mechanism at the epsilon of one of its levels."""

    measuring: Measuring
    known: MeasuredLevel

    def read(self, name: str, texts: Sequence[str], folder: Path | None) -> Read:
        """Return the results of the adversaries on the texts of a name, from the folder if it has
        them; otherwise compute and store them.
        """
        epsilon = self.known.epsilon
        words = public_words(self.measuring)
        if folder is None:
            return read(self.measuring, texts, epsilon, words)
        file = folder / f"{self.known.mechanism}-{epsilon:g}-{name}-{len(texts)}.npz"
        if not file.exists():
            read(self.measuring, texts, epsilon, words).save(file)
        return Read.load(file)


class Trained(NamedTuple):
    """A trained adversary for the mechanisms of one model, which have the same words."""

    words: Words
    weights: Weights

    @classmethod
    def of(cls, words: Words, examples: Read) -> Trained:
        """Train the adversary on words with known sources."""
        rng = np.random.default_rng(SEED)
        begun = Weights.begun(words, rng)
        return cls(words, trained(examples.evidence, examples.true, words, begun, rng))

    def guesses(self, some: Read) -> Ids:
        """Return the words that the adversary guesses, (n,)."""
        return guesses(some.evidence, self.words, self.weights)


def compared(reader: Trained, some: Read, bands: Bytes) -> dict[str, object]:
    """Return the share of words that each adversary names, in per cent, as a row of the table."""
    answers = {
        "by_word": some.by_word,
        "by_context": some.by_context,
        "learnt": reader.guesses(some),
    }
    right = {name: (guess == some.true).astype(np.float64) for name, guess in answers.items()}
    right["more"] = right["learnt"] - right["by_context"]
    among = (some.evidence.ids == some.true[:, None]).any(axis=1)
    of_band = {"": bands[some.true] > 0, "rare_": bands[some.true] == RARE}
    row: dict[str, object] = {"n": int(of_band[""].sum()), "n_rare": int(of_band["rare_"].sum())}
    row["candidates"] = f"{PER_CENT * among[of_band['']].mean():.0f}"
    for (prefix, of), (name, each) in product(of_band.items(), right.items()):
        mean, low, high = interval(some.evidence.text_of[of], each[of])
        row[prefix + name] = f"{PER_CENT * mean:.1f} ({PER_CENT * low:.1f}–{PER_CENT * high:.1f})"
    return row


def followed(reader: Trained, cell: Cell, texts: Sequence[str]) -> MeasuredLevel:
    """Return the level with the largest epsilon, up to the known epsilon, at which the level holds
    against all adversaries on some texts.
    """
    bands = cell.measuring.public.bands
    known = cell.known

    @cache
    def strongest(epsilon: float) -> Shares:
        some = read(cell.measuring, texts, epsilon, reader.words)
        of = bands[some.true]
        answers = (some.by_word, some.by_context, reader.guesses(some))
        right = [guess == some.true for guess in answers]
        return Shares(
            max(float(each[of > 0].mean()) for each in right),
            max(float(each[of == RARE].mean()) for each in right),
        )

    allowed = next(shares for name, shares in LEVELS.items() if name == known.level)
    epsilon = known.epsilon
    found = strongest(epsilon)
    if found.content > allowed.content or found.rare > allowed.rare:
        lower = largest(strongest, allowed, (epsilon / LOWEST, epsilon))
        if lower is None:
            raise SystemExit(f"{known} does not hold at 1/{LOWEST} of its epsilon either")
        epsilon = lower
    return known._replace(epsilon=epsilon, **strongest(epsilon)._asdict())


def cells_of(
    model: Model, mechanisms: Sequence[str], levels: Sequence[str], language_model: NgramModel
) -> list[list[Cell]]:
    """Return the mechanisms that reach each level."""
    assert model.sha256 is not None
    shipped = measured_levels(model.sha256)
    measuring = {name: Measuring(model, name, "S1", language_model) for name in mechanisms}
    cells = (
        [
            Cell(measuring[name], known)
            for name in mechanisms
            if (known := level_of(shipped, name, "S1", level)) is not None
        ]
        for level in levels
    )
    return [some for some in cells if some]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train adversaries, and print the share of words that they name."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.strongest_reader",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--corpus", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--check", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--model", default="en", metavar="NAME")
    parser.add_argument("--mechanism", nargs="+", default=MECHANISMS, metavar="NAME")
    parser.add_argument("--level", nargs="+", default=list(LEVELS), choices=list(LEVELS))
    parser.add_argument(
        "--learn", type=int, default=10_000_000, metavar="N", help="words of the n-gram model"
    )
    parser.add_argument(
        "--train",
        type=int,
        default=100_000,
        metavar="N",
        help="words on which an adversary is trained",
    )
    parser.add_argument(
        "--words", type=int, default=8_000, metavar="N", help="words of each set for the comparison"
    )
    parser.add_argument(
        "--evidence", type=Path, metavar="FOLDER", help="store computed evidence here"
    )
    parser.add_argument(
        "--json", type=Path, help="compute new epsilons of the levels, and write them here"
    )
    options = parser.parse_args(arguments)
    *files, held_out = sorted(options.corpus.glob("*.json.gz"))
    half = len(files) // 2
    folder = options.evidence
    model = Model.load(name=options.model)
    language_model = learnt(files[:half], options.learn)
    to_learn = drawn(
        [text for file in files[half:] for text in read_texts(file)], options.train, LONGEST
    )
    sets = {
        file.name.split(".")[0]: drawn(read_texts(file), options.words, LONGEST)
        for file in (*options.check, held_out)
    }
    rows = list[dict[str, object]]()
    levels = list[MeasuredLevel]()
    for cells in cells_of(model, options.mechanism, options.level, language_model):
        examples = Read.joined([cell.read("examples", to_learn, folder) for cell in cells])
        reader = Trained.of(public_words(cells[0].measuring), examples)
        for cell, (name, texts) in product(cells, sets.items()):
            about = {**cell.known._asdict(), "learnt_from": len(examples.true), "texts": name}
            some = cell.read(name, texts, folder)
            rows.append(about | compared(reader, some, cell.measuring.public.bands))
            print(f"  {rows[-1]}", file=sys.stderr, flush=True)
        if options.json:
            levels += [followed(reader, cell, [*sets.values()][-1]) for cell in cells]
            print(f"  {levels[-len(cells) :]}", file=sys.stderr, flush=True)
    print(markdown(COLUMNS, rows))
    if options.json:
        write_levels(model, levels, options.json)


if __name__ == "__main__":
    main()
