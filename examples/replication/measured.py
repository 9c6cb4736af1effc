"""Figures that a project measured, under the names of published.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from examples.replication import stsb
from examples.replication.literature import ANY, MEASURES, NONE, Literature
from lexveil.core.mechanisms.variants import SEPARATOR
from lexveil.io.config import CLEAN
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.evaluation_values import MAJORITY, Values, averages
from lexveil.lab.report.formatting import MeanSd
from lexveil.lab.report.records import Key

IQR_PER_SD = 1.349  # interquartile range of a normal distribution per standard deviation
LISTS = ("diffractor_geometric", "diffractor_tem")
BEST = "diffractor_best"  # the best of all lists of both mechanisms
MEAN_OF_LISTS = "mean of L0, L1 and L2"
BEST_OF_LISTS = "best of all lists"
# Variants of a paper whose parameters a preset gives to the mechanism itself.
OWN_PARAMETERS = ("lambda 0.2", "k 2")


class MeasureKey(NamedTuple):
    """Key of one measured figure; for clean texts epsilon is 0 and mechanism is `none`."""

    measure: str
    datasets: frozenset[str]
    mechanism: str
    variant: str
    strategy: str
    epsilon: float


Measured = dict[MeasureKey, MeanSd]


def key_of(figure: Literature) -> MeasureKey:
    """Return the key of a printed figure."""
    variant = "" if figure.variant in OWN_PARAMETERS else figure.variant
    return MeasureKey(
        figure.measure,
        frozenset(figure.datasets),
        figure.mechanism,
        variant,
        figure.strategy,
        figure.epsilon,
    )


def evaluated(values_of: Mapping[str, Values], groups: Sequence[tuple[str, ...]]) -> Measured:
    """Return the scores of all runs, by data set and averaged over groups of data sets.

    Args:
        values_of: scores of runs, by data set.
        groups: groups of data sets over which a paper prints one average.
    """
    found: Measured = {}
    by_sets = {frozenset([name]): values for name, values in values_of.items()}
    for group in groups:
        if set(group) <= set(values_of):
            by_sets[frozenset(group)] = averages(values_of, group)
    for datasets, values in by_sets.items():
        for score, measures in MEASURES.items():
            for (name, key), value in values.items():
                if name == score.name and key != MAJORITY and key[2].share is None:
                    found |= {_key(measure, datasets, key): value for measure in measures}
    return found


def _key(measure: str, datasets: frozenset[str], run: Key) -> MeasureKey:
    mechanism, strategy, noise = run
    if run == CLEAN:
        return MeasureKey(measure, datasets, NONE, "", NONE, 0.0)
    base, _, variant = mechanism.partition(SEPARATOR)
    return MeasureKey(measure, datasets, base, variant, strategy, noise.number)


def over_lists(known: Measured) -> Measured:
    """Return the mean of each mechanism on lists over its list sets, and the best value of both
    mechanisms.
    """
    means: dict[MeasureKey, list[float]] = {}
    best: dict[MeasureKey, list[MeanSd]] = {}
    for key, value in known.items():
        if key.mechanism in LISTS:
            means.setdefault(key._replace(variant=MEAN_OF_LISTS), []).append(value.mean)
            top = key._replace(mechanism=BEST, variant=BEST_OF_LISTS)
            best.setdefault(top, []).append(value)
    found = {key: MeanSd(sum(each) / len(each), None) for key, each in means.items()}
    return found | {key: max(each, key=lambda value: value.mean) for key, each in best.items()}


def planned(report: ReportData, epsilons: Sequence[float]) -> Measured:
    """Return the words per text, and the budget of a document at each base ε (CLMLDP Table 8)."""
    found: Measured = {}
    for plan in report.plans:
        datasets = frozenset([plan["dataset"]])
        n_words = plan["words_per_text"]
        found[MeasureKey("words_per_text", datasets, NONE, "", NONE, 0.0)] = MeanSd(n_words, None)
        if report.params.grid.budget == "document":
            for epsilon in epsilons:
                budget = MeasureKey("document_budget", datasets, ANY, "", ANY, epsilon)
                found[budget] = MeanSd(n_words * epsilon, None)
    return found


def replaced(statistics: Sequence[Mapping[str, Any]]) -> Measured:
    """Return the share of draws that differ from the source word, 1 − N_w / draws, by mechanism and
    ε.
    """
    found: Measured = {}
    for record in statistics:
        if record["segmentation"] != "word":
            continue
        for row in record["statistics"]:
            if row["n_w"] is None:
                continue
            base, _, variant = record["mechanism"].partition(SEPARATOR)
            key = MeasureKey(
                "share_replaced", frozenset(["words"]), base, variant, "S1", float(row["epsilon"])
            )
            found[key] = MeanSd(1 - row["n_w"]["mean"] / row["n_draws"], None)
            if variant == "listsL0":
                found[key._replace(variant="")] = found[key]
    return found


def measured(
    report: ReportData,
    values_of: Mapping[str, Values],
    figures: Sequence[Literature],
    keys: Sequence[Key],
) -> Measured:
    """Return all figures of a project's runs that the papers print.

    Args:
        report: report of the main grid.
        values_of: scores of the runs of all grids, by data set.
        figures: printed figures, whose groups of data sets are averaged.
        keys: the runs of all grids.
    """
    groups = sorted({figure.datasets for figure in figures if len(figure.datasets) > 1})
    found = evaluated(values_of, groups)
    if stsb.DATASET in {plan["dataset"] for plan in report.plans}:
        found |= stsb_scores(keys)
    found |= over_lists(found)
    found |= planned(report, sorted({float(key[2].number) for key in keys}))
    return found | replaced(report.deniability)


def stsb_scores(keys: Sequence[Key]) -> Measured:
    """Return the scores of STS-B on clean texts and on the texts of every run."""
    found: Measured = {}
    for key in (CLEAN, *keys):
        correlation = stsb.of_run(key)
        if correlation is not None:
            name = _key(stsb.MEASURE, frozenset([stsb.DATASET]), key)
            found[name] = MeanSd(correlation.mean, None)
    return found
