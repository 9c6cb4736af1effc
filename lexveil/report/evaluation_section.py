"""What was measured of the runs, in the tables of the papers: each beside clean texts, who looks at none, and print."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.accounting.budgets import STRATEGIES
from lexveil.errors import CheckFailed
from lexveil.report import formatting
from lexveil.report.figures import Series
from lexveil.report.formatting import MeanSd
from lexveil.report.literature import Literature, beside, groups
from lexveil.report.table import Column, Table

METRIC = "macro_f1"
OURS = "this project"
DIGITS = 9  # of what is computed here: the last bits of a float are no result

Key = tuple[str, str, float]
CLEAN: Key = ("none", "none", 0.0)

# Means of one data set, by measure and run; the clean baseline is the run CLEAN, and MAJORITY looks at no text.
Values = Mapping[tuple[str, Key], MeanSd]
MAJORITY: Key = ("majority", "none", 0.0)


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a run.

    Attributes:
        name: in Values.
        words: what a row calls it.
        part: which entry of a data set's record it is in.
        path: where in that entry its mean and deviation stand.
        published: what published.csv calls the same.
    """

    name: str
    words: str
    part: str
    path: tuple[str, ...]
    published: tuple[str, ...] = ()


def _score(part: str, setting: str, metric: str, words: str, *published: str) -> Measure:
    return Measure(f"{part}_{setting}_{metric}", words, part, ("scores", setting, metric), published)


UTILITY = _score("utility", "private", "macro_f1", "utility F1", "utility_macro_f1")
UTILITY_MICRO = _score("utility", "private", "micro_f1", "utility", "utility_micro_f1", "utility_accuracy")
ON_CLEAN = _score("utility", "clean", "macro_f1", "utility on clean texts")
ON_CLEAN_MICRO = _score("utility", "clean", "micro_f1", "utility on clean texts", "utility_clean_accuracy")
STATIC = _score("attack", "static", "macro_f1", "static F1", "attack_static_macro_f1")
ADAPTIVE = _score("attack", "adaptive", "macro_f1", "adaptive F1", "attack_adaptive_macro_f1")
STATIC_ACCURACY = _score("attack", "static", "accuracy", "static accuracy", "attack_static_accuracy")
COSINE = Measure("cosine", "cosine", "similarity", (), ("cosine",))
PERPLEXITY = Measure("perplexity", "perplexity", "perplexity", (), ("perplexity",))
MEMBERSHIP = Measure("membership_auc", "AUC", "membership", ("auc",), ("membership_auc",))
# Computed from the others.
GAIN = Measure("relative_gain", "relative gain", "", (), ("relative_gain",))
LOSS = Measure("utility_loss", "utility loss", "utility", ())

