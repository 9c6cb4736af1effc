"""Report section "budgets": the data sets, their coverage by the vocabularies, their privacy
budgets, and the budget plans of the strategies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.base.errors import CheckFailedError
from lexveil.core.accounting.budgets import SEGMENTATION_OF
from lexveil.core.mechanisms.registry import MECHANISMS
from lexveil.core.mechanisms.variants import base_of
from lexveil.lab.report import epsilon_units, formatting
from lexveil.lab.report.data import Record, ReportData
from lexveil.lab.report.evaluation_values import EvaluatedRun
from lexveil.lab.report.records import SEGMENTATIONS, ReportedRun
from lexveil.lab.report.table import Column, Row, Table, epsilon_columns, epsilon_key

TOLERANCE = 1e-9  # relative; the same budget computed twice may differ by rounding

DATASET = Column("dataset", "Data set")
STRATEGY = Column("strategy", "Strategy")
PERTURBED = Column("perturbed_per_text", "Tokens with noise / text", formatting.two)
CLASSES = tuple(
    Column(f"n_{kind}{end}", head, formatting.count, kind.capitalize())
    for kind in ("label", "attribute")
    for end, head in (("s", "Classes"), ("_train", "Train"), ("_test", "Held out"))
)


def require_one_budget(plans: Sequence[Record]) -> None:
    """Check that all strategies have the same privacy budget for the same texts.

    Raises:
        CheckFailedError: if the budgets of two strategies differ.
    """
    first: dict[tuple[str, float], Record] = {}
    for plan in plans:
        known = first.setdefault((plan["dataset"], plan["epsilon"]), plan)
        is_same = abs(known["budget"] - plan["budget"]) <= TOLERANCE * max(1.0, known["budget"])
        if not is_same or known["n_words"] != plan["n_words"]:
            raise CheckFailedError(
                f"report: {known['strategy']} and {plan['strategy']} plan data set "
                f"{plan['dataset']} at base epsilon {plan['epsilon']} with budgets "
                f"{known['budget']:g} and {plan['budget']:g} for {known['n_words']:,} and "
                f"{plan['n_words']:,} words; the budgets must be equal. Run `dvc repro --force "
                "plan_budgets`"
            )


def by_epsilon(plans: Sequence[Record], names: Sequence[str], value: str) -> list[Row]:
    """Pivot budget plans to one row for each combination of the columns ``names``: the first plan
    of the combination, and one column with ``value`` for every epsilon.
    """
    rows: dict[tuple[str, ...], dict[str, object]] = {}
    for plan in plans:
        row = rows.setdefault(tuple(plan[name] for name in names), dict(plan))
        row[epsilon_key(plan["epsilon"], value)] = plan[value]
    return [rows[key] for key in sorted(rows)]


def budget_tables(plans: Sequence[Record], *, is_per_token: bool) -> dict[str, Table]:
    """Return three tables: the document budget at each base epsilon, the mean epsilon of a token,
    and the mean spending of a text. If every token has the epsilon of the grid, return only the
    table of the spending.
    """
    epsilons = sorted({plan["epsilon"] for plan in plans})
    two = formatting.two
    if is_per_token:
        lead = [STRATEGY, DATASET, PERTURBED]
        spent = epsilon_columns(epsilons, two, "Mean ε spent at ε per token", "epsilon_spent")
        rows = by_epsilon(plans, ["strategy", "dataset"], "epsilon_spent")
        return {"spent": Table("spent", [*lead, *spent], rows)}
    lead = [
        DATASET,
        Column("n_texts", "Texts", formatting.count),
        Column("words_per_text", "Avg. words / text", two),
    ]
    budgets = epsilon_columns(epsilons, two, "Document budget B at base ε", "budget")
    noisy = [STRATEGY, DATASET, PERTURBED]
    per_token = epsilon_columns(epsilons, two, "Mean ε per token at base ε", "epsilon_per_token")
    share = [STRATEGY, DATASET, Column("share_of_budget", "Share of B spent", formatting.share)]
    spent = epsilon_columns(epsilons, two, "Mean ε spent at base ε", "epsilon_spent")
    own = ["strategy", "dataset"]
    return {
        "budgets": Table("budgets", [*lead, *budgets], by_epsilon(plans, ["dataset"], "budget")),
        "per_token": Table(
            "per-token", [*noisy, *per_token], by_epsilon(plans, own, "epsilon_per_token")
        ),
        "spent": Table("spent", [*share, *spent], by_epsilon(plans, own, "epsilon_spent")),
    }


def datasets_table(plans: Sequence[Record], clean: EvaluatedRun) -> Table:
    """Return a table of the size of each data set, and the classes of its labels and attributes."""
    rows: dict[str, dict[str, object]] = {}
    for plan in plans:
        row = rows.setdefault(plan["dataset"], dict(plan))
        row.setdefault(f"{SEGMENTATION_OF[plan['strategy']]}_tokens", plan["tokens_per_text"])
    for dataset, row in rows.items():
        for metric, kind in (("utility", "label"), ("attack", "attribute")):
            entry = clean.entry(dataset, metric) or {}
            for end, name in (("s", "n_classes"), ("_train", "n_train"), ("_test", "n_test")):
                row[f"n_{kind}{end}"] = entry.get(name)
    columns = [
        DATASET,
        Column("n_documents", "Documents", formatting.count),
        Column("n_texts", "Texts", formatting.count),
        Column("words_per_text", "Words", formatting.two, "Per text"),
        *(
            Column(f"{name}_tokens", f"{name} tokens", formatting.two, "Per text")
            for name in SEGMENTATIONS
        ),
        *CLASSES,
    ]
    return Table("datasets", columns, [rows[dataset] for dataset in sorted(rows)])


def coverage_table(coverage: Mapping[str, Mapping[str, Record]]) -> Table:
    """Return a table of the share of each data set's words that each vocabulary covers."""
    rows = [
        {"dataset": dataset, "segmentation": segmentation, **by_segmentation[segmentation]}
        for dataset, by_segmentation in sorted(coverage.items())
        for segmentation in sorted(by_segmentation, key=SEGMENTATIONS.index)
    ]
    columns = [
        DATASET,
        Column("segmentation", "Segmentation"),
        Column("n_texts", "Texts", formatting.count),
        Column("n_words", "Words", formatting.count),
        Column("n_covered", "Known", formatting.count),
        Column("n_oov", "Unknown", formatting.count),
        Column("coverage", "Coverage", formatting.share),
    ]
    return Table("coverage", columns, rows)


