"""Utility and attacks: macro F1 of every run beside that of the clean texts and of who looks at no text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.privacy.budget import STRATEGIES
from tasks.reporting import numbers
from tasks.reporting.figures import Series
from tasks.reporting.numbers import MeanSd
from tasks.reporting.table import Column, Table

METRIC = "macro_f1"
IN_WORDS = {
    ("utility", "private"): "utility on rewritten texts",
    ("utility", "clean"): "utility on clean texts",
    ("attack", "static"): "attack, static",
    ("attack", "adaptive"): "attack, adaptive",
}
GAIN = "relative gain"
_OF = {"utility": "Label", "attack": "Attribute"}

Key = tuple[str, str, float]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The scores of one run.

    Attributes:
        record: mechanism, strategy, epsilon; datasets: what is said of utility and attack, by name.
    """

    record: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """What names the run."""
        return str(self.record["mechanism"]), str(self.record["strategy"]), float(self.record["epsilon"])

    @property
    def datasets(self) -> list[str]:
        """The data sets, by name."""
        return sorted(self.record["datasets"])

    def entry(self, dataset: str, measured: str) -> Mapping[str, Any] | None:
        """What is said of utility or attack in one data set; None where it is left out."""
        found: Mapping[str, Any] = self.record["datasets"][dataset][measured]
        return found if found["left_out"] is None else None

    def score(self, dataset: str, measured: str, setting: str) -> MeanSd | None:
        """Mean and standard deviation of macro F1; None where it is left out."""
        entry = self.entry(dataset, measured)
        if entry is None:
            return None
        return MeanSd(entry["scores"][setting][METRIC]["mean"], entry["scores"][setting][METRIC]["sd"])


def score_tables(
    clean: Evaluated, runs: Sequence[Evaluated], gains: Mapping[tuple[str, Key], float | None]
) -> list[tuple[str, Table]]:
    """One table per data set of which anything is scored, by its name.

    Args:
        clean: of the clean baseline.
        runs: of the grid, in the order of its rows.
        gains: relative gain by data set and run, where it is known.
    """
    of_run = {run.key: run for run in runs}
    rows_of = list(dict.fromkeys((mechanism, strategy) for mechanism, strategy, _ in of_run))
    epsilons = sorted({epsilon for _, _, epsilon in of_run})
    tables: list[tuple[str, Table]] = []
    for dataset in clean.datasets:
        rows: list[tuple[Any, ...]] = []
        for (measured, setting), words in IN_WORDS.items():
            entry = clean.entry(dataset, measured)
            if entry is None:
                continue
            for mechanism, strategy in rows_of:
                each = [of_run[mechanism, strategy, epsilon].score(dataset, measured, setting) for epsilon in epsilons]
                base = clean.score(dataset, measured, setting)
                rows.append((words, mechanism, strategy, *each, base, MeanSd(entry["majority"][METRIC], None)))
        for mechanism, strategy in rows_of:
            found = [gains.get((dataset, (mechanism, strategy, epsilon))) for epsilon in epsilons]
            if any(gain is not None for gain in found):
                each = [None if gain is None else MeanSd(gain, None) for gain in found]
                rows.append((GAIN, mechanism, strategy, *each, None, None))
        if rows:
            columns = [
                Column("score", "Score"),
                Column("mechanism", "Mechanism"),
                Column("strategy", "Strategy"),
                *(Column(f"epsilon_{one:g}", numbers.epsilon(one), numbers.mean_sd, "Base ε") for one in epsilons),
                Column("clean", "Clean texts", numbers.mean_sd, "To compare with"),
                Column("majority", "Majority", numbers.mean_sd, "To compare with"),
            ]
            name = f"evaluation-{len(tables) + 1}"
            tables.append(
                (dataset, Table(name, f"{dataset}: macro F1, mean ± sd", columns, rows, _note(clean, dataset)))
            )
    return tables


def _note(clean: Evaluated, dataset: str) -> str:
    said = []
    for measured, target in _OF.items():
        entry = clean.entry(dataset, measured)
        if entry is None:
            continue
        n_test, n_left_out = entry["n_test"], entry["n_left_out"]
        part = (
            f"{target}: {entry['n_classes']:,} classes, learnt from {entry['n_learnt']:,} of {entry['n_train']:,} "
            f"documents of split train, scored on {n_test:,} of split {entry['held_out']}. From that many a share of "
            f"one half is known to ± {half_width(n_test):.2f} (95%)."
        )
        if n_left_out:
            part += (
                f" {n_left_out:,} documents of these splits are left out: their {target.lower()} is unknown or rare."
            )
        said.append(part)
    return " ".join([*said, "The CSV has the means."])


def half_width(n: int) -> float:
    """Half of the 95% interval of a share of one half, seen in n documents: 1.96·√(1/4n)."""
    return 1.96 * math.sqrt(0.25 / n)


def left_out(clean: Evaluated) -> list[tuple[str, str]]:
    """What is not scored, and why."""
    return [
        (f"{dataset}, {measured}", str(clean.record["datasets"][dataset][measured]["left_out"]))
        for dataset in clean.datasets
        for measured in _OF
        if clean.entry(dataset, measured) is None
    ]


def both_scored(clean: Evaluated) -> list[str]:
    """The data sets of which utility and attack are known."""
    return [name for name in clean.datasets if all(clean.entry(name, measured) is not None for measured in _OF)]


def point(run: Evaluated, dataset: str) -> tuple[float, float]:
    """Where a run stands: the adaptive attacker's macro F1, and the utility on rewritten texts.

    Args:
        dataset: one of which both are scored.
    """
    x, y = run.score(dataset, "attack", "adaptive"), run.score(dataset, "utility", "private")
    assert x is not None and y is not None
    return x.mean, y.mean


def tradeoff_series(runs: Sequence[Evaluated], dataset: str, mechanism: str) -> list[Series]:
    """One line per strategy, its points by rising epsilon: utility over attack."""
    lines = []
    for strategy in STRATEGIES:
        own = sorted((run for run in runs if run.key[:2] == (mechanism, strategy)), key=lambda run: run.key)
        if own:
            points = [point(run, dataset) for run in own]
            lines.append(Series(strategy, [x for x, _ in points], [y for _, y in points]))
    return lines


def headline(runs: Sequence[Evaluated]) -> dict[str, dict[str, dict[str, float]]]:
    """The numbers `dvc metrics diff` compares, by run and data set; what is left out is not there."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for run in runs:
        mechanism, strategy, epsilon = run.key
        by_dataset = found.setdefault(f"{mechanism}/{strategy}/{epsilon}", {})
        for dataset in run.datasets:
            scores = {f"{measured}_{setting}": run.score(dataset, measured, setting) for measured, setting in IN_WORDS}
            by_dataset[dataset] = {name: score.mean for name, score in scores.items() if score is not None}
    return found
