"""Report section "guarantee": the privacy guarantee that a release with the settings of a run has,
and which tokens it protects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lexveil.core.accounting.budgets import Action
from lexveil.core.accounting.record import Guarantee
from lexveil.lab.report import formatting
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.records import ReportedRun, RunRecovery
from lexveil.lab.report.table import RUN, Column, Table

CLASS_IN_WORDS = {
    "word": "words",
    "stopword": "stop words",
    "punctuation": "punctuation",
    "oov": "unknown words",
}


class Measured(NamedTuple):
    """Summary of measured recovery: the number of runs, and two ranges per 100 rare words: the
    words that an adversary names, and the words that stay unchanged.
    """

    n_runs: int
    named: str
    unchanged: str


@dataclass(frozen=True, slots=True)
class Promise:
    """Privacy statement about some runs, which are experiments, and the guarantee of a release with
    the same settings.

    Attributes:
        runs: description of the runs in words.
        statement: why the runs themselves have no guarantee.
        release: guarantee of a release; None for the clean baseline.
        conditions: conditions of a release, each with the mechanisms and strategies that it
            concerns ("" for all of these runs).
        measured: measured recovery of the runs; None if it was not measured.
    """

    runs: str
    statement: str
    release: Guarantee | None
    conditions: list[tuple[str, str]]
    measured: Measured | None


def promises(runs: Sequence[ReportedRun], recovery: Sequence[RunRecovery]) -> list[Promise]:
    """Group runs with equal guarantees, and return one privacy statement per group, the clean
    baseline last.

    Args:
        recovery: measured recovery of the runs.
    """
    grouped: dict[tuple[str, ...], list[ReportedRun]] = {}
    for run in runs:
        release = _release(run)
        # The guarantee of a release names the distance, which may differ between mechanisms.
        promised = (release.formula, release.statement) if release else ()
        grouped.setdefault((run.record["guarantee"]["statement"], *promised), []).append(run)
    return [
        Promise(
            _named(own), statement, _release(own[0]), _conditions(own), measured_of(own, recovery)
        )
        for (statement, *_), own in sorted(grouped.items(), key=lambda item: item[1][0].is_baseline)
    ]


def _release(run: ReportedRun) -> Guarantee | None:
    """Return the privacy guarantee that a release with the settings of this run would have, from
    the record of the run; None for the clean baseline.
    """
    stated = run.record["guarantee"].get("in_release")
    return None if stated is None else Guarantee.model_validate(stated)


def _named(runs: Sequence[ReportedRun]) -> str:
    if runs[0].is_baseline:
        return "the clean baseline"
    mechanisms, strategies = map(formatting.listed, _kinds(runs))
    return (
        f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}: {mechanisms} with strategy "
        f"{strategies}"
    )


def _conditions(runs: Sequence[ReportedRun]) -> list[tuple[str, str]]:
    """Return each condition of the guarantee once, and each kind of text pairs that the guarantee
    does not cover, with the mechanisms and strategies concerned if these are not all.
    """
    concerned: dict[str, list[ReportedRun]] = {}
    for run in runs:
        release = _release(run)
        for text in (
            [] if release is None else [*release.because, *filter(None, [release.not_covered])]
        ):
            concerned.setdefault(text, []).append(run)
    conditions = []
    for text, some in concerned.items():
        kinds = zip(_kinds(some), _kinds(runs), strict=True)
        conditions.append(
            (text, ", ".join(formatting.listed(own) for own, every in kinds if own != every))
        )
    return conditions


def _kinds(runs: Sequence[ReportedRun]) -> tuple[list[str], list[str]]:
    """Return the mechanisms and the strategies of some runs."""
    return sorted({run.key[0] for run in runs}), sorted({run.key[1] for run in runs})


def measured_of(runs: Sequence[ReportedRun], recovery: Sequence[RunRecovery]) -> Measured | None:
    """Summarize the measured recovery of some runs; return None if nothing was measured."""
    keys = {run.key for run in runs}
    both = [
        (run.share("rare"), run.share("rare", "unchanged")) for run in recovery if run.key in keys
    ]
    pairs = [
        (recovered.share, unchanged.share)
        for recovered, unchanged in both
        if recovered and unchanged
    ]
    return Measured(len(pairs), *map(_range, zip(*pairs, strict=True))) if pairs else None


def _range(shares: Sequence[float]) -> str:
    ends = [f"{100 * end:.0f}" for end in (min(shares), max(shares))]
    return " to ".join(dict.fromkeys(ends))


def exposure_table(runs: Sequence[ReportedRun]) -> Table:
    """Return a table of the counts of protected and unprotected tokens by class. Epsilons of a
    strategy with equal counts share a row; usually all epsilons do.
    """
    grouped: dict[tuple[str, str, str], list[ReportedRun]] = {}
    for run in runs:
        grouped.setdefault((*run.key[:2], json.dumps(run.metrics["by_class"])), []).append(run)
    rows = []
    for (mechanism, strategy, _), own in grouped.items():
        by_class = own[0].metrics["by_class"]
        total = {
            action: sum(counts[action] for counts in by_class.values())
            for action in Action.labels()
        }
        whole = max(sum(total.values()), 1)
        epsilons = ", ".join(run.key[2].text for run in own)
        rows.append(
            {"mechanism": mechanism, "strategy": strategy, "epsilon": epsilons}
            | {f"n_{action}": n for action, n in total.items()}
            | {f"kept_{kind}": counts["kept"] for kind, counts in by_class.items()}
            | {
                "noise_share": total["perturbed"] / whole,
                "unprotected_share": total["kept"] / whole,
            }
        )
    columns = [
        *RUN[:2],
        Column("epsilon", "Base ε"),
        Column("n_perturbed", "with noise", formatting.count, "Protected"),
        Column("noise_share", "share of all", formatting.share, "Protected"),
        Column("n_sampled", "drawn at random", formatting.count, "Protected"),
        Column("n_dropped", "dropped", formatting.count, "Protected"),
        *(
            Column(f"kept_{kind}", name, formatting.count, "Unprotected")
            for kind, name in CLASS_IN_WORDS.items()
        ),
        Column("unprotected_share", "share of all", formatting.share, "Unprotected"),
    ]
    return Table("exposure", columns, rows)


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "guarantee": tables and privacy statements."""
    return {
        "promises": promises(report.runs, report.recovery),
        "exposure": exposure_table(report.runs),
        "strategies": report.params.grid.strategies,
    }
