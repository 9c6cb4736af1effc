"""The evaluation in the tables of the papers: next to clean texts, the majority baseline and published figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.report import formatting
from lexveil.report.evaluation_values import (
    ADAPTIVE,
    BACK_END,
    CLEAN,
    COSINE,
    GAIN,
    LOSS,
    MAJORITY,
    MEMBERSHIP,
    ON_CLEAN_MICRO,
    PERPLEXITY,
    STATIC,
    STATIC_ACCURACY,
    TARGET,
    UTILITY,
    UTILITY_MICRO,
    EvaluatedRun,
    Key,
    Measure,
    Values,
    averages,
    losses,
)  # fmt: skip
from lexveil.report.literature import Literature, beside, groups
from lexveil.report.table import Column, Table

OURS = "this project"


@dataclass(frozen=True, slots=True)
class Form:
    """A table of the papers.

    Attributes:
        name: for ids.
        caption: what it shows; the data set comes before it and the back end after it.
        measures: its rows, one of each per mechanism and strategy.
        source: where the papers have it.
    """

    name: str
    caption: str
    measures: tuple[Measure, ...]
    source: str

    @property
    def part(self) -> str:
        """The entry that its last own measure is in."""
        return next(one.part for one in reversed(self.measures) if one.part)


FORMS = (
    Form(
        "utility",
        "utility, micro F1 (accuracy) on rewritten texts",
        (UTILITY_MICRO,),
        "CLMLDP Tables 3, 5 and 6; 1-Diffractor Tables 1 and 3",
    ),
    Form("on-clean", "utility, micro F1 (accuracy) on clean texts", (ON_CLEAN_MICRO,), "TEM Figure 1a"),
    Form("attack", "task and attackers, macro F1", (UTILITY, STATIC, ADAPTIVE, GAIN), "CLMLDP Table 4"),
    Form("static", "static attacker, accuracy", (STATIC_ACCURACY,), "1-Diffractor Table 4 and Figure 5"),
    Form("cosine", "cosine of original and rewritten text", (COSINE,), "CLMLDP Table 1, 1-Diffractor Table 2"),
    Form("perplexity", "perplexity of the texts", (PERPLEXITY,), "CLMLDP Table 2"),
    Form("membership", "membership inference, AUC", (MEMBERSHIP,), "TEM Figure 1b"),
)
_AVERAGED = (
    *(form for form in FORMS if form.name in ("cosine", "perplexity")),
    Form("loss", "utility loss against clean texts, micro F1", (LOSS,), "CLMLDP and 1-Diffractor Figure 2"),
)


def dataset_tables(
    place: int, dataset: str, clean: EvaluatedRun, of: Values, runs: Sequence[Key], published: Sequence[Literature]
) -> list[Table]:
    """One table for each form of which anything was measured.

    Args:
        place: of the data set, from 1, for ids.
        runs: of the grid, in the order of its rows.
    """
    return [
        table
        for form in FORMS
        if (table := _table(f"{form.name}-{place}", dataset, [dataset], form, clean, of, runs, published))
    ]


def average_tables(
    clean: EvaluatedRun, values_of: Mapping[str, Values], runs: Sequence[Key], published: Sequence[Literature]
) -> list[Table]:
    """Means over the data sets of what the papers print so; over those of a paper too, where all of them are there."""
    tables = []
    own = {name: {**of, **losses(of)} for name, of in values_of.items()}
    for form in _AVERAGED:
        (measure,) = form.measures
        measured = [name for name, of in own.items() if any(known == measure.name for known, _ in of)]
        sets = dict.fromkeys([tuple(measured)] if len(measured) > 1 else [])
        sets |= dict.fromkeys(
            group for group in groups(published, measure.published, measured) if sorted(group) != sorted(measured)
        )
        for place, group in enumerate(sets, 1):
            what = f"Mean over {formatting.listed(list(group))}"
            table = _table(f"mean-{form.name}-{place}", what, group, form, clean, averages(own, group), runs, published)
            tables += [table] if table else []
    return tables


def _table(
    name: str,
    what: str,
    datasets: Sequence[str],
    form: Form,
    clean: EvaluatedRun,
    of: Values,
    runs: Sequence[Key],
    published: Sequence[Literature],
) -> Table | None:
    rows_of = list(dict.fromkeys((mechanism, strategy) for mechanism, strategy, _ in runs))
    epsilons = sorted({epsilon for _, _, epsilon in runs})
    show = formatting.mean_sd_one if form.measures[0] is PERPLEXITY else formatting.mean_sd
    printed = {
        one.name: beside(published, datasets, one.published, rows_of, epsilons)
        for one in form.measures
        if one.published
    }
    rows: list[tuple[Any, ...]] = []
    quiet: set[int] = set()
    for mechanism, strategy in rows_of:
        for measure in form.measures:
            each = [of.get((measure.name, (mechanism, strategy, epsilon))) for epsilon in epsilons]
            if any(one is not None for one in each):
                base, majority = of.get((measure.name, CLEAN)), of.get((measure.name, MAJORITY))
                rows.append((mechanism, strategy, measure.words, OURS, base, majority, *each))
        for measure in form.measures:
            for row in printed.get(measure.name, ()) if rows else ():
                if (row.mechanism, row.strategy) == (mechanism, strategy):
                    quiet.add(len(rows))
                    at = [row.at.get(epsilon) for epsilon in epsilons]
                    rows.append(
                        (
                            mechanism,
                            strategy,
                            measure.words,
                            f"published, other models: {row.source}",
                            row.clean,
                            None,
                            *at,
                        )
                    )
    if not any(row[3] == OURS for row in rows):
        return None
    columns = [
        Column("mechanism", "Mechanism"),
        Column("strategy", "Strategy"),
        Column("score", "Score"),
        Column("figures", "Figures of"),
        Column("clean", "Clean texts", show, "No rewriting"),
        Column("majority", "Majority", show, "No rewriting"),
        *(Column(f"epsilon_{one:g}", formatting.epsilon(one), show, "Base ε") for one in epsilons),
    ]
    part = form.part
    dropped = [
        place
        for place, column in enumerate(columns)
        if (column.key == "score" and len(form.measures) == 1)
        or (column.key == "figures" and not quiet)
        or (column.key in ("clean", "majority") and all(row[place] is None for row in rows))
    ]
    kept = [place for place in range(len(columns)) if place not in dropped]
    back_end = f"{BACK_END.get(part, 'classifier').replace('_', ' ')}: {clean.back_end(part)}"
    note = f"The form of {form.source}."
    if len(datasets) == 1:
        parts = dict.fromkeys(one.part for one in form.measures if one.part)
        note = " ".join([*filter(None, (_note(clean, datasets[0], one) for one in parts)), note])
    if quiet:
        note += (
            " Rows marked published are as the papers print them, measured with other models on texts rewritten in "
            "other embeddings: compare how they change with ε, not their height. Percentages are written as shares."
        )
    return Table(
        name,
        f"{what}: {form.caption} ({back_end})",
        [columns[place] for place in kept],
        [tuple(row[place] for place in kept) for row in rows],
        note,
        frozenset(quiet),
    )


def _note(clean: EvaluatedRun, dataset: str, part: str) -> str:
    """How many documents stand behind the numbers of a table, and what ± means."""
    entry = clean.entry(dataset, part)
    if entry is None:
        return ""
    if part == "similarity":
        return (
            f"{entry['n_compared']:,} of {entry['n_texts']:,} texts could be compared; ± is the standard deviation "
            "over texts."
        )
    if part == "perplexity":
        return (
            f"Mean over {entry['n_texts']:,} texts; {entry['n_unknown']:,} of the {entry['n_tokens']:,} tokens of the "
            "clean texts are unknown to the model. Lower is more like ordinary text."
        )
    if part == "membership":
        return (
            f"{entry['n_in']:,} texts that were learnt from and {entry['n_out']:,} that were not; 0.5 is guessing. "
            "± is the standard deviation over trainings."
        )
    n_test, target = entry["n_test"], TARGET[part]
    said = (
        f"{target}: {entry['n_classes']:,} classes, learnt from {entry['n_learnt']:,} of {entry['n_train']:,} "
        f"documents of split train, scored on {n_test:,} of split {entry['held_out']}. From that many a share of "
        f"one half is known to ± {half_width(n_test):.2f} (95%)."
    )
    if entry["n_left_out"]:
        why = f"their {target.lower()} is unknown or rare"
        said += f" {entry['n_left_out']:,} documents of these splits are left out: {why}."
    return said


def half_width(n: int) -> float:
    """Half of the 95% interval of a share of one half, seen in n documents: 1.96·√(1/4n)."""
    return 1.96 * math.sqrt(0.25 / n)
