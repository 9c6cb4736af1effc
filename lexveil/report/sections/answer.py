"""The answer: which run to take for what, what is kept and given away by all of them, and texts to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.evaluation.metrics.utility import UTILITY
from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.equal_recovery import recovered
from lexveil.report.evaluation_values import CLEAN, MAJORITY, Key, Values, one_kind
from lexveil.report.figures import Series, tradeoff
from lexveil.report.panel import Panel, data
from lexveil.report.records import RunRecovery
from lexveil.report.section import Section
from lexveil.report.sections.glance import is_learnt
from lexveil.report.sections.samples import Row, start

LEVELS = (0.05, 0.2, 0.5)  # shares of the content words that a reader may name
TEXTS = 3  # to read


@dataclass(frozen=True, slots=True)
class Point:
    """One run on one data set: what the best reader names of its content words, and what the task keeps."""

    key: Key
    named: float
    utility: float


def points_of(of: Values, runs: Sequence[RunRecovery], dataset: str) -> list[Point]:
    """The runs of which both are known."""
    found = []
    for run in runs:
        share, utility = recovered(run, dataset), of.get((UTILITY.name, run.key))
        if share is not None and utility is not None:
            found.append(Point(run.key, share.share, utility.mean))
    return found


def best(points: Sequence[Point], level: float) -> Point | None:
    """Of the runs of which a reader names no more, that with the highest utility; of equal ones the smaller share."""
    within = [point for point in points if point.named <= level]
    return max(within, key=lambda point: (point.utility, -point.named), default=None)


def panel(place: int, dataset: str, points: Sequence[Point], clean: float, majority: float) -> Panel:
    """Utility over what is named, a line for each mechanism and strategy; with what clean texts give, and none."""
    lines: dict[str, list[Point]] = {}
    for point in sorted(points, key=lambda point: point.key[2]):
        lines.setdefault(" ".join(point.key[:2]), []).append(point)
    series = [
        Series(label, [point.named for point in some], [point.utility for point in some])
        for label, some in lines.items()
    ]
    name, title = f"answer-{place}", f"{dataset}: what the task keeps, and what a reader names"
    svg = tradeoff(
        name,
        title,
        "named by a reader (share of content words)",
        series,
        clean=(1.0, clean),
        levels=(0.0, majority),
    )
    rows = [(*point.key, point.named, point.utility) for point in points]
    return Panel(title, svg, data(name, ["mechanism", "strategy", "epsilon", "named", "utility"], rows))


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    answers, chosen, unlearnt = [], None, list[str]()
    for place, (dataset, every) in enumerate(report.values.items(), 1):
        of = one_kind(every)
        points = points_of(of, report.recovery, dataset)
        clean, majority = (of.get((UTILITY.name, key)) for key in (CLEAN, MAJORITY))
        if not points or clean is None or majority is None:
            continue
        if not is_learnt(clean, majority):
            unlearnt.append(dataset)
            continue
        found = [(level, best(points, level)) for level in LEVELS]
        chosen = chosen or next((point.key for _, point in reversed(found[:2]) if point is not None), None)
        answers.append(
            {
                "dataset": dataset,
                "clean": clean.mean,
                "found": found,
                "panel": panel(place, dataset, points, clean.mean, majority.mean),
            }
        )
    chosen = chosen or next(iter(report.keys), None)
    texts = [
        (start(sample.runs[chosen]), Row.of(chosen[2], sample.runs[chosen]))
        for sample in report.samples[:TEXTS]
        if chosen is not None
    ]
    name = None if chosen is None else f"{chosen[0]} {chosen[1]}, {formatting.run_epsilon(chosen[2])}"
    return {"answers": answers, "unlearnt": unlearnt, "chosen": name, "texts": texts}


SECTION = Section(
    name="answer",
    title="The answer",
    heading="Which run to take",
    view=view,
    prose="""\
{% for answer in answers %}
<p><strong>{{ answer.dataset }}</strong> (clean texts {{ answer.clean|three }}), where a reader who knows all but the text may name</p>
<ul>
{% for level, point in answer.found %}
<li>{{ level|share }} of the content words: {% if point %}<strong>{{ point.key[0] }} {{ point.key[1] }}</strong> at {{ point.key[2]|run_epsilon }} keeps {{ point.utility|three }}; {{ point.named|share }} are named{% else %}no run; a smaller ε in <code>grid.epsilons</code> may{% endif %}</li>
{% endfor %}
</ul>
{{ render_panel(answer.panel) }}

{% else %}
<p>No data set has a label that can be learnt from its clean texts, and runs that a reader was tried on: there is nothing to choose by.</p>
{% endfor %}
{% if unlearnt %}
<p>Nothing follows from {{ unlearnt|listed }}: not even clean texts are clearly above the majority.</p>
{% endif %}
{% if texts %}
<p>Texts to read, as <strong>{{ chosen }}</strong> has them; <a href="#samples">all runs</a>.</p>
<dl>
{% for source, row in texts %}
<dt>{{ source }}</dt>
<dd>{% for part, _ in row.parts %}{{ part.text }}{% endfor %}{% if row.n_left_out %} …{% endif %}</dd>
{% endfor %}
</dl>
{% endif %}
""",
)
