"""What a model makes of review texts: coverage, and what can be learnt at equal ε and at equally many unchanged words.

    uv run python -m benchmarks.models --data FOLDER --model en --model lee=PROJECT --model glove
    uv run python -m benchmarks.models --tickets examples/tickets.csv --model en --model lee=PROJECT

A model is a packaged one by its name, or LABEL=FOLDER, the project whose run made it. The folder of the data has
sst2.parquet (text, split, label) and trustpilot.parquet (text, weak_sentiment, attribute). Of each, equally many texts
of either class are drawn, the same for all models, and rewritten by TEM; a linear classifier learns from rewritten
texts to predict the class of other rewritten texts. Noise is seeded: this protects nothing.

ε is in units of a model's own distances, so that equal ε is not equal noise; a share of unchanged words is reached by
bisection. A budget is that of the average text of the set, for all models alike. Tables are Markdown.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from benchmarks.table import show
from lexveil.accounting.budgets import SEGMENTATION_OF
from lexveil.artifacts.model import Model
from lexveil.evaluation.classifier import Linear
from lexveil.evaluation.scores import half_width, score
from lexveil.privatization.adapters import memory as in_memory
from lexveil.runtime.tables import write_json
from lexveil.text.encode import TokenClass, encode

SEED = 1
MECHANISM = "tem"
TRIED = 2500  # words by which ε is found
STEPS = 8  # of a bisection over RANGE: to 2 % of ε
RANGE = (0.5, 200.0)
TEST_SHARE = 0.3  # of a set whose own held-out part has too few texts of one class

# What is predicted of which file, and whether its own held-out part is.
PROBLEMS = {
    "SST-2, sentiment": ("sst2", "label", True),
    "Trustpilot, sentiment": ("trustpilot", "weak_sentiment", False),
    "Trustpilot, gender (an attack)": ("trustpilot", "attribute", False),
}


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one problem, their classes, and which of them are learnt from; equally many of each class."""

    name: str
    texts: list[str]
    classes: list[str]
    is_train: npt.NDArray[np.bool_]

    @property
    def average_words(self) -> float:
        """Words of the average text, rounded: by it ε becomes a budget, for all models alike."""
        return float(round(np.mean([len(text.split()) for text in self.texts])))