def bounded(runs: Sequence[ReportedRun], metric: str) -> list[str]:
    """Return the names of the mechanisms that state a guarantee in ``metric``, if the guarantee is
    proven for every run of the mechanism.
    """
    unproven = {run.key[0] for run in runs if run.record.get("no_proof")}
    mechanisms = dict.fromkeys(run.key[0] for run in runs if not run.is_baseline)
    return [
        name
        for name in mechanisms
        if MECHANISMS[base_of(name)].metric == metric and name not in unproven
    ]


def bound_table(plans: Sequence[Record], nearest: Mapping[str, float], epsilon_is: str) -> Table:
    """Return a table of the factor by which an output may become more likely if one token is
    exchanged for its nearest neighbour.

    Args:
        epsilon_is: description in words of the grid's epsilon.
        nearest: median distance between a token and its nearest neighbour, by segmentation.
    """
    epsilons = sorted({plan["epsilon"] for plan in plans})
    rows = []
    for strategy in sorted({plan["strategy"] for plan in plans}):
        row: dict[str, object] = {
            "strategy": strategy,
            "nearest": nearest[SEGMENTATION_OF[strategy]],
        }
        for epsilon in epsilons:
            own = [
                plan for plan in plans if (plan["strategy"], plan["epsilon"]) == (strategy, epsilon)
            ]
            spent, n_perturbed = (
                sum(plan[name] for plan in own) for name in ("epsilon_planned", "n_perturbed")
            )
            row[epsilon_key(epsilon, "log_factor")] = (
                spent / n_perturbed * row["nearest"] if n_perturbed else None
            )
        rows.append(row)
    factors = epsilon_columns(
        epsilons, formatting.factor, f"Largest factor exp(ε·d) at {epsilon_is}", "log_factor"
    )
    return Table(
        "bound",
        [STRATEGY, Column("nearest", "Median distance d", formatting.three), *factors],
        rows,
    )


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "budgets", without budgets if all runs are at
    recovery levels.
    """
    plans = report.plans
    mechanisms = bounded(report.runs, epsilon_units.EUCLIDEAN)
    is_per_token = report.params.grid.budget == "token"
    if not is_per_token:
        require_one_budget(plans)
    epsilon_is = "ε per token" if is_per_token else "base ε"
    return {
        "has_budgets": bool(plans),
        "is_per_token": is_per_token,
        "data_sets": datasets_table(plans, report.clean),
        "units": epsilon_units.in_words(report.params.grid.mechanisms),
        **budget_tables(plans, is_per_token=is_per_token),
        "bound": bound_table(plans, report.nearest, epsilon_is) if plans and mechanisms else None,
        "bounded": mechanisms,
        "coverage": coverage_table(report.coverage),
    }
