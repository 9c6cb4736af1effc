"""What the runs gave, and what may be said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.accounting.budgets import ACTIONS, STRATEGIES, Policy
from lexveil.accounting.record import Guarantee, guarantee
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.report import epsilon_units, formatting
from lexveil.report.figures import Series
from lexveil.report.table import Column, Table

STRATEGY_IN_WORDS = {
    "none": "the text as it is",
    "S1": "single words; each gets an equal part of the budget",
    "S2": "collocations (GST); the budget is split over words, so a collocation pays for one word only",
    "S3": "collocations (GST); each token gets an equal part of the budget",
    "S4": "collocations (MST); each token gets an equal part of the budget",
}
CLASS_IN_WORDS = {"word": "words", "stopword": "stop words", "punctuation": "punctuation", "oov": "unknown words"}

_WHICH = [
    Column("mechanism", "Mechanism"),
    Column("strategy", "Strategy"),
    Column("epsilon", "Base ε", formatting.epsilon),
]
_IN_RELEASE = "in release mode: "


@dataclass(frozen=True, slots=True)
class RunResult:
    """One output of the grid, or the clean baseline (mechanism and strategy "none", epsilon 0).

    Attributes:
        metrics: its metrics.json.
        record: its record.json.
        budget_mean: mean document budget over its texts, in 1 / distance of the mechanism; None for
            the baseline.
    """

    mechanism: str
    strategy: str
    epsilon: float
    metrics: Mapping[str, Any]
    record: Mapping[str, Any]
    budget_mean: float | None

    @property
    def key(self) -> tuple[str, str, float]:
        """What names it."""
        return self.mechanism, self.strategy, self.epsilon

    @property
    def is_baseline(self) -> bool:
        """Whether nothing was done to the text."""
        return self.mechanism == "none"


@dataclass(frozen=True, slots=True)
class Promise:
    """What is guaranteed of some runs, and what a release with the same settings would promise.

    Attributes:
        runs: which, in words.
        verdict: the formula, or "none" and why.
        statement: the same in a sentence.
        conditions: under which it holds.
        release: formula and statement of a release; None if this is one already.
        release_conditions: each with the mechanisms and strategies it concerns ("" for all of these runs).
    """

    runs: str
    verdict: str
    statement: str
    conditions: list[str]
    release: Guarantee | None
    release_conditions: list[tuple[str, str]]


def results_table(runs: Sequence[RunResult]) -> Table:
    """What comes back, per run."""
    mechanisms = list(dict.fromkeys(run.mechanism for run in runs if not run.is_baseline))
    return Table(
        "results",
        "What comes back, per run",
        [
            *_WHICH,
            Column("share_unchanged", "Unchanged", formatting.share, "Of the tokens that got noise"),
            Column("mean_cosine", "Mean cosine of the replaced", formatting.three, "Of the tokens that got noise"),
            Column("unprotected_share", "In clear", formatting.share, "Of all tokens"),
            Column("epsilon_spent_mean", "Spent", formatting.two, "Mean ε per text"),
            Column("budget_mean", "Budget", formatting.two, "Mean ε per text"),
        ],
        [
            (
                *run.key,
                run.metrics["share_unchanged"],
                run.metrics["mean_cosine"],
                run.metrics["unprotected_share"],
                None if run.is_baseline else run.metrics["epsilon_spent_mean"],
                run.budget_mean,
            )
            for run in runs
        ],
        "Unchanged: the noise led back to the token itself, which then leaves as it was, though whoever reads it "
        "cannot be sure. Mean cosine: how near the vector of a replacement is to that of the token it replaces, 1 for "
        f"the same direction, 0 for an unrelated one. {epsilon_units.in_words(mechanisms)}",
    )


def tokens_table(runs: Sequence[RunResult]) -> Table:
    """Tokens and words in and out, per run."""
    keys = {
        "n_texts": ("Texts", ""),
        "n_tokens_in": ("in", "Tokens"),
        "n_tokens_out": ("out", "Tokens"),
        "n_words_in": ("in", "Words"),
        "n_words_out": ("out", "Words"),
        "n_perturbed": ("got noise", "Tokens that"),
        "n_sampled": ("were drawn at random", "Tokens that"),
        "n_kept": ("stayed in clear", "Tokens that"),
        "n_dropped": ("were dropped", "Tokens that"),
    }
    return Table(
        "tokens",
        "Tokens and words in and out, per run",
        [*_WHICH, *(Column(key, head, formatting.count, group) for key, (head, group) in keys.items())],
        [(*run.key, *(run.metrics[key] for key in keys)) for run in runs],
        "A token is one word, a collocation of two or three, or a punctuation mark; words here include punctuation "
        "marks. A replacement may have more or fewer words than what it replaces.",
    )


def exposure_table(runs: Sequence[RunResult]) -> Table:
    """What is protected and what leaves in clear, by class of token: the same at every epsilon of a strategy."""
    kinds = list(CLASS_IN_WORDS)
    rows = []
    for (mechanism, strategy), (epsilons, by_class) in _exposures(runs).items():
        total = {action: sum(by_class[kind][action] for kind in kinds) for action in ACTIONS}
        whole = sum(total.values())
        rows.append(
            (
                mechanism,
                strategy,
                epsilons,
                total["perturbed"],
                total["sampled"],
                total["dropped"],
                *(by_class[kind]["kept"] for kind in kinds),
                total["kept"] / whole if whole else None,
            )
        )
    return Table(
        "exposure",
        "What is protected and what leaves in clear, in tokens",
        [
            Column("mechanism", "Mechanism"),
            Column("strategy", "Strategy"),
            Column("epsilons", "Base ε"),
            Column("n_perturbed", "with noise", formatting.count, "Protected"),
            Column("n_sampled", "drawn at random", formatting.count, "Protected"),
            Column("n_dropped", "dropped", formatting.count, "Protected"),
            *(Column(f"kept_{kind}", name, formatting.count, "In clear") for kind, name in CLASS_IN_WORDS.items()),
            Column("unprotected_share", "share of all", formatting.share, "In clear"),
        ],
        rows,
        "Which class is treated how is set in params.yaml (policy). Unknown words are those outside the vocabulary, "
        "names among them. A random draw tells nothing of what stood there, and carries none of its meaning.",
    )


def _exposures(runs: Sequence[RunResult]) -> dict[tuple[str, str], tuple[str, Mapping[str, Mapping[str, int]]]]:
    """Counts by class and action of every mechanism and strategy, and the epsilons they were seen at."""
    found: dict[tuple[str, str], tuple[str, Mapping[str, Mapping[str, int]]]] = {}
    for run in runs:
        key, by_class = (run.mechanism, run.strategy), run.metrics["by_class"]
        label = formatting.epsilon(run.epsilon)
        if key in found and found[key][1] == by_class:
            found[key] = (f"{found[key][0]}, {label}", by_class)
        elif key in found:  # differs by epsilon: a row of its own
            found[(run.mechanism, f"{run.strategy}/{label}")] = (label, by_class)
        else:
            found[key] = (label, by_class)
    return found


def outcome_shares(runs: Sequence[RunResult]) -> dict[str, dict[str, float]]:
    """Share of all tokens by what happened to them, per strategy; per mechanism too where it depends on that."""
    private = [run for run in runs if not run.is_baseline]
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (mechanism, strategy), (_, by_class) in _exposures(private).items():
        total = {action: sum(by_class[kind][action] for kind in by_class) for action in ACTIONS}
        whole = max(sum(total.values()), 1)
        found.setdefault(strategy, {})[mechanism] = {
            "noise": total["perturbed"] / whole,
            "random draw": total["sampled"] / whole,
            "dropped": total["dropped"] / whole,
            "in clear": total["kept"] / whole,
        }
    n_mechanisms = len({run.mechanism for run in private})
    shares = {}
    for strategy, by_mechanism in found.items():
        first = next(iter(by_mechanism.values()))
        if len(by_mechanism) == n_mechanisms and all(one == first for one in by_mechanism.values()):
            shares[strategy] = first
        else:
            shares |= {f"{mechanism} {strategy}": one for mechanism, one in by_mechanism.items()}
    return shares


def series(runs: Sequence[RunResult], mechanism: str, metric: str) -> list[Series]:
    """One line per strategy over epsilon; a run without the number has no point."""
    lines = []
    for strategy in STRATEGIES:
        points = sorted(
            (run.epsilon, run.metrics[metric])
            for run in runs
            if (run.mechanism, run.strategy) == (mechanism, strategy) and run.metrics[metric] is not None
        )
        if points:
            lines.append(Series(strategy, [x for x, _ in points], [y for _, y in points]))
    return lines


def promises(runs: Sequence[RunResult]) -> list[Promise]:
    """What is guaranteed, once for all runs of which the same is said; the baseline last."""
    grouped: dict[tuple[str, str, str, str], list[RunResult]] = {}
    for run in runs:
        said, release = run.record["guarantee"], _release(run)
        # What a release would promise names the distance, which mechanisms need not share.
        key = (run.record["mode"], said["formula"], said["statement"], release.statement if release else "")
        grouped.setdefault(key, []).append(run)
    return sorted(
        (_promise(mode, formula, statement, members) for (mode, formula, statement, _), members in grouped.items()),
        key=lambda promise: promise.runs == _BASELINE,
    )


def _release(run: RunResult) -> Guarantee | None:
    """What a release like this run would promise, by the one place that says it anywhere; None if this is one."""
    if run.is_baseline or run.record["mode"] == "release":
        return None
    policy, no_proof = Policy(**run.record["policy"]), run.record.get("no_proof")
    return guarantee(run.mechanism, run.strategy, policy, "release", keep_layout=False, no_proof=no_proof)


_BASELINE = "the clean baseline"


def _promise(mode: str, formula: str, statement: str, members: Sequence[RunResult]) -> Promise:
    if all(run.is_baseline for run in members):
        return Promise(_BASELINE, "none: nothing was done to the text", statement, [], None, [])
    noun = "run" if len(members) == 1 else "runs"
    runs = f"{len(members)} {noun}: {formatting.listed(sorted({run.mechanism for run in members}))} with strategy "
    runs += formatting.listed(sorted({run.strategy for run in members}))
    conditions = {run.key: list(run.record["guarantee"]["because"]) for run in members}
    if mode == "release":
        return Promise(runs, formula, statement, [text for text, _ in _merged(members, conditions)], None, [])
    ahead = {key: [text for text in texts if text.startswith(_IN_RELEASE)] for key, texts in conditions.items()}
    return Promise(
        runs,
        "none: the seed is known" if mode == "experiment" else formula,
        statement,
        [],
        _release(members[0]),
        [(text.removeprefix(_IN_RELEASE), which) for text, which in _merged(members, ahead)],
    )


def _merged(
    members: Sequence[RunResult], texts: Mapping[tuple[str, str, float], Sequence[str]]
) -> list[tuple[str, str]]:
    """Each text once, in the order of the records, with the mechanisms and strategies it stands for ("" for all)."""
    holds: dict[str, list[RunResult]] = {}
    for run in members:
        for text in texts[run.key]:
            holds.setdefault(text, []).append(run)

    def which(some: Sequence[RunResult]) -> str:
        pairs = [({run.mechanism for run in of}, {run.strategy for run in of}) for of in (some, members)]
        return ", ".join(
            formatting.listed(sorted(own)) for own, every in zip(pairs[0], pairs[1], strict=True) if own != every
        )

    return [(text, which(some)) for text, some in holds.items()]


def bounded(runs: Sequence[RunResult], metric: str) -> list[str]:
    """The mechanisms whose guarantee is in terms of ``metric``, and holds of every run with them."""
    unproven = {run.mechanism for run in runs if run.record.get("no_proof")}
    named = dict.fromkeys(run.mechanism for run in runs if not run.is_baseline)
    return [name for name in named if MECHANISMS[name].metric == metric and name not in unproven]


CSV_COLUMNS = (
    "n_texts", "n_tokens_in", "n_tokens_out", "n_words_in", "n_words_out", "n_perturbed", "n_sampled", "n_kept",
    "n_dropped", "share_unchanged", "mean_cosine", "unprotected_share", "epsilon_spent_mean",
)  # fmt: skip


def csv_rows(runs: Sequence[RunResult]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Header and rows of runs.csv. Without the baseline, which has no epsilon to be plotted over."""
    header = ["mechanism", "strategy", "epsilon", *CSV_COLUMNS, "budget_mean"]
    rows = [
        (*run.key, *(run.metrics[name] for name in CSV_COLUMNS), run.budget_mean) for run in runs if not run.is_baseline
    ]
    return header, rows


def headline(runs: Sequence[RunResult]) -> dict[str, dict[str, float]]:
    """The numbers `dvc metrics diff` compares, by run; a number that does not exist is left out."""
    names = ("share_unchanged", "mean_cosine", "unprotected_share")
    return {
        f"{run.mechanism}/{run.strategy}/{run.epsilon}": {
            name: run.metrics[name] for name in names if run.metrics[name] is not None
        }
        for run in runs
    }