MEASURES = (
    UTILITY,
    UTILITY_MICRO,
    ON_CLEAN,
    ON_CLEAN_MICRO,
    STATIC,
    ADAPTIVE,
    STATIC_ACCURACY,
    COSINE,
    PERPLEXITY,
    MEMBERSHIP,
)
PARTS = {
    "utility": "utility",
    "attack": "attack",
    "similarity": "cosine similarity",
    "perplexity": "perplexity",
    "membership": "membership inference",
}
_TARGET = {"utility": "Label", "attack": "Attribute"}
_BACK_END = {
    "utility": "classifier",
    "attack": "classifier",
    "similarity": "encoder",
    "perplexity": "language_model",
}
_ALWAYS = {"membership": "linear"}  # whatever evaluation.classifier is
# metrics.json: names stay what `dvc metrics diff` compares with older commits.
_HEADLINE = {
    "utility_private": UTILITY,
    "utility_clean": ON_CLEAN,
    "attack_static": STATIC,
    "attack_adaptive": ADAPTIVE,
    "cosine": COSINE,
    "perplexity": PERPLEXITY,
    "membership_auc": MEMBERSHIP,
}


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


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """What was measured of one run.

    Attributes:
        record: mechanism, strategy, epsilon, the back ends; datasets: an entry for each measure, by name.
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

    def entry(self, dataset: str, part: str) -> Mapping[str, Any] | None:
        """What is said of one measure in one data set; None where it is left out or was not measured."""
        found: Mapping[str, Any] | None = self.record["datasets"].get(dataset, {}).get(part)
        return None if found is None or found["left_out"] is not None else found

    def value(self, dataset: str, measure: Measure) -> MeanSd | None:
        """Mean, deviation and standard error; None where it is left out or was not measured."""
        entry = self.entry(dataset, measure.part)
        found: Any = entry
        for name in measure.path:
            found = None if found is None else found.get(name)
        if entry is None or found is None or found["mean"] is None:
            return None
        mean, sd = float(found["mean"]), found.get("sd")
        error = _standard_error(measure.part, entry, mean, sd)
        return MeanSd(mean, sd, None if error is None else round(error, DIGITS))

    def back_end(self, part: str) -> str:
        """The model a measure was made with."""
        return _ALWAYS.get(part) or str(self.record.get(_BACK_END[part]) or "not recorded")


def _standard_error(part: str, entry: Mapping[str, Any], mean: float, sd: float | None) -> float | None:
    """Of a mean. Trainings and the number of documents that are asked about both make a score uncertain."""
    if part in _TARGET:
        return math.hypot(sd or 0.0, math.sqrt(mean * (1 - mean) / entry["n_test"]))
    if part == "membership":
        return math.hypot(sd or 0.0, entry.get("standard_error") or 0.0)
    if part == "similarity" and sd is not None and entry["n_compared"]:
        return float(sd / math.sqrt(entry["n_compared"]))
    return None


def require_same_back_ends(clean: EvaluatedRun, runs: Sequence[EvaluatedRun]) -> None:
    """See that all runs were measured with the same models.

    Raises:
        CheckFailed: if they were not, and so cannot be compared.
    """
    for name in dict.fromkeys(_BACK_END.values()):
        used = sorted({str(one.record[name]) for one in (clean, *runs) if one.record.get(name) is not None})
        if len(used) > 1:
            raise CheckFailed(
                f"artifacts/evaluation: runs were measured with {len(used)} settings of {name} ({', '.join(used)}), so "
                "they cannot be compared. Run `dvc repro --force evaluate evaluate_baseline`"
            )


def values(
    clean: EvaluatedRun, runs: Sequence[EvaluatedRun], dataset: str, gains: Mapping[tuple[str, Key], float | None]
) -> Values:
    """Everything known of one data set.

    Args:
        gains: relative gain by data set and run.
    """
    found: dict[tuple[str, Key], MeanSd] = {}
    for measure in MEASURES:
        for run in (clean, *runs):
            value = run.value(dataset, measure)
            if value is not None:
                found[measure.name, run.key] = value
        entry = clean.entry(dataset, measure.part)
        if entry is not None and measure.part in _TARGET and measure.path[-1] in entry["majority"]:
            found[measure.name, MAJORITY] = MeanSd(entry["majority"][measure.path[-1]], None)
    for run in runs:
        gain = gains.get((dataset, run.key))
        if gain is not None:
            found[GAIN.name, run.key] = MeanSd(gain, None)
    return found


def averages(values_of: Mapping[str, Values], datasets: Iterable[str]) -> Values:
    """Means over data sets, of what is known in each of them, without a spread."""
    every = [values_of[name] for name in datasets]
    common = set.intersection(*(set(one) for one in every)) if every else set()
    return {key: MeanSd(math.fsum(one[key].mean for one in every) / len(every), None) for key in common}


def losses(of: Values) -> Values:
    """What a run costs in micro F1, against clean texts."""
    base = of.get((UTILITY_MICRO.name, CLEAN))
    return {
        (LOSS.name, key): MeanSd(base.mean - value.mean, None)
        for (name, key), value in of.items()
        if name == UTILITY_MICRO.name and base is not None and key not in (CLEAN, MAJORITY)
    }


def keys_of(of: Values) -> list[Key]:
    """The runs that something is known of, by mechanism as they came, strategy and epsilon."""
    return [key for key in dict.fromkeys(key for _, key in of) if key not in (CLEAN, MAJORITY)]


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
    back_end = f"{_BACK_END.get(part, 'classifier').replace('_', ' ')}: {clean.back_end(part)}"
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
    n_test, target = entry["n_test"], _TARGET[part]
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


def glance_table(values_of: Mapping[str, Values], grid: Sequence[Key]) -> Table | None:
    """Per data set what clean texts give, what looking at none gives, and the runs that stand out.

    Returns:
        None if no utility and no attack is known.
    """
    shown = (UTILITY, ADAPTIVE, GAIN, COSINE, PERPLEXITY, MEMBERSHIP)
    rows: list[tuple[Any, ...]] = []
    for dataset, of in values_of.items():
        known = {key: value for key, value in of.items() if key[0] in (UTILITY.name, ADAPTIVE.name, GAIN.name)}
        if not known:
            continue

        def row(which: str, key: Key, dataset: str = dataset, of: Values = of) -> tuple[Any, ...]:
            named = (None, None, None) if key in (CLEAN, MAJORITY) else key
            return (dataset, which, *named, *(of.get((one.name, key)) for one in shown))

        rows += [row("clean texts", CLEAN), row("majority, no text read", MAJORITY)]
        for which, measure, sign in (
            ("highest utility", UTILITY, -1),
            ("weakest adaptive attack", ADAPTIVE, 1),
            ("highest relative gain", GAIN, -1),
        ):
            own = [key for key in grid if (measure.name, key) in of]
            if own:
                rows.append(row(which, min(own, key=lambda key: sign * of[measure.name, key].mean)))
    if not rows:
        return None
    columns = [
        Column("dataset", "Data set"),
        Column("which", "Which"),
        Column("mechanism", "Mechanism"),
        Column("strategy", "Strategy"),
        Column("epsilon", "Base ε", formatting.epsilon),
        Column("utility_macro_f1", "Utility, macro F1", formatting.mean_sd),
        Column("attack_adaptive_macro_f1", "Adaptive attack, macro F1", formatting.mean_sd),
        Column("relative_gain", "Relative gain", formatting.mean_sd),
        Column("cosine", "Cosine", formatting.mean_sd),
        Column("perplexity", "Perplexity", formatting.mean_sd_one),
        Column("membership_auc", "Membership AUC", formatting.mean_sd),
    ]
    kept = [place for place in range(len(columns)) if any(one[place] is not None for one in rows)]
    return Table(
        "glance",
        "Each data set at a glance: what can be learnt from clean texts, from none, and from the runs that stand out",
        [columns[place] for place in kept],
        [tuple(one[place] for place in kept) for one in rows],
        "± is the standard deviation over trainings, of a cosine over texts. "
        f"The best of {len(grid):,} {'run' if len(grid) == 1 else 'runs'} looks better than it is: part of its lead is "
        "luck.",
    )


def unlearnt(values_of: Mapping[str, Values]) -> list[str]:
    """Tasks and attacks that clean texts do not show to be learnable: not above the majority by 1.96 standard errors.

    Returns:
        Each in words, with both numbers.
    """
    found = []
    for dataset, of in values_of.items():
        for measure, words in ((UTILITY, "utility"), (ADAPTIVE, "attack")):
            clean, majority = of.get((measure.name, CLEAN)), of.get((measure.name, MAJORITY))
            if clean is not None and majority is not None and clean.mean - 1.96 * (clean.error or 0.0) <= majority.mean:
                error = formatting.three(1.96 * (clean.error or 0.0))
                found.append(
                    f"{dataset}, {words}: {formatting.three(clean.mean)} ± {error} (95%) on clean texts, majority "
                    f"{formatting.three(majority.mean)}"
                )
    return found


def left_out(clean: EvaluatedRun) -> list[tuple[str, str]]:
    """What is not scored, and why."""
    return [
        (f"{dataset}, {PARTS[part]}", str(entry["left_out"]))
        for dataset in clean.datasets
        for part in PARTS
        if (entry := clean.record["datasets"][dataset].get(part)) is not None and entry["left_out"] is not None
    ]


def not_measured(clean: EvaluatedRun) -> list[str]:
    """The measures that no data set has an entry of."""
    return [
        words
        for part, words in PARTS.items()
        if not any(part in clean.record["datasets"][name] for name in clean.datasets)
    ]


def both_scored(clean: EvaluatedRun) -> list[str]:
    """The data sets of which utility and attack are known."""
    return [name for name in clean.datasets if clean.entry(name, "utility") is not None and clean.entry(name, "attack")]


def series(of: Values, measure: Measure, mechanism: str) -> list[Series]:
    """One line per strategy over epsilon, with standard errors; a run of which nothing is known has no point."""
    lines = []
    for strategy in STRATEGIES:
        own = sorted(key for name, key in of if name == measure.name and key[:2] == (mechanism, strategy))
        if own:
            points = [of[measure.name, key] for key in own]
            lines.append(
                Series(strategy, [key[2] for key in own], [one.mean for one in points], [one.error for one in points])
            )
    return lines


def tradeoff_series(of: Values, mechanism: str) -> list[Series]:
    """One line per strategy, its points by rising epsilon: utility over attack, with standard errors."""
    lines = []
    for strategy in STRATEGIES:
        own = sorted(
            key
            for name, key in of
            if name == UTILITY.name and key[:2] == (mechanism, strategy) and (ADAPTIVE.name, key) in of
        )
        if own:
            x, y = ([of[one.name, key] for key in own] for one in (ADAPTIVE, UTILITY))
            lines.append(
                Series(
                    strategy,
                    [one.mean for one in x],
                    [one.mean for one in y],
                    [one.error for one in y],
                    [one.error for one in x],
                )
            )
    return lines


def figure_data(name: str, of: Values, measures: Sequence[Measure], mechanism: str) -> Table:
    """What a figure is drawn of: one row per run, and mean, deviation and standard error of each measure."""
    own = sorted({key for known, key in of if key[0] == mechanism and any(known == one.name for one in measures)})
    rows = []
    for key in (*own, CLEAN):
        found = [of.get((one.name, key)) for one in measures]
        if any(one is not None for one in found):
            numbers_of = [(None,) * 3 if one is None else (one.mean, one.sd, one.error) for one in found]
            rows.append((*key, *(number for three in numbers_of for number in three)))
    columns = [Column(head, head) for head in ("mechanism", "strategy", "epsilon")]
    columns += [Column(f"{one.name}_{end}", end) for one in measures for end in ("mean", "sd", "standard_error")]
    return Table(name, name, columns, rows)


def headline(runs: Sequence[EvaluatedRun]) -> dict[str, dict[str, dict[str, float]]]:
    """The numbers `dvc metrics diff` compares, by run and data set; what is left out is not there."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for run in runs:
        mechanism, strategy, epsilon = run.key
        by_dataset = found.setdefault(f"{mechanism}/{strategy}/{epsilon}", {})
        for dataset in run.datasets:
            scores = {name: run.value(dataset, measure) for name, measure in _HEADLINE.items()}
            by_dataset[dataset] = {name: score.mean for name, score in scores.items() if score is not None}
    return found
