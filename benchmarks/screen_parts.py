"""Cost of the parts of the screen: utility of texts that never contain the words of a part.

    uv run python -m benchmarks.screen_parts --data FOLDER

Texts of SST-2 (sentiment) and of disaster tweets are rewritten by the default mechanism at the
epsilons of two levels, once with each part of the screen and with unions of parts. A linear
classifier learns from rewritten texts to predict the class of held-out texts. At one epsilon, an
adversary never learns more with a screen than without it, because a screen is a function of the
draws. The differences in utility are therefore at least the differences at equal recovery. Each
figure is the mean of ``--repeats`` noises. Noise is seeded, so the output is not private. The
output is Markdown.

The columns: words of the model in the parts; share of the drawn words that are in the parts; macro
F1 in points, and its difference to the macro F1 without screen, with the 95 % interval of the
bootstrap over documents.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.problems import PROBLEMS, Problem, Sizes
from benchmarks.table import markdown
from lexveil.base.types import Flags, Floats
from lexveil.core.accounting.budgets import Action
from lexveil.core.protection import LevelName
from lexveil.core.screen_parts import NONE, PARTS, chosen_parts
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.screened_words import is_screened, screened_words
from lexveil.io.request import Request
from lexveil.release.engine.batch import Batch, Rewritten
from lexveil.release.engine.engine import WordEngine
from lexveil.release.settings import document_budget, resolve_settings

LEVELS: tuple[LevelName, ...] = ("balanced", "light")
NAMED = ("SST-2", "Tweets")
UTILITY = "utility"
SCREENS = (
    NONE,
    *PARTS,
    "vulgar,jargon",
    "vulgar,jargon,health",
    "vulgar,jargon,health,names",
    ",".join(PARTS),
)


class Figures(NamedTuple):
    """The figures of a screen on one problem and level.

    Attributes:
        share: share of the words drawn without screen that are in the parts.
        f1: (1 + RESAMPLED,) macro F1 of all documents and of each bootstrap draw.
    """

    share: float
    f1: Floats


class Rewriting(NamedTuple):
    """The default mechanism of a model at a level of protection."""

    model: Model
    level: LevelName

    def rewritten(self, texts: Sequence[str], screen: str, seed: int) -> Rewritten:
        """Rewrite texts, each with noise of its own."""
        request = Request(screen=screen, seed=seed, protection=self.level)
        engine = WordEngine(resolve_settings(request, self.model), self.model)
        names = [(str(number),) for number in range(len(texts))]
        batch = Batch([[text] for text in texts], names)
        return engine.worker().draw(batch, document_budget(engine.settings, self.model))

    def in_parts(self, screen: str) -> Flags:
        """Return (V,) whether each token of the model is in the parts."""
        tokens = self.model.lexicon("S1").tokens
        return is_screened(tokens, screened_words(chosen_parts(screen)))


def figures(
    problem: Problem, rewriting: Rewriting, screens: Sequence[str], repeats: int
) -> Iterator[tuple[str, Figures]]:
    """Yield each screen with its figures; the first is `none`, no screen."""
    first = [rewriting.rewritten(problem.texts, NONE, seed) for seed in range(repeats)]
    drawn = np.concatenate([done.rows[done.action == Action.PERTURBED.value] for done in first])
    for screen in screens:
        scores = []
        for seed in range(repeats):
            done = (
                first[seed] if screen == NONE else rewriting.rewritten(problem.texts, screen, seed)
            )
            predicted = problem.predicted([*done.texts])[UTILITY]
            scores.append(problem.f1(predicted, UTILITY))
        share = float(rewriting.in_parts(screen)[drawn].mean())
        print(f"{problem.name}, {rewriting.level}, {screen}: {scores[0][0]:.3f}", file=sys.stderr)
        yield screen, Figures(share, np.mean(scores, axis=0))


def rows(
    problem: Problem, rewriting: Rewriting, screens: Sequence[str], repeats: int
) -> Iterator[dict[str, str]]:
    """Yield the rows of the table for one problem and level."""
    without = None
    for screen, found in figures(problem, rewriting, screens, repeats):
        without = found.f1 if without is None else without
        gained = 100 * (found.f1 - without)
        low, high = np.quantile(gained[1:], [0.025, 0.975])
        yield {
            "texts": problem.name,
            "level": rewriting.level,
            "screen": screen.replace(",", ", "),
            "words": f"{int(rewriting.in_parts(screen).sum()):,}",
            "of the drawn words": f"{found.share:.1%}",
            "F1": f"{100 * found.f1[0]:.1f}",
            "above none": f"{gained[0]:+.1f} ({low:+.1f} to {high:+.1f})",
        }


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--train", type=int, default=2000, help="texts to learn from")
    parser.add_argument("--test", type=int, default=1500, help="texts to predict")
    parser.add_argument("--repeats", type=int, default=1, help="noises per figure")
    options = parser.parse_args()
    sizes = Sizes(options.train, options.test, words=60, read=0)
    model = Model.load(name="en")
    found = [
        row
        for problem in PROBLEMS
        if problem.name in NAMED
        for level in LEVELS
        for row in rows(
            problem.drawn(options.data, sizes), Rewriting(model, level), SCREENS, options.repeats
        )
    ]
    print(markdown({name: name for name in found[0]}, found))


if __name__ == "__main__":
    main()
