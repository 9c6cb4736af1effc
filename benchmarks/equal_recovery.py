r"""Utility of mechanisms and purposes at equal recovery by the strongest adversary that can be run.

    uv run python -m benchmarks.equal_recovery --data FOLDER --corpus FOLDER --json rows.json
    uv run python -m benchmarks.equal_recovery --data FOLDER --corpus FOLDER --json rows.json \
        --texts 10

Texts are drawn from each data set, and every mechanism rewrites them with one epsilon for all
tokens. At this epsilon, the stronger of two adversaries (unigram and contextual) names the wanted
share of the perturbed content words of the held-out texts. A linear classifier learns from
rewritten texts to predict a class of the rewritten held-out texts: the utility if the texts serve
this task, another task, or an attack if the class is the author. The contextual adversary uses an
n-gram model, which also measures how natural texts are; it learns from the corpus (JSON lines,
compressed) without the sources of the model's own counts. Three adversaries search the source of an
output among 1,000 texts of similar length of the same data set: by its structure alone, by its
words, and by the exact channel (`lexveil/readers/linkage.py`).

Two processes share the work; rows that the file already has are not measured again. The file holds
rewritten texts, and `--texts` shows some of them: keep the file where the data is. The folder has
sst2.parquet, imdb.parquet, trustpilot.parquet, movie_authors.parquet and tweets.parquet, except
those that `--only` leaves out. Noise is seeded, so the output is not private. The output is
Markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, lru_cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from benchmarks.linkage import readers_of
from benchmarks.problems import PROBLEMS, Problem, Sizes
from benchmarks.protection import RANGES, Measuring, learnt, nats_a_word, with_context
from lexveil.base.runtime.tables import write_json
from lexveil.base.types import Floats
from lexveil.core.language_models.language_model import NgramModel
from lexveil.io.artifacts.model import Model

TRIES = 12  # number of attempts to find the ε of a level
RANGE = (0.5, 128.0)  # range of ε, except for the 1-Diffractors
LEVELS = (0.05, 0.1, 0.2, 0.5)
CLEAN_LEVEL = 1.0
# level of the texts that are shown, and their number
SHOWN = 0.2
KEPT = 10
KAPPA = 0.5  # κ if the output contains only common words
PROCESSES = 2
# number of candidates, one of them the source; number of outputs whose sources are searched
CANDIDATES = 1000
OUTPUTS = 200
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# Names of the adversaries in lexveil/readers/linkage.py.
LINKAGE = ("structure", "naive", "likelihood")
Row = dict[str, Any]


class Rewriting(NamedTuple):
    """Mechanism, strategy and purpose that rewrite texts."""

    mechanism: str
    strategy: str = "S1"
    purpose: str = ""
    weight: int = 1
    common_words: int = 0

    def model(self) -> Model:
        """Load the model with the purpose, and with the limit on common words if there is one."""
        model = Model.load(name=f"en+{self.purpose}={self.weight}" if self.purpose else "en")
        return (
            with_context(model, common_words=self.common_words, kappa=KAPPA)
            if self.common_words
            else model
        )

    def __str__(self) -> str:
        kept = f", {self.purpose} kept" + (f" with weight {self.weight}" if self.weight > 1 else "")
        name = f"`{self.mechanism}`" + (f" {self.strategy}" if self.strategy != "S1" else "")
        few = f", {self.common_words} words" if self.common_words else ""
        return name + few + (kept if self.purpose else "")


CLEAN = Rewriting("clean", "")
TEM, TEM_CONTEXT = (Rewriting(name) for name in ("tem", "tem_context"))
KEPT_TEM, KEPT_CONTEXT = (each._replace(purpose="sentiment") for each in (TEM, TEM_CONTEXT))
COMMON = TEM_CONTEXT._replace(common_words=500)
KEPT_COMMON = COMMON._replace(purpose="sentiment", weight=8)
NOISY = ("madlib", "mahalanobis", "vickrey")
FEW = (
    TEM,
    KEPT_TEM,
    TEM_CONTEXT,
    KEPT_CONTEXT,
    COMMON,
    KEPT_COMMON,
)
ROWS = (
    *FEW,
    *(each._replace(strategy="S3") for each in (TEM, TEM_CONTEXT)),
    *(Rewriting(name, "S1", purpose) for name in NOISY for purpose in ("", "sentiment")),
    Rewriting("diffractor_geometric"),
    Rewriting("diffractor_tem"),
)
AGAINST = {  # a rewriting, and the rewriting that it would replace
    "`tem` with sentiment kept, less `tem`": (KEPT_TEM, TEM),
    "`tem_context` with sentiment kept, less `tem_context`": (KEPT_CONTEXT, TEM_CONTEXT),
    "`madlib` with sentiment kept, less `madlib`": (
        Rewriting("madlib", purpose="sentiment"),
        Rewriting("madlib"),
    ),
    "`tem_context`, less `tem`": (TEM_CONTEXT, TEM),
    "`tem_context` with sentiment kept, less `tem`": (KEPT_CONTEXT, TEM),
    "`tem_context` with 500 words, less `tem`": (COMMON, TEM),
    "`tem_context` with 500 words and sentiment kept with weight 8, less `tem`": (KEPT_COMMON, TEM),
}


def rows_of(problem: Problem) -> tuple[Rewriting, ...]:
    """Return the rewritings that are measured on a problem."""
    return FEW if problem.few else ROWS


def found_epsilons(
    recovered: Callable[[float], float],
    tried: Sequence[float],
    bounds: tuple[float, float],
    levels: Sequence[float],
) -> Iterator[tuple[float, float | None]]:
    """Search the ε of each level, within bounds, at which the recovered share is close to the
    level; yield the level with its ε, or with None if there is no such ε.

    The search interpolates the log odds linearly in ln ε between the nearest shares on both sides.
    The epsilons of ``tried`` are measured first.
    """
    seen = {math.log(epsilon): recovered(epsilon) for epsilon in tried}
    for level in levels:
        near = min(0.01, level / 10)
        for _ in range(TRIES):
            if min((abs(share - level) for share in seen.values()), default=1) <= near:
                break
            below = max(
                (x for x, share in seen.items() if share < level), default=math.log(bounds[0])
            )
            above = min(
                (x for x, share in seen.items() if share >= level and x > below),
                default=math.log(bounds[1]),
            )
            if unseen := [x for x in (below, above) if x not in seen]:
                seen[unseen[0]] = recovered(math.exp(unseen[0]))
            elif seen[below] < level <= seen[above]:
                low, wanted, high = map(log_odds, (seen[below], level, seen[above]))
                middle = below + min(max((wanted - low) / (high - low), 0.1), 0.9) * (above - below)
                seen[middle] = recovered(math.exp(middle))
            else:
                break
        x = min(seen, key=lambda x: abs(seen[x] - level))
        yield level, math.exp(x) if abs(seen[x] - level) <= near else None


def log_odds(share: float) -> float:
    """Return the log odds of a share, clipped so that they are finite."""
    share = min(max(share, 1e-3), 1 - 1e-3)
    return math.log(share / (1 - share))


class Bench:
    """State of a worker process: the problems, the language model, and the epsilons tried so
    far.
    """

    here: ClassVar[Bench]

    def __init__(self, problems: Sequence[Problem], language_model: NgramModel | None) -> None:
        self.problems = {problem.name: problem for problem in problems}
        self.language_model = language_model
        self.tried: dict[str, list[float]] = {}

    def begin(self) -> None:
        """Make this object the state of the current process."""
        Bench.here = self

    @lru_cache(maxsize=1)  # noqa: B019
    def measuring(self, rewriting: Rewriting) -> Measuring:
        """Return the ``Measuring`` of one rewriting; only the last one stays in memory."""
        bounds = RANGES.get(rewriting.mechanism, RANGE)
        return Measuring(
            rewriting.model(),
            rewriting.mechanism,
            rewriting.strategy,
            self.language_model,
            None,
            bounds,
        )

    def rows(self, name: str, rewriting: Rewriting, levels: Sequence[float]) -> Iterator[Row]:
        """Yield one row for each level; a single row for the clean texts."""
        problem = self.problems[name]
        about = {"problem": name, "rewriting": list(rewriting)}
        if rewriting == CLEAN:
            yield about | {"level": CLEAN_LEVEL} | self.figures(problem, problem.texts)
            return
        measuring = self.measuring(rewriting)
        bounds = RANGES.get(rewriting.mechanism, RANGE)
        names = [str(number) for number in range(len(problem.texts))]
        named = cache(
            lambda epsilon: measuring.named(
                problem.texts[problem.read], epsilon, names[problem.read]
            )
        )
        # Other data sets and purposes need about the same ε.
        tried, self.tried[rewriting.mechanism] = self.tried.get(rewriting.mechanism, []), []
        for level, epsilon in found_epsilons(
            lambda epsilon: named(epsilon).strongest.content, tried, bounds, levels
        ):
            row = about | {"level": level, "epsilon": epsilon}
            if epsilon is not None:
                self.tried[rewriting.mechanism].append(epsilon)
                found = named(epsilon)
                row |= {"recovered": found.strongest.content, "rare": found.strongest.rare}
                row |= {
                    "by_word": found.content["by_word"].share,
                    "unchanged": found.unchanged.share,
                }
                row |= self.figures(
                    problem, [*measuring.rewritten(problem.texts, epsilon, names).texts]
                )
            yield row

    def found_again(self, name: str, rewriting: Rewriting, epsilon: float) -> dict[str, float]:
        """Return the share of outputs whose source each adversary ranks first among ``CANDIDATES``
        texts.
        """
        problem = self.problems[name]
        read = problem.texts[problem.read]
        others = [*problem.texts[: problem.read.start], *problem.texts[problem.read.stop :]]
        measuring = self.linking(rewriting)
        readers = readers_of(measuring, [*read, *others], epsilon, min(OUTPUTS, len(read)))
        return readers.shares(CANDIDATES)

    @lru_cache(maxsize=1)  # noqa: B019
    def linking(self, rewriting: Rewriting) -> Measuring:
        """Return the ``Measuring`` that searches sources, for one mechanism at a time; no language
        model helps.
        """
        return Measuring(rewriting.model(), rewriting.mechanism, rewriting.strategy)

    def figures(self, problem: Problem, texts: Sequence[str]) -> Row:
        """Return the predictions from the texts, and how natural the texts are."""
        assert self.language_model is not None
        read = texts[problem.read]
        nats = nats_a_word(self.language_model, read)
        return {"predicted": problem.predicted(texts), "nats": nats, "texts": [*read[:KEPT]]}


def measured(name: str, rewriting: Rewriting, levels: Sequence[float]) -> list[Row]:
    """Return the rows of one rewriting of one problem. Runs in a worker process that called
    ``Bench.begin``.
    """
    return list(Bench.here.rows(name, rewriting, levels))


def measure(problems: Sequence[Problem], kept: dict[str, Any], options: argparse.Namespace) -> None:
    """Measure the missing rows, and write each one as soon as it is measured."""
    known = {(row["problem"], *row["rewriting"], row["level"]) for row in kept["rows"]}
    works = []
    # One mechanism after the other, so that a process seldom loads a new one.
    for rewriting in dict.fromkeys((CLEAN, *ROWS, *FEW)):
        for problem in problems:
            levels = (CLEAN_LEVEL,) if rewriting == CLEAN else LEVELS
            missing = [level for level in levels if (problem.name, *rewriting, level) not in known]
            if missing and rewriting in (CLEAN, *rows_of(problem)):
                works.append((problem.name, rewriting, missing))
    if not works:
        return
    packaged = Model.load(name="en").packaged
    files = sorted(options.corpus.glob("*.json.gz"))
    assert packaged is not None
    bench = Bench(
        problems, learnt(files, options.learn, {source.name for source in packaged.card.sources})
    )
    os.environ |= dict.fromkeys(THREADS, "1")
    with ProcessPoolExecutor(PROCESSES, get_context("spawn"), bench.begin) as pool:
        for done in as_completed([pool.submit(measured, *work) for work in works]):
            kept["rows"] += done.result()
            write_json(kept, options.json)
            for row in done.result():
                shown = {
                    name: value for name, value in row.items() if name not in ("predicted", "texts")
                }
                print(f"  {shown}", file=sys.stderr, flush=True)


def link(problems: Sequence[Problem], kept: dict[str, Any], file: Path) -> None:
    """Add the share of found sources to rows that lack it, and write each row at once."""
    bench = Bench(problems, None)
    for row in sorted(kept["rows"], key=lambda row: row["rewriting"]):
        if row.get("epsilon") and "linkage" not in row and row["problem"] in bench.problems:
            rewriting = Rewriting(*row["rewriting"])
            row["linkage"] = bench.found_again(row["problem"], rewriting, row["epsilon"])
            write_json(kept, file)


class Found:
    """Rows of one problem, by rewriting and level."""

    def __init__(self, problem: Problem, rows: Sequence[Row]) -> None:
        self.problem = problem
        self.by = {
            (Rewriting(*row["rewriting"]), row["level"]): row
            for row in rows
            if row["problem"] == problem.name
        }
        self.clean = self.by[CLEAN, CLEAN_LEVEL]
        self.f1 = cache(
            lambda rewriting, level, what: problem.f1(
                self.by[rewriting, level]["predicted"][what], what
            )
        )

    def has(self, *rewritings: Rewriting, level: float) -> bool:
        """Return whether every rewriting reached a level."""
        return all(self.by.get((rewriting, level), {}).get("epsilon") for rewriting in rewritings)

    def cells(self, rewriting: Rewriting) -> Iterator[str]:
        """Yield the cells of a rewriting: scores, nats, recovery and ε at each level."""
        shown: list[Callable[[Row], str]] = [
            *(
                lambda row, what=what: points(self.f1(rewriting, row["level"], what)[0])
                for what in self.problem.columns
            ),
            lambda row: f"{row['nats']:.2f}",
            lambda row: f"{100 * row['rare']:.1f}",
            lambda row: f"{100 * row['by_word']:.0f}",
            *(lambda row, by=by: found_in_100(row["linkage"][by]) for by in LINKAGE),
            lambda row: f"{row['epsilon']:.3g}",
        ]
        for show in shown:
            levels = [
                self.by[rewriting, level] if self.has(rewriting, level=level) else None
                for level in LEVELS
            ]
            yield " / ".join("–" if row is None else show(row) for row in levels)

    def table(self) -> str:
        """Return a table of all rewritings at all levels."""
        problem = self.problem
        n_test = len(problem.texts) - problem.n_train
        of_clean = ", ".join(
            f"{what} {interval(self.f1(CLEAN, CLEAN_LEVEL, what))}" for what in problem.columns
        )
        reached = [key for key, row in self.by.items() if row.get("epsilon")]
        spread = (
            max(
                float(np.ptp(ends(self.f1(*key, what))))
                for key in reached
                for what in problem.columns
            )
            / 2
        )
        off = [100 * (self.by[key]["recovered"] - self.by[key]["level"]) for key in reached]
        columns = [*problem.columns, "nats per word", "rare words named, %", "unigram, %"]
        columns += [f"{by}, %" for by in LINKAGE] + ["ε"]
        rows = [
            rewriting
            for rewriting in rows_of(problem)
            if all((rewriting, level) in self.by for level in LEVELS)
        ]
        lines = [
            f"\n### {problem.name}\n",
            f"{problem.n_train:,} training and {n_test:,} test texts, {problem.n_read:,} of "
            "them for recovery. Clean "
            f"texts: {of_clean}, {self.clean['nats']:.2f} nats. Intervals at most ± "
            f"{points(spread)}; recovery is "
            f"{min(off):+.1f} to {max(off):+.1f} points from its level.\n",
            f"| mechanism | {' | '.join(columns)} |",
            "| --- " * (len(columns) + 1) + "|",
            *(f"| {rewriting} | {' | '.join(self.cells(rewriting))} |" for rewriting in rows),
        ]
        return "\n".join(lines)

    def gains(self) -> Iterator[str]:
        """Yield the difference in scores between a rewriting and the rewriting that it would
        replace, on the same documents.
        """
        for what, (name, (new, old)) in product(self.problem.columns, AGAINST.items()):
            both = [self.has(new, old, level=level) for level in LEVELS]
            cells = [
                interval(self.f1(new, level, what) - self.f1(old, level, what), "+") if has else "–"
                for level, has in zip(LEVELS, both, strict=True)
            ]
            if any(both):
                yield f"| {self.problem.name}, {what}: {name} | {' | '.join(cells)} |"

    def readings(self, n: int) -> Iterator[str]:
        """Yield texts before and after rewriting."""
        for number, text in enumerate(self.clean["texts"][:n]):
            yield f"\n{text}"
            for rewriting in rows_of(self.problem):
                if self.has(rewriting, level=SHOWN):
                    yield f"  {rewriting}: {self.by[rewriting, SHOWN]['texts'][number]}"


def ends(f1: Floats) -> Floats:
    """Return the 95% interval over documents."""
    found: Floats = np.percentile(f1[1:], (2.5, 97.5))
    return found


def points(share: float, sign: str = "") -> str:
    """Format a share without the zero before the point."""
    return f"{share:{sign}.2f}".replace("0.", ".", 1)


def found_in_100(share: float) -> str:
    """Format a share as the number of cases out of 100 in which the source is found."""
    return f"{100 * share:.0f}"


def interval(f1: Floats, sign: str = "") -> str:
    """Format a score or a difference with its interval."""
    low, high = ends(f1)
    return f"{points(f1[0], sign)} ({points(low, sign)} to {points(high, sign)})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the rewritings, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.equal_recovery", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--corpus", type=Path, required=True, metavar="FOLDER", help="public texts")
    parser.add_argument(
        "--json",
        type=Path,
        required=True,
        help="keep the rows here, and continue with existing rows",
    )
    parser.add_argument(
        "--only", nargs="+", default=[problem.file for problem in PROBLEMS], metavar="FILE"
    )
    parser.add_argument("--train", type=int, default=1200, help="texts to learn from")
    parser.add_argument("--test", type=int, default=2000, help="texts to predict")
    parser.add_argument("--words", type=int, default=40, help="words of each text, from its start")
    parser.add_argument(
        "--read", type=int, default=8_000, help="words of held-out texts that adversaries read"
    )
    parser.add_argument("--learn", type=int, default=5_000_000, help="words of the n-gram model")
    parser.add_argument(
        "--texts",
        type=int,
        default=0,
        metavar="N",
        help=f"show this number of texts of each data set, at {SHOWN}",
    )
    options = parser.parse_args(arguments)
    sizes = Sizes(options.train, options.test, options.words, options.read)
    problems = [
        known.drawn(options.data, sizes) for known in PROBLEMS if known.file in options.only
    ]
    kept: dict[str, Any] = {"sizes": [*sizes], "rows": []}
    if options.json.exists():
        kept = json.loads(options.json.read_text(encoding="utf-8"))
    if kept["sizes"] != [*sizes]:
        parser.error(
            f"{options.json} has rows of other sizes: --train, --test, --words, --read "
            f"{kept['sizes']}"
        )
    measure(problems, kept, options)
    link(problems, kept, options.json)
    found = [Found(problem, kept["rows"]) for problem in problems]
    print(*(one.table() for one in found), sep="\n")
    print("\n### Differences\n\n| |", " | ".join(f"at {level:.0%}" for level in LEVELS), "|")
    print(
        "| --- " * (len(LEVELS) + 1) + "|",
        *(line for one in found for line in one.gains()),
        sep="\n",
    )
    if options.texts:
        print(*(line for one in found for line in one.readings(options.texts)), sep="\n")


if __name__ == "__main__":
    main()
