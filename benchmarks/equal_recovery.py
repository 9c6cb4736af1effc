r"""Utility and attack of mechanisms and strategies at equal recovery: what the reader gets back is the same.

    uv run python -m benchmarks.equal_recovery --data FOLDER
    uv run python -m benchmarks.equal_recovery --data FOLDER --mechanism tem madlib --strategy S1 S3 --level 0.2
    uv run python -m benchmarks.equal_recovery --data FOLDER --model en en+sentiment=1 --mechanism tem tem_context \
        --strategy S1 --json rows.json    # what the file has already is not measured again

Of each data set equally many texts of either class are drawn, and rewritten by every mechanism and strategy at the base
epsilon, found by bisection, at which the reader by the word names the wanted share of the perturbed content words,
which are no function words. A linear classifier learns from rewritten texts to predict the class of other rewritten
texts: what is utility where the class is what the texts are for, and an attack where it is who wrote them. Each score
stands with its 95% interval over the documents that are predicted (percentiles of 1,000 bootstrap draws of them). The
folder has sst2.parquet, imdb.parquet, trustpilot.parquet, movie_authors.parquet and tweets.parquet, but for those that
`--only` leaves out; `--model en+sentiment=1` keeps a purpose. Noise is seeded: this protects nothing. Markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from benchmarks.table import markdown
from lexveil.accounting.budgets import STRATEGIES, TOKEN_CAP, Action, DocumentBudget, Policy
from lexveil.artifacts.model import Model
from lexveil.evaluation.classifier import Linear
from lexveil.privatization.engine.batch import Batch
from lexveil.privatization.engine.engine import Engine
from lexveil.privatization.settings import Settings
from lexveil.recovery.bands import BANDS
from lexveil.recovery.context import written_before
from lexveil.recovery.public_words import PublicWords
from lexveil.recovery.shares import Share
from lexveil.runtime.tables import write_json

SEED = 1
TEST_SHARE = 0.3  # of the texts of a class are predicted
STEPS = 7  # of a bisection on ln ε
TRIED = 12_000  # words by which ε is found
RESAMPLED = 1_000  # bootstrap draws of the documents that are predicted
RANGES = {"diffractor_geometric": (0.002, 20.0), "diffractor_tem": (0.004, 40.0)}
RANGE = (0.5, 128.0)  # of the others, in 1 / units of the embedding
COLUMNS = {
    "level": "recovery",
    "model": "model",
    "mechanism": "mechanism",
    "strategy": "strategy",
    "epsilon": "base ε",
    "recovered": "reached",
    "unchanged": "unchanged",
    "rare": "rare words",
    "utility": "utility",
    "attack": "attack",
    "note": "",
}


class Score(NamedTuple):
    """A score with its 95% interval."""

    score: float
    low: float
    high: float

    @classmethod
    def of(cls, truth: Sequence[str], predicted: Sequence[str]) -> Score:
        """Macro F1 over the classes that are true, by percentiles of the bootstrap over documents."""
        n, classes = len(truth), sorted(set(truth))
        true = np.array([[one == name for one in truth] for name in classes])
        guessed = np.array([[one == name for one in predicted] for name in classes])
        draws = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), RESAMPLED)
        weights = np.vstack([np.ones(n, dtype=draws.dtype), draws])
        right, either = weights @ (true & guessed).T, weights @ true.T + weights @ guessed.T
        f1 = (2 * right / np.maximum(either, 1)).mean(axis=1)
        return cls(float(f1[0]), *map(float, np.percentile(f1[1:], (2.5, 97.5))))

    def __str__(self) -> str:
        return f"{self.score:.2f} ({self.low:.2f}–{self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Problem:
    """Texts, and what is predicted of them: by column, "utility" or "attack"."""

    name: str
    file: str
    columns: dict[str, str]
    texts: Sequence[str] = ()
    classes: Sequence[tuple[str, ...]] = ()
    is_train: Any = None

    def drawn(self, folder: Path, n_train: int, n_test: int, n_words: int) -> Problem:
        """Its texts, of each the first words: equally many of each class of the last column."""
        table = pq.read_table(folder / f"{self.file}.parquet")
        columns = [table.column(name).to_pylist() for name in self.columns.values()]
        classes, rng = list(zip(*columns, strict=True)), np.random.default_rng(SEED)
        given = np.array([None not in row for row in classes])
        is_train = rng.random(len(classes)) >= TEST_SHARE
        rows: list[int] = []
        for part, n in ((is_train, n_train), (~is_train, n_test)):
            chosen = rng.permutation(np.flatnonzero(given & part)).tolist()
            groups = [[row for row in chosen if classes[row][-1] == one] for one in sorted(set(columns[-1]) - {None})]
            each = min(n // len(groups), *map(len, groups))
            rows += [row for group in groups for row in group[:each]]
        # The first words, where some are long: a budget is that of the average text.
        texts = [" ".join(text.split()[:n_words]) for text in table.column("text").take(rows).to_pylist()]
        return Problem(self.name, self.file, self.columns, texts, [classes[row] for row in rows], is_train[rows])

    @property
    def average_words(self) -> float:
        """Words of the average text, rounded: by it ε becomes a budget."""
        return float(round(np.mean([len(text.split()) for text in self.texts])))

    def scores(self, texts: Sequence[str]) -> dict[str, Score]:
        """Macro F1 of each prediction on the held-out texts, learnt from the others."""
        train, test = (np.flatnonzero(some).tolist() for some in (self.is_train, ~self.is_train))
        found = {}
        for place, what in enumerate(self.columns):
            known = [str(row[place]) for row in self.classes]
            model = Linear(SEED).fit([texts[row] for row in train], [known[row] for row in train])
            predicted = model.predict([texts[row] for row in test])
            found[what] = Score.of([known[row] for row in test], predicted)
        return found


PROBLEMS = [
    Problem("SST-2", "sst2", {"utility": "label"}),
    Problem("IMDb", "imdb", {"utility": "label"}),
    Problem("Trustpilot", "trustpilot", {"attack": "attribute"}),
    Problem("Movie authors", "movie_authors", {"utility": "label", "attack": "attribute"}),
    Problem("Tweets", "tweets", {"utility": "label"}),
]


@dataclass(frozen=True, slots=True)
class Run:
    """Rewritten texts and what a reader gets back: of the perturbed content words, named, unchanged; of rare ones."""

    texts: list[str]
    recovered: Share
    unchanged: Share
    rare: Share


class Rewriting:
    """One mechanism and strategy over one model."""

    def __init__(self, model: Model, mechanism: str, strategy: str) -> None:
        self.mechanism, self.strategy = mechanism, strategy
        chosen = model.params.policy
        policy = Policy.of(strategy, chosen.stopwords, chosen.punctuation, chosen.oov)
        self.settings = Settings(mechanism, strategy, 1.0, None, SEED, policy, False, average_words="data")
        self.engine = Engine(self.settings, model)
        self.words = PublicWords.of(model, mechanism, strategy, policy)
        self.range = RANGES.get(mechanism, RANGE)
        # Texts have other lengths, so tokens have other budgets than the base; none gets more than twice of it.
        self.reader = self.words.adversary((self.range[0] / 8, self.range[1] * 2))

    def run(self, texts: Sequence[str], epsilon: float, average_words: float) -> Run:
        """Rewrite texts at a base epsilon, which ``average_words`` make a budget of."""
        budget = DocumentBudget(epsilon * average_words, TOKEN_CAP * epsilon, average_words)
        worker = replace(self.engine.worker(), column_keys=(("text",),), budget_name="1")
        batch = Batch([[text] for text in texts], [(str(number),) for number in range(len(texts))])
        done = worker.draw(batch, budget)
        number = self.words.prepared.vocabulary.number
        at = np.flatnonzero(done.action == Action.PERTURBED.value)
        source, output, budgets = number[done.encoded.rows[at]], number[done.rows[at]], done.token_epsilon[at]
        written = np.where(done.action == Action.KEPT.value, done.encoded.rows, done.rows)
        before = written_before(done.encoded.text_of.astype(np.int64), written, done.action == Action.DROPPED.value)[at]
        content = self.words.bands[source] > 0
        source, output, budgets, before = source[content], output[content], budgets[content], before[content]
        guess = self.reader.guess(output, budgets, before)
        is_named, rare = guess == source, self.words.bands[source] == BANDS.index("rare")
        named, same = int(is_named.sum()), int((output == source).sum())
        of_rare = Share.of(int(is_named[rare].sum()), int(rare.sum()))
        return Run([*done.texts], Share.of(named, len(source)), Share.of(same, len(source)), of_rare)


def found_epsilons(
    recovered: Callable[[float], float], bounds: tuple[float, float], levels: Sequence[float]
) -> Iterator[tuple[float, float | None]]:
    """Each level and, by bisection, the ε within bounds at which so much is recovered; None if there is none."""
    at = cache(recovered)
    for level in levels:
        low, high = bounds
        if at(high) < level:
            yield level, None
            continue
        for _ in range(STEPS):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if at(middle) < level else (low, middle)
        yield level, math.sqrt(low * high)


def compared(problem: Problem, rewriting: Rewriting, levels: Sequence[float]) -> Iterator[dict[str, Any]]:
    """One row for each level."""
    n_words = sum(len(text.split()) for text in problem.texts)
    few = problem.texts[:: max(1, n_words // TRIED)]

    def recovered(epsilon: float) -> float:
        return rewriting.run(few, epsilon, problem.average_words).recovered.share

    for level, epsilon in found_epsilons(recovered, rewriting.range, levels):
        row: dict[str, Any] = {"level": level}
        if epsilon is None:
            yield row | {"note": "not reached"}
            continue
        done = rewriting.run(problem.texts, epsilon, problem.average_words)
        shares = {"recovered": done.recovered.share, "unchanged": done.unchanged.share, "rare": done.rare.share}
        yield row | {"epsilon": epsilon} | shares | problem.scores(done.texts)


def kept_rows(file: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each data set that an earlier call with the same sizes has measured."""
    kept: dict[str, list[dict[str, Any]]] = json.loads(file.read_text(encoding="utf-8"))
    for row in chain.from_iterable(kept.values()):
        row |= {name: Score(*value) for name, value in row.items() if isinstance(value, list)}
    return kept


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.equal_recovery", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--model", nargs="+", default=["en"], metavar="NAME|FOLDER", help="packaged, or projects")
    names = ("tem", "madlib", "mahalanobis", "vickrey", "diffractor_geometric", "diffractor_tem")
    parser.add_argument("--mechanism", nargs="+", default=names)
    parser.add_argument("--strategy", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--level", type=float, nargs="+", default=[0.05, 0.2, 0.5], help="shares of content words")
    parser.add_argument("--only", nargs="+", default=[problem.file for problem in PROBLEMS])
    parser.add_argument("--train", type=int, default=2000, help="texts to learn from")
    parser.add_argument("--test", type=int, default=600, help="texts to predict")
    parser.add_argument("--words", type=int, default=60, help="of each text, its first ones")
    parser.add_argument("--json", type=Path, help="keep the figures here, and go on with what is there already")
    options = parser.parse_args(arguments)
    sizes = options.train, options.test, options.words
    problems = [known.drawn(options.data, *sizes) for known in PROBLEMS if known.file in options.only]
    rows = kept_rows(options.json) if options.json and options.json.exists() else {}
    for problem in problems:
        rows.setdefault(problem.name, [{"mechanism": "clean texts", **problem.scores(problem.texts)}])
    for name, mechanism, strategy in product(options.model, options.mechanism, options.strategy):
        about = {"model": name, "mechanism": mechanism, "strategy": strategy}
        model = Model.load(name, name="own") if Path(name).is_dir() else Model.load(name=name)
        rewriting = Rewriting(model, mechanism, strategy)
        for problem in problems:
            known = [row["level"] for row in rows[problem.name] if about.items() <= row.items()]
            for row in compared(problem, rewriting, [level for level in options.level if level not in known]):
                rows[problem.name].append(about | row)
                print(f"  {problem.name}: {rows[problem.name][-1]}", file=sys.stderr, flush=True)
                if options.json:
                    write_json(rows, options.json)
    for problem in problems:
        found = sorted(rows[problem.name], key=lambda row: row.get("level", 2.0))
        n_train = int(problem.is_train.sum())
        print(
            f"\n{problem.name}: {n_train:,} texts to learn from, {len(problem.texts) - n_train:,} to predict; "
            f"macro F1 (95%); the average text has {problem.average_words:g} words\n"
        )
        print(markdown(COLUMNS, found), flush=True)


if __name__ == "__main__":
    main()
