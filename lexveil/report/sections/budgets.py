"""Budgets, and what the strategies make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lexveil.accounting.budgets import SEGMENTATION_OF
from lexveil.errors import CheckFailed
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.report import epsilon_units, formatting
from lexveil.report.data import ReportData
from lexveil.report.evaluation_values import EvaluatedRun
from lexveil.report.records import SEGMENTATIONS, PlanTotals, RunResult
from lexveil.report.section import Section
from lexveil.report.table import Column, Table

TOLERANCE = 1e-9  # relative; the same budget computed twice may differ by rounding


def budgets_table(totals: Sequence[PlanTotals], mechanisms: Sequence[str]) -> Table:
    """Average words per text and the document budget at each base epsilon, per data set.

    Args:
        mechanisms: of the grid; the plans are the same for all, the unit of ε is not.

    Raises:
        CheckFailed: if two strategies were given different budgets for the same texts.
    """
    epsilons = sorted({plan.epsilon for plan in totals})
    found: dict[tuple[str, float], PlanTotals] = {}
    for plan in totals:
        known = found.setdefault((plan.dataset, plan.epsilon), plan)
        if abs(known.budget - plan.budget) > TOLERANCE * max(1.0, known.budget) or known.n_words != plan.n_words:
            raise CheckFailed(
                f"report: {known.strategy} and {plan.strategy} plan data set {plan.dataset} at base epsilon "
                f"{plan.epsilon} with budgets {known.budget:g} and {plan.budget:g} for {known.n_words:,} and "
                f"{plan.n_words:,} words; it must be one. Run `dvc repro --force plan_budgets`"
            )
    datasets = sorted({dataset for dataset, _ in found})
    rows: list[tuple[object, ...]] = []
    for dataset in datasets:
        first = found[dataset, epsilons[0]]
        budgets = [found[dataset, epsilon].budget for epsilon in epsilons]
        rows.append((dataset, first.n_texts, first.words_per_text, *budgets))
    return Table(
        "budgets",
        "Document budget B = base ε × average words per text",
        [
            Column("dataset", "Data set"),
            Column("n_texts", "Texts", formatting.count),
            Column("words_per_text", "Avg. words / text", formatting.two),
            *(_at(f"budget_{base}", base, "Document budget B at base ε") for base in epsilons),
        ],
        rows,
        "Each text of a data set has the same budget. Punctuation marks are not "
        f"counted as words. {epsilon_units.in_words(mechanisms)}",
    )


def datasets_table(totals: Sequence[PlanTotals], classes: Mapping[str, Mapping[str, int | None]]) -> Table:
    """How large each data set is, and what can be told from it.

    Args:
        classes: numbers of classes and documents by data set, under the names of the columns; None where unknown.
    """
    known: dict[str, dict[str, PlanTotals]] = {}
    for plan in totals:
        known.setdefault(plan.dataset, {}).setdefault(SEGMENTATION_OF[plan.strategy], plan)
    segmentations = sorted({name for by_name in known.values() for name in by_name}, key=SEGMENTATIONS.index)
    of_classes = {
        "n_labels": ("Classes", "Label"),
        "n_label_train": ("Train", "Label"),
        "n_label_test": ("Held out", "Label"),
        "n_attributes": ("Classes", "Attribute"),
        "n_attribute_train": ("Train", "Attribute"),
        "n_attribute_test": ("Held out", "Attribute"),
    }
    rows = []
    for dataset, by_name in sorted(known.items()):
        first = next(iter(by_name.values()))
        cut = [by_name[name].n_tokens / first.n_texts if name in by_name else None for name in segmentations]
        counted = (classes.get(dataset, {}).get(name) for name in of_classes)
        rows.append((dataset, first.n_documents, first.n_texts, first.words_per_text, *cut, *counted))
    return Table(
        "datasets",
        "The data sets",
        [
            Column("dataset", "Data set"),
            Column("n_documents", "Documents", formatting.count),
            Column("n_texts", "Texts", formatting.count),
            Column("words_per_text", "Words", formatting.two, "Per text"),
            *(Column(f"{name}_tokens", f"{name} tokens", formatting.two, "Per text") for name in segmentations),
            *(Column(name, head, formatting.count, group) for name, (head, group) in of_classes.items()),
        ],
        rows,
        "A pair of texts is one document and two texts. Tokens count punctuation marks, words do not. Train and held "
        "out: documents of the splits that the classifiers learn from and are asked about.",
    )


def class_counts(clean: EvaluatedRun) -> dict[str, dict[str, int | None]]:
    """Classes and documents of label and attribute, by data set; see ``datasets_table``."""
    return {
        dataset: {
            f"n_{name}{end}": entry[key]
            for part, name in (("utility", "label"), ("attack", "attribute"))
            if (entry := clean.entry(dataset, part)) is not None
            for end, key in (("s", "n_classes"), ("_train", "n_train"), ("_test", "n_test"))
        }
        for dataset in clean.datasets
    }


def per_token_table(totals: Sequence[PlanTotals]) -> Table:
    """Mean epsilon of a token that gets noise, per strategy and data set."""
    return _by_strategy(
        totals,
        "per-token",
        "Mean ε of a token that gets noise",
        "Mean ε per token at base ε",
        lambda one: one.per_token,
        "The larger, the smaller the noise of that token: fewer tokens to share a budget, more ε for each.",
    )


def spent_table(totals: Sequence[PlanTotals]) -> Table:
    """Mean epsilon spent per text, per strategy and data set."""
    return _by_strategy(
        totals,
        "spent",
        "Mean ε spent per text",
        "Mean ε spent at base ε",
        lambda one: one.spent,
        "S1, S3 and S4 spend all of B, except on texts in which no token gets noise; S2 spends less wherever a text "
        "has a collocation.",
        share=True,
    )


def bounded(runs: Sequence[RunResult], metric: str) -> list[str]:
    """The mechanisms whose guarantee is in terms of ``metric``, and holds of every run with them."""
    unproven = {run.mechanism for run in runs if run.record.get("no_proof")}
    named = dict.fromkeys(run.mechanism for run in runs if not run.is_baseline)
    return [name for name in named if MECHANISMS[name].metric == metric and name not in unproven]


def bound_table(totals: Sequence[PlanTotals], nearest: Mapping[str, float], mechanisms: Sequence[str]) -> Table:
    """How much more likely one output may be, when one token is exchanged for its nearest neighbour.

    Args:
        mechanisms: whose guarantee this is; their distance is Euclidean.
        nearest: median distance of a token to its nearest neighbour, by strategy.
    """
    epsilons = sorted({plan.epsilon for plan in totals})
    rows = []
    for strategy in sorted({plan.strategy for plan in totals}):
        means = []
        for epsilon in epsilons:
            own = [plan for plan in totals if (plan.strategy, plan.epsilon) == (strategy, epsilon)]
            n_perturbed = sum(plan.n_perturbed for plan in own)
            spent = sum(plan.epsilon_planned for plan in own)
            means.append(spent / n_perturbed * nearest[strategy] if n_perturbed else None)
        rows.append((strategy, nearest[strategy], *means))
    return Table(
        "bound",
        "What ε means here: the bound for one token and its nearest neighbour, in a release",
        [
            Column("strategy", "Strategy"),
            Column("nearest", "Median distance d", formatting.three),
            *(
                Column(
                    f"log_factor_{base}",
                    formatting.epsilon(base),
                    formatting.factor,
                    "Largest factor exp(ε·d) at base ε",
                )
                for base in epsilons
            ),
        ],
        rows,
        f"For {formatting.listed(list(mechanisms))}, whose distance is the Euclidean one of the embedding. "
        "Two texts that differ in one token, exchanged for its nearest neighbour: no output is more likely from one of "
        "them than this factor times its chance from the other (with the mean ε of a token, and the median d). ×2 "
        "hides well which of the two it was; ×1,000 and more hides it hardly at all. Tokens further apart are told "
        "apart more easily.",
    )


def _by_strategy(
    totals: Sequence[PlanTotals],
    name: str,
    caption: str,
    group: str,
    value: Callable[[PlanTotals], float | None],
    note: str,
    *,
    share: bool = False,
) -> Table:
    epsilons = sorted({plan.epsilon for plan in totals})
    by_key = {(plan.strategy, plan.dataset, plan.epsilon): plan for plan in totals}
    rows = []
    for strategy, dataset in sorted({key[:2] for key in by_key}):
        plans = [by_key[strategy, dataset, epsilon] for epsilon in epsilons]
        first = plans[0]
        extra = first.spent / first.budget if first.budget else None
        lead = (extra,) if share else (first.n_perturbed / first.n_texts,)
        rows.append((strategy, dataset, *lead, *(value(plan) for plan in plans)))
    head = (
        Column("share_of_budget", "Share of B spent", formatting.share)
        if share
        else Column("perturbed_per_text", "Tokens with noise / text", formatting.two)
    )
    return Table(
        name,
        caption,
        [
            Column("strategy", "Strategy"),
            Column("dataset", "Data set"),
            head,
            *(_at(f"{name}_{base}", base, group) for base in epsilons),
        ],
        rows,
        note,
    )


def _at(key: str, epsilon: float, group: str) -> Column:
    return Column(key, formatting.epsilon(epsilon), formatting.two, group)


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    if not report.plans:  # all runs are at levels of recovery
        return {"budgets": None}
    grid, mechanisms = report.params.grid, bounded(report.runs, epsilon_units.EUCLIDEAN)
    nearest = {str(name): report.nearest[SEGMENTATION_OF[name]] for name in grid.strategies}
    return {
        "budgets": budgets_table(report.plans, grid.mechanisms),
        "data_sets": datasets_table(report.plans, class_counts(report.clean)),
        "per_token": per_token_table(report.plans),
        "spent": spent_table(report.plans),
        "bound": bound_table(report.plans, nearest, mechanisms) if mechanisms else None,
    }


SECTION = Section(
    name="budgets",
    title="Data sets and budgets",
    heading="Data sets and budgets",
    view=view,
    prose="""\
{% if budgets %}
{{ render_table(data_sets) }}
{{ render_table(budgets) }}
{{ render_table(per_token) }}
{{ render_table(spent) }}
{% if bound %}{{ render_table(bound) }}{% endif %}
{% else %}
<p>All runs are at levels of recovery: each replaced token gets the ε that was found for the level, and a text spends
that times the number of its replaced tokens.</p>
{% endif %}
""",
)
