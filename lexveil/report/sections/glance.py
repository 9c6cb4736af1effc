"""Each data set at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.evaluation.metrics.attack import ADAPTIVE, GAIN
from lexveil.evaluation.metrics.utility import UTILITY
from lexveil.recovery.bands import ALL
from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.evaluation_values import CLEAN, MAJORITY, SCORES, Key, Values
from lexveil.report.formatting import MeanSd
from lexveil.report.records import RunRecovery
from lexveil.report.section import Section
from lexveil.report.table import Column, Table

RECOVERED = {ALL: "Recovered", "rare": "Of rare words"}  # columns, by band


def glance_table(values_of: Mapping[str, Values], grid: Sequence[Key], recovery: Sequence[RunRecovery]) -> Table | None:
    """Per data set what clean texts give, what looking at none gives, and the runs that stand out.

    Returns:
        None if no utility and no attack is known.
    """
    shown = [(score, *score.glance) for score in SCORES if score.glance is not None]
    by_run = {one.key: one for one in recovery}
    rows: list[tuple[Any, ...]] = []
    for dataset, of in values_of.items():
        known = {key: value for key, value in of.items() if key[0] in (UTILITY.name, ADAPTIVE.name, GAIN.name)}
        if not known:
            continue

        def row(which: str, key: Key, dataset: str = dataset, of: Values = of) -> tuple[Any, ...]:
            named = (None, None, None) if key in (CLEAN, MAJORITY) else key
            read = [by_run[key].share(band, dataset=dataset) if key in by_run else None for band in RECOVERED]
            return (dataset, which, *named, *(of.get((score.name, key)) for score, _, _ in shown), *read)

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
        *(
            Column(key, head, formatting.mean_sd_one if score.decimals == 1 else formatting.mean_sd)
            for score, key, head in shown
        ),
        *(Column(f"recovered_{band}", head, formatting.interval) for band, head in RECOVERED.items()),
    ]
    kept = [place for place in range(len(columns)) if any(one[place] is not None for one in rows)]
    return Table(
        "glance",
        "Each data set at a glance: what can be learnt from clean texts, from none, and from the runs that stand out",
        [columns[place] for place in kept],
        [tuple(one[place] for place in kept) for one in rows],
        "± is the standard deviation over trainings, of a cosine over texts; recovered is the share of the replaced "
        "words that a best-informed reader gets back, with its 95% interval. "
        f"The best of {len(grid):,} {'run' if len(grid) == 1 else 'runs'} looks better than it is: part of its lead is "
        "luck.",
    )


def is_learnt(clean: MeanSd, majority: MeanSd) -> bool:
    """Whether clean texts are above the majority by 1.96 standard errors."""
    return clean.mean - 1.96 * (clean.error or 0.0) > majority.mean


def unlearnt(values_of: Mapping[str, Values]) -> list[str]:
    """Tasks and attacks that clean texts do not show to be learnable: not above the majority by 1.96 standard errors.

    Returns:
        Each in words, with both numbers.
    """
    found = []
    for dataset, of in values_of.items():
        for measure, words in ((UTILITY, "utility"), (ADAPTIVE, "attack")):
            clean, majority = of.get((measure.name, CLEAN)), of.get((measure.name, MAJORITY))
            if clean is not None and majority is not None and not is_learnt(clean, majority):
                error = formatting.three(1.96 * (clean.error or 0.0))
                found.append(
                    f"{dataset}, {words}: {formatting.three(clean.mean)} ± {error} (95%) on clean texts, majority "
                    f"{formatting.three(majority.mean)}"
                )
    return found


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    return {
        "glance": glance_table(report.values, report.keys, report.recovery),
        "unlearnt": unlearnt(report.values),
    }


SECTION = Section(
    name="glance",
    title="What to read first",
    heading="What to read first",
    view=view,
    prose="""\
{% if glance %}
<p>Utility should stay near that of the clean texts, the attack should fall to that of the majority; no ε gives both in
full. The lines of a data set below show what is there to be kept and to be hidden, and how far the runs go.</p>
{{ render_table(glance) }}
{% if unlearnt %}
<div class="box warn">
<p>Nothing follows from these rows: clean texts are not clearly above the majority, and so what cannot be learnt from
rewritten texts may not be there to be learnt. More documents may show it.</p>
<ul>{% for which in unlearnt %}<li>{{ which }}</li>{% endfor %}</ul>
</div>
{% endif %}
{% else %}
<p>No data set has a label or an attribute that could be scored.</p>
{% endif %}
""",
)
