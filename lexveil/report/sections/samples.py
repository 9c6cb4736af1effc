"""Texts that one can read: a few documents, and what each mechanism, strategy and epsilon makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.accounting.changes import Part, TextChanges
from lexveil.report.data import ReportData
from lexveil.report.evaluation_values import Key
from lexveil.report.samples import Sample
from lexveil.report.section import Section

LONGEST = 80  # tokens of a text that are shown


@dataclass(frozen=True, slots=True, repr=False)
class Row:
    """What one run made of a text: its parts, how many tokens met each fate in the whole text, and how many are left out."""

    epsilon: float
    parts: Sequence[tuple[Part, str]]  # with what stood there in the source
    counts: str
    n_left_out: int

    @classmethod
    def of(cls, epsilon: float, changes: TextChanges) -> Row:
        """Cut a text for the page."""
        parts = [
            (part, changes.source_of(part.token) if part.token >= 0 else "") for part in changes.output_parts(LONGEST)
        ]
        counts = ", ".join(f"{n:,} {fate}" for fate, n in changes.counts().items())
        return cls(epsilon, parts, counts, max(0, len(changes.fates) - LONGEST))


def by_mechanism(sample: Sample, keys: Sequence[Key]) -> dict[str, dict[str, list[Row]]]:
    """The rows of a text, by mechanism and strategy, in the order of the page."""
    grouped: dict[str, dict[str, list[Row]]] = {}
    for key in keys:
        mechanism, strategy, epsilon = key
        grouped.setdefault(mechanism, {}).setdefault(strategy, []).append(Row.of(epsilon, sample.runs[key]))
    return grouped


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    samples = [
        {
            "dataset": sample.dataset,
            "source": start(next(iter(sample.runs.values()))),
            "runs": by_mechanism(sample, report.keys),
        }
        for sample in report.samples
    ]
    return {"samples": samples, "n_own": sum(not sample.is_embedded for sample in report.samples)}


def start(changes: TextChanges) -> str:
    """The source, up to as many tokens as are shown."""
    start = "".join(part.text for part in changes.source_parts(LONGEST))
    return start if len(changes.fates) <= LONGEST else f"{start} …"


SECTION = Section(
    name="samples",
    title="Samples",
    heading="Samples: what becomes of a text",
    view=view,
    prose="""\
{% macro shown(row) %}
{% for part, source in row.parts %}{% if part.fate in ("replaced", "random") %}<mark class="{{ part.fate }}" title="was: {{ source }}">{{ part.text }}</mark>{% elif part.fate == "kept" %}<span class="kept">{{ part.text }}</span>{% else %}{{ part.text }}{% endif %}{% endfor %}{% if row.n_left_out %} … and {{ row.n_left_out|count }} more tokens{% endif %}
{% endmacro %}
{% if not samples %}
<p>No text is shown: of documents that are not the embedded ones, none is unless you ask for it. <code>report.samples: 3</code> in <code>params.yaml</code> puts three of them on this page, as they are, with what each run makes of them; the page is then as secret as they are.</p>
{% else %}
{% if n_own %}
<div class="box warn"><p class="verdict">This page holds {{ n_own|count }} of your own texts, as they are</p>
<p>Because <code>params.yaml</code> says <code>report.samples: {{ params.report.samples }}</code>. It is as secret as these texts. Whoever chooses a mechanism or an ε by looking at private texts has selected by them, and no budget accounts for that: choose on public texts that are like yours.</p></div>
{% endif %}
<p>The same {{ samples|length }} {{ "text" if samples|length == 1 else "texts" }} through every run, chosen by hash. These are experiments: their seed is known, so they protect nothing. What became of each token:</p>
<ul class="legend samples">
<li><mark class="replaced">replaced</mark>: noise was drawn, and another token came out</li>
<li><mark class="random">random</mark>: any word of the vocabulary, in the place of one that it does not know</li>
<li>unchanged: noise was drawn, and the token came out as itself</li>
<li><span class="kept">kept</span>: copied without noise, unprotected</li>
</ul>
{% for sample in samples %}
{% set number = loop.index %}
<details class="dataset samples"{% if loop.first %} open{% endif %}><summary><h3>{{ sample.source }}</h3> <span>from {{ sample.dataset }}</span></summary>
{% for mechanism, strategies in sample.runs.items() %}
{% if sample.runs|length > 1 %}<details class="mechanism"{% if loop.first %} open{% endif %}><summary>{{ mechanism }}</summary>{% endif %}
<table id="table-sample-{{ number }}-{{ mechanism }}" aria-label="Sample {{ number }} by {{ mechanism }}">
{% for strategy, rows in strategies.items() %}
<tbody>
<tr><th scope="rowgroup" colspan="2">{{ mechanism }} {{ strategy }}</th></tr>
{% for row in rows %}
<tr><th scope="row">{{ row.epsilon|run_epsilon }}</th><td>{{ shown(row) }}<small>{{ row.counts }}</small></td></tr>
{% endfor %}
</tbody>
{% endfor %}
</table>
{% if sample.runs|length > 1 %}</details>{% endif %}

{% endfor %}
</details>
{% endfor %}
{% endif %}
""",
)