def drawn(folder: Path, n_train: int, n_test: int) -> list[Texts]:
    """The problems, with at most so many texts to learn from and to predict."""
    problems = []
    for name, (file, column, is_split) in PROBLEMS.items():
        table = pq.read_table(folder / f"{file}.parquet")
        classes, rng = table.column(column).to_pylist(), np.random.default_rng(SEED)
        given = np.array([value is not None for value in classes])
        if is_split:
            is_train = np.array(table.column("split").to_pylist()) == "train"
        else:
            is_train = rng.random(len(classes)) >= TEST_SHARE
        rows: list[int] = []
        for part, n in ((is_train, n_train), (~is_train, n_test)):
            chosen = rng.permutation(np.flatnonzero(given & part)).tolist()
            by_class = [
                [row for row in chosen if classes[row] == one] for one in sorted({classes[row] for row in chosen})
            ]
            each = min(n // len(by_class), *map(len, by_class))
            rows += [row for members in by_class for row in members[:each]]
        texts = table.column("text").take(rows).to_pylist()
        problems.append(Texts(name, texts, [str(classes[row]) for row in rows], is_train[rows]))
    return problems


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Rewritten texts, and the share of their words that are as they were.

    A word is a token that is not kept by the policy, a collocation one of them; an unknown one is replaced, too.
    """

    texts: list[str]
    unchanged: float


def rewritten(model: Model, texts: Sequence[str], strategy: str, epsilon: float, average_words: float) -> Rewriting:
    """Rewrite texts as an experiment."""
    done = in_memory.privatize(
        list(texts),
        mechanism=MECHANISM,
        strategy=strategy,
        epsilon=epsilon,
        average_words=average_words,
        mode="experiment",
        seed=SEED,
        project=model,
    )
    counts = done.operator.counts
    words = counts.n_tokens_in - counts.n_kept
    same = (counts.share_unchanged or 0.0) * counts.n_perturbed
    return Rewriting([text or "" for text in done.values], same / words if words else 0.0)


def epsilon_for(model: Model, given: Texts, strategy: str, share: float) -> float | None:
    """The base ε by which a share of the words is unchanged; None if no ε in RANGE does that."""
    few = max(1, round(len(given.texts) * given.average_words / TRIED))
    texts = given.texts[::few]
    low, high = RANGE
    if rewritten(model, texts, strategy, high, given.average_words).unchanged < share:
        return None
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        if rewritten(model, texts, strategy, middle, given.average_words).unchanged < share:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)


def coverage(model: Model, texts: Sequence[str]) -> float:
    """The share of running words that S1's vocabulary knows."""
    encoded = encode(texts, model.lexicon("S1"))
    is_word = encoded.kind != TokenClass.PUNCTUATION.value
    return float((encoded.rows[is_word] >= 0).mean())


def accuracy(given: Texts, texts: Sequence[str]) -> float:
    """The share of held-out texts whose class a classifier predicts that learnt from the others."""
    (train, known), (test, truth) = (
        ([texts[row] for row in rows], [given.classes[row] for row in rows])
        for rows in (np.flatnonzero(given.is_train).tolist(), np.flatnonzero(~given.is_train).tolist())
    )
    return score(truth, Linear(SEED).fit(train, known).predict(test)).accuracy


def compared(
    models: Mapping[str, Model], given: Texts, strategy: str, epsilons: Sequence[float], shares: Sequence[float]
) -> list[dict[str, Any]]:
    """One row for each model and ε, and for each model and share of unchanged words."""
    rows: list[dict[str, Any]] = [{"model": "clean texts", "unchanged": 1.0, "accuracy": accuracy(given, given.texts)}]
    for label, model in models.items():
        known = {"model": label, "coverage": coverage(model, given.texts)}
        wanted = [("ε", epsilon) for epsilon in epsilons]
        for kind, value in [*wanted, *(("share", share) for share in shares)]:
            epsilon = value if kind == "ε" else epsilon_for(model, given, strategy, value)
            if epsilon is None:
                rows.append({**known, "equal": f"{kind} {value:g}", "note": "not reached"})
                continue
            done = rewritten(model, given.texts, strategy, epsilon, given.average_words)
            figures = {"epsilon": epsilon, "unchanged": done.unchanged, "accuracy": accuracy(given, done.texts)}
            rows.append({**known, "equal": f"{kind} {value:g}", **figures})
            print(f"  {given.name} {label} {kind} {value:g}", flush=True)
    return rows


COLUMNS = {
    "equal": "equal",
    "model": "model",
    "coverage": "coverage",
    "epsilon": "ε",
    "unchanged": "unchanged words",
    "accuracy": "accuracy",
    "note": "",
}


def markdown(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    """A table; columns that no row has are left out."""
    used = [key for key in columns if any(row.get(key) is not None for row in rows)]
    lines = [" | ".join(columns[key] for key in used), " | ".join("---" for _ in used)]
    lines += [" | ".join(show(row.get(key)) for key in used) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def of_spec(spec: str) -> tuple[str, Model]:
    """A model by its name, or LABEL=FOLDER of a project."""
    label, given, folder = spec.partition("=")
    return label, Model.load(folder, name="own") if given else Model.load(name=label)


def identity(label: str, model: Model, strategy: str) -> dict[str, Any]:
    """What a table says of a model."""
    reference, lexicon = model.reference(strategy), model.lexicon(strategy)
    lengths = np.bincount(lexicon.n_words, minlength=4)
    return {
        "model": label,
        "name": reference.name,
        "version": reference.version,
        "sha256": reference.sha256[:12],
        "words": int(lengths[1]),
        "bigrams": int(lengths[2]),
        "trigrams": int(lengths[3]),
    }


def tickets(file: Path, models: Mapping[str, Model], strategy: str, epsilon: float) -> str:
    """Each text, and what every model makes of it at one ε."""
    with file.open(encoding="utf-8", newline="") as source:
        texts = [row["text"] for row in csv.DictReader(source)]
    average = float(round(np.mean([len(text.split()) for text in texts])))
    made = {label: rewritten(model, texts, strategy, epsilon, average).texts for label, model in models.items()}
    lines: list[str] = []
    for number, text in enumerate(texts, 1):
        lines += [f"{number}. {text}", *(f"   * **{label}**: {out[number - 1]}" for label, out in made.items())]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--model", action="append", required=True, metavar="NAME|LABEL=FOLDER")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="with sst2.parquet and trustpilot.parquet")
    parser.add_argument("--tickets", type=Path, metavar="FILE", help="CSV with a column text: what becomes of each")
    parser.add_argument("--strategy", choices=sorted(SEGMENTATION_OF), default="S3")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[5.0], help="base epsilons")
    parser.add_argument("--unchanged", type=float, nargs="*", default=[0.5], help="shares of unchanged words")
    parser.add_argument("--train", type=int, default=2000, help="texts to learn from")
    parser.add_argument("--test", type=int, default=600, help="texts to predict")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    models = dict(map(of_spec, options.model))
    about = [identity(label, model, options.strategy) for label, model in models.items()]
    print(markdown({key: key for key in about[0]}, about))
    figures: dict[str, Any] = {"models": about}
    if options.tickets:
        for epsilon in options.epsilon:
            print(f"\n{MECHANISM} {options.strategy}, ε = {epsilon:g}\n")
            print(tickets(options.tickets, models, options.strategy, epsilon))
    if options.data:
        for given in drawn(options.data, options.train, options.test):
            rows = compared(models, given, options.strategy, options.epsilon, options.unchanged)
            rows.sort(key=lambda row: str(row.get("equal", "")))
            n_test = int((~given.is_train).sum())
            print(
                f"\n{given.name}: {int(given.is_train.sum()):,} texts to learn from, {n_test:,} to predict "
                f"(±{half_width(n_test):.3f}); chance is 0.5; the average text has {given.average_words:g} words\n"
            )
            print(markdown(COLUMNS, rows))
            figures[given.name] = rows
    if options.json:
        write_json(figures, options.json)


if __name__ == "__main__":
    main()
