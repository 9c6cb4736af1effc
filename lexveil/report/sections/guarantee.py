"""The guarantee of the runs, and which tokens are protected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup
from matplotlib.ticker import FuncFormatter

from lexveil.accounting.budgets import Action
from lexveil.accounting.guarantee import Guarantee
from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.figures import add_legend, new_panel, percent_tick
from lexveil.report.panel import Panel, data
from lexveil.report.records import RunRecovery, RunResult
from lexveil.report.section import Section
from lexveil.report.svg import BLUE, DIM, GREEN, ORANGE, PAPER, WIDTH, drawing, to_svg
from lexveil.report.table import Column, Table

STRATEGY_IN_WORDS = {
    "none": "the text as it is",
    "S1": "single words; each gets an equal part of the budget",
    "S2": "collocations (GST); the budget is split over words, so a collocation pays for one word only",
    "S3": "collocations (GST); each token gets an equal part of the budget",
    "S4": "collocations (MST); each token gets an equal part of the budget",
}
CLASS_IN_WORDS = {"word": "words", "stopword": "stop words", "punctuation": "punctuation", "oov": "unknown words"}

_BASELINE = "the clean baseline"


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
        measured: what a reader got back, in a sentence.
    """

    runs: str
    verdict: str
    statement: str
    conditions: list[str]
    release: Guarantee | None
    release_conditions: list[tuple[str, str]]
    measured: str | None = None


def measured_sentence(members: Sequence[RunResult], recovery: Sequence[RunRecovery]) -> str | None:
    """What of 100 rare words a reader named and what stood, over some runs; None where it was not measured."""
    keys = {run.key for run in members}
    both = [(one.share("rare"), one.share("rare", "unchanged")) for one in recovery if one.key in keys]
    pairs = [(recovered.share, unchanged.share) for recovered, unchanged in both if recovered and unchanged]
    if not pairs:
        return None
    named, same = (_range(shares) for shares in zip(*pairs, strict=True))
    return (
        "Measured on the documents of this project: of 100 rare words, a reader who knows everything but the text names "
        f"{named}, and {same} stand unchanged{', over these runs' if len(pairs) > 1 else ''}. A record of lexveil "
        "privatize says what is expected of its epsilon, from public things alone."
    )


def _range(shares: Sequence[float]) -> str:
    least, most = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f}"
    return least if least == most else f"{least} to {most}"


