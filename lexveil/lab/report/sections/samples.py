"""Report section "samples": a few texts, with the rewritten form for each mechanism, strategy and
epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.base.levels import NoiseSetting
from lexveil.core.accounting.changes import Part, TextChanges
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.records import Key
from lexveil.lab.report.samples import SampleText

TOKENS_SHOWN = 80  # largest number of tokens of a text that are shown


@dataclass(frozen=True, slots=True, repr=False)
class ShownText:
    """The rewritten form of a text in one run, as the page shows it: its parts, the number of
    tokens of each action (such as perturbed or kept) in the whole text, and the number of tokens
    that are not shown.
    """

    noise: NoiseSetting
    parts: Sequence[tuple[Part, str]]  # each part with the source text at the same place
    counts: str
    n_left_out: int

    @classmethod
    def of(cls, noise: NoiseSetting, changes: TextChanges) -> ShownText:
        """Cut a rewritten text to the length that the page shows."""
        parts = [
            (part, changes.source_of(part.token) if part.token >= 0 else "")
            for part in changes.output_parts(TOKENS_SHOWN)
        ]
        counts = ", ".join(f"{n:,} {fate}" for fate, n in changes.counts().items())
        return cls(noise, parts, counts, max(0, len(changes.fates) - TOKENS_SHOWN))


def by_mechanism(sample: SampleText, keys: Sequence[Key]) -> dict[str, dict[str, list[ShownText]]]:
    """Return the rewritten forms of a text that the page shows, by mechanism and strategy, in the
    order of the page.
    """
    grouped: dict[str, dict[str, list[ShownText]]] = {}
    for key in keys:
        mechanism, strategy, noise = key
        grouped.setdefault(mechanism, {}).setdefault(strategy, []).append(
            ShownText.of(noise, sample.runs[key])
        )
    return grouped


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "samples"."""
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
    """Return the start of the source text, up to the number of tokens that the page shows."""
    start = "".join(part.text for part in changes.source_parts(TOKENS_SHOWN))
    return start if len(changes.fates) <= TOKENS_SHOWN else f"{start} …"