def exposure_table(runs: Sequence[RunResult]) -> Table:
    """Protected and unprotected tokens by class: the same at every epsilon of a strategy."""
    kinds = list(CLASS_IN_WORDS)
    rows = []
    for (mechanism, strategy), (epsilons, by_class) in _exposures(runs).items():
        total = {action: sum(by_class[kind][action] for kind in kinds) for action in Action.labels()}
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
        "What is protected and what is not, in tokens",
        [
            Column("mechanism", "Mechanism"),
            Column("strategy", "Strategy"),
            Column("epsilons", "Base ε"),
            Column("n_perturbed", "with noise", formatting.count, "Protected"),
            Column("n_sampled", "drawn at random", formatting.count, "Protected"),
            Column("n_dropped", "dropped", formatting.count, "Protected"),
            *(Column(f"kept_{kind}", name, formatting.count, "Unprotected") for kind, name in CLASS_IN_WORDS.items()),
            Column("unprotected_share", "share of all", formatting.share, "Unprotected"),
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
        total = {action: sum(by_class[kind][action] for kind in by_class) for action in Action.labels()}
        whole = max(sum(total.values()), 1)
        found.setdefault(strategy, {})[mechanism] = {
            "noise": total["perturbed"] / whole,
            "random draw": total["sampled"] / whole,
            "dropped": total["dropped"] / whole,
            "unprotected": total["kept"] / whole,
        }
    n_mechanisms = len({run.mechanism for run in private})
    shares = {}
    for strategy, by_mechanism in found.items():
        first = next(iter(by_mechanism.values()))
        if len(by_mechanism) == n_mechanisms and all(value == first for value in by_mechanism.values()):
            shares[strategy] = first
        else:
            shares |= {f"{mechanism} {strategy}": of_mechanism for mechanism, of_mechanism in by_mechanism.items()}
    return shares


def outcomes_figure(name: str, title: str, rows: Mapping[str, Mapping[str, float]]) -> Markup:
    """One horizontal bar per label, made of shares that add up to 1; the shares of all labels have the same names."""
    kinds = list(next(iter(rows.values()))) if rows else []
    hatches = [("", BLUE), ("////", GREEN), ("", DIM), ("xxx", ORANGE)]
    description = " ".join(
        f"{label}: " + ", ".join(f"{kind} {value:.1%}" for kind, value in shares.items()) + "."
        for label, shares in rows.items()
    )
    with drawing(name) as figure:
        figure.set_size_inches(WIDTH / 72, (96 + 34 * len(rows)) / 72)
        longest = max(map(len, rows), default=0)
        axes = new_panel(
            figure, "share of the tokens of all texts (%)", "strategy", top=34, left=max(62, 30 + 8 * longest)
        )
        left = dict.fromkeys(rows, 0.0)
        shown = [
            (kind, *style)
            for kind, style in zip(kinds, hatches, strict=True)
            if any(row[kind] for row in rows.values())
        ]
        for kind, hatch, colour in shown:
            axes.barh(
                list(rows), [shares[kind] for shares in rows.values()], left=list(left.values()), height=0.62,
                color=colour, hatch=hatch, label=kind, edgecolor=PAPER, linewidth=0.8,
            )  # fmt: skip
            left = {label: left[label] + rows[label][kind] for label in rows}
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_formatter(FuncFormatter(percent_tick))
        add_legend(axes, len(shown))
        return to_svg(figure, name, title, description)


def promises(runs: Sequence[RunResult], recovery: Sequence[RunRecovery] = ()) -> list[Promise]:
    """What is guaranteed, once for all runs of which the same is said; the baseline last.

    Args:
        recovery: what was measured of the runs.
    """
    grouped: dict[tuple[str, str, str, str], list[RunResult]] = {}
    for run in runs:
        said, release = run.record["guarantee"], _release(run)
        # What a release would promise names the distance, which mechanisms need not share.
        key = (run.record["mode"], said["formula"], said["statement"], release.statement if release else "")
        grouped.setdefault(key, []).append(run)
    return sorted(
        (
            replace(_promise(mode, formula, statement, members), measured=measured_sentence(members, recovery))
            for (mode, formula, statement, _), members in grouped.items()
        ),
        key=lambda promise: promise.runs == _BASELINE,
    )


def _release(run: RunResult) -> Guarantee | None:
    """What a release like this run would promise, as its record says it; None if this is one."""
    stated = run.record["guarantee"].get("in_release")
    return None if stated is None else Guarantee.model_validate(stated)


def _promise(mode: str, formula: str, statement: str, members: Sequence[RunResult]) -> Promise:
    if all(run.is_baseline for run in members):
        return Promise(_BASELINE, "none: nothing was done to the text", statement, [], None, [])
    noun = "run" if len(members) == 1 else "runs"
    runs = f"{len(members)} {noun}: {formatting.listed(sorted({run.mechanism for run in members}))} with strategy "
    runs += formatting.listed(sorted({run.strategy for run in members}))
    conditions = {run.key: list(run.record["guarantee"]["because"]) for run in members}
    if mode == "release":
        return Promise(runs, formula, statement, [text for text, _ in _merged(members, conditions)], None, [])
    ahead = {run.key: _release_conditions(run) for run in members}
    return Promise(
        runs,
        "none: the seed is known" if mode == "experiment" else formula,
        statement,
        [],
        _release(members[0]),
        _merged(members, ahead),
    )


def _release_conditions(run: RunResult) -> list[str]:
    """Under which a release like this run would keep its promise, and between which texts it promises nothing."""
    release = _release(run)
    return [] if release is None else [*release.because, *filter(None, [release.not_covered])]


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


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    outcomes = outcome_shares(report.runs)
    return {
        "promises": promises(report.runs, report.recovery),
        "exposure": exposure_table(report.runs),
        "outcome_figure": Panel(
            "What happens to the tokens",
            outcomes_figure("outcomes", "Share of tokens by what happens to them, per strategy", outcomes),
            data(
                "outcomes",
                ["strategy", "outcome", "share"],
                [(label, kind, share) for label, shares in outcomes.items() for kind, share in shares.items()],
            ),
        ),
        "strategies": report.params.grid.strategies,
        "strategy_in_words": STRATEGY_IN_WORDS,
    }


SECTION = Section(
    name="guarantee",
    title="What this is",
    heading="What this is, and what it promises",
    view=view,
    prose="""\
<p>Lexveil rewrites texts so that it is hard to tell what stood in them. Each text is cut into tokens: words, or
collocations of two or three words. The vector of a token is moved by random noise, and the token nearest to where it
lands takes its place. How much noise there is follows from a budget per text: the smaller ε, the more noise, the more is
hidden and the less meaning is left. This page shows what the runs of this project gave, to choose a mechanism, a strategy
and an ε.</p>
{% for promise in promises %}
<div class="box {{ 'warn' if promise.release }}">
<p class="who">The guarantee of {{ promise.runs }}</p>
<p class="verdict">{{ promise.verdict }}</p>
<p>{{ promise.statement }}</p>
{% if promise.release %}
<p>These runs are experiments: they can be repeated byte for byte, and for the same reason they hide nothing from anybody
who has params.yaml. They are for comparing settings; their outputs must not be given away.</p>
<h3>What would hold in release mode</h3>
<p><code>lexveil privatize --mode release</code> takes its noise from the operating system and keeps no key. Then:</p>
<p>{{ promise.release.statement }}</p>
<code class="formula">{{ promise.release.formula }}</code>
<p>This holds under these conditions:</p>
<ul>{% for text, which in promise.release_conditions %}<li>{{ text }}{% if which %} ({{ which }} only){% endif %}</li>{% endfor %}</ul>
{% endif %}
{% if promise.measured %}<p class="measured">{{ promise.measured }}</p>{% endif %}
{% if promise.conditions %}
<ul>{% for text in promise.conditions %}<li>{{ text }}</li>{% endfor %}</ul>
{% endif %}
</div>
{% endfor %}
<h3>What is protected, and what is not</h3>
<p>Noise protects which token stood at a place, up to the factor above; a random draw hides it wholly. Not protected are
tokens that are kept (counted here by class), the number of tokens of a text and what was done at each place. Labels, attributes, splits
and ids of the documents are carried over unchanged.</p>
{{ render_table(exposure) }}
<div class="panels">
{{ render_panel(outcome_figure) }}
<div>
<p>The strategies:</p>
<ul>{% for name in strategies %}<li><strong>{{ name }}</strong>: {{ strategy_in_words[name] }}</li>{% endfor %}</ul>
</div>
</div>
""",
)
