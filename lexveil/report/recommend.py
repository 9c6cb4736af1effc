"""Which runs of the grid keep a limit: what `lexveil recommend` calls. No stage of the graph.

Reads what stage `evaluate` wrote. Utility and attack are macro F1, the attack that of the adaptive attacker. Each has
two errors: of the trainings (standard deviation over shuffles), and of the number of evaluated documents. Runs are
evaluated on the same documents after the same trainings, so they are compared by paired differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lexveil import paths
from lexveil.errors import MissingArtifact, RequestError, option
from lexveil.evaluation.frontier import (
    Estimate,
    Paired,
    Point,
    Recommendation,
    indistinguishable,
    share_error,
    standings,
)
from lexveil.evaluation.frontier import recommend as within_limits
from lexveil.evaluation.metrics.prediction import SETTINGS
from lexveil.levels import epsilon_in
from lexveil.recovery.bands import BANDS_OF
from lexveil.recovery.measured import LISTED
from lexveil.report import formatting
from lexveil.report.equal_recovery import recovered
from lexveil.report.evaluation_values import METRIC
from lexveil.report.records import RunRecovery
from lexveil.runtime.tables import read_json

ATTACKER = "adaptive"
NORMAL = 1.96  # half of a 95% interval, in standard errors
BANDS = (*BANDS_OF, LISTED)
READERS = ("by_word", "by_context")

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Score:
    """One score of one run.

    Attributes:
        each: of every training, in [0, 1].
        n_test: evaluated documents.
        majority: what is scored without looking at a text.
        right: by how many trainings each document is right; None where an older evaluation does not say.
    """

    each: Sequence[float]
    n_test: int
    majority: float
    right: Sequence[int] | None = None

    @property
    def estimate(self) -> Estimate:
        """With both errors."""
        return Estimate.of(self.each).asked_of(self.n_test)

    @property
    def paired(self) -> Paired | None:
        """For comparison with other runs, where it is known document by document."""
        if self.right is None:
            return None
        return Paired(np.array(self.each), np.array(self.right) / len(self.each))

    def summary(self) -> dict[str, object]:
        """As JSON values: mean, standard deviation over shuffles (None of one), half of the 95% interval."""
        once = Estimate.of(self.each)
        return {
            "mean": once.mean,
            "sd": once.standard_error * len(self.each) ** 0.5 if len(self.each) > 1 else None,
            "half_width": NORMAL * share_error(once.mean, self.n_test),
        }


def read_records() -> list[Record]:
    """What there is in artifacts/evaluation, ordered by mechanism, strategy and ε.

    Raises:
        MissingArtifact: if there is nothing.
    """
    folder = paths.ARTIFACTS / "evaluation"
    found = [read_json(file, "evaluate") for file in folder.glob("*/*/*.json")]
    if not found:
        raise MissingArtifact(f"{folder} holds no scores yet; `lexveil run` makes them (stage evaluate)")
    return sorted(found, key=lambda one: (one["mechanism"], one["strategy"], one["epsilon"]))


def score(record: Record, dataset: str, measured: str, setting: str) -> Score | None:
    """One score; None where it was left out or not measured."""
    entry = record["datasets"].get(dataset, {}).get(measured)
    if entry is None or entry["left_out"] is not None or setting not in entry["scores"]:
        return None
    right = entry.get("right", {}).get(setting)
    return Score(
        entry["scores"][setting][METRIC]["each"],
        entry["n_test"],
        entry["majority"][METRIC],
        None if right is None else [int(number) for number in right.split()],
    )


def recovery(record: Record, dataset: str, band: str) -> float | None:
    """The upper end of the 95% interval of what the better reader gets back; None where it was not measured."""
    file = paths.recovery(record["mechanism"], record["strategy"], epsilon_in(record))
    if not file.exists():
        return None
    run = RunRecovery(read_json(file, "evaluate"))
    found = [share for reader in READERS if (share := recovered(run, dataset, band, reader)) is not None]
    return max((share.high for share in found), default=None)


def name(record: Record) -> str:
    """What a run is called."""
    if record["mechanism"] == "none":
        return "clean texts"
    return f"{record['mechanism']} {record['strategy']} {formatting.run_epsilon(epsilon_in(record))}"


def recommend(
    *,
    min_utility: float | None = None,
    max_attack: float | None = None,
    max_recovery: float | None = None,
    band: str = "all",
    dataset: str | None = None,
    setting: str = "private",
) -> dict[str, Any]:
    """The runs that keep the limits, by data set.

    Args:
        min_utility: smallest macro F1 of the task that will do.
        max_attack: largest macro F1 of the adaptive attacker that will do.
        max_recovery: largest share of replaced words of ``band`` that a reader may get back, with its 95% interval.
        band: one of ``BANDS``.
        dataset: only this one; None takes all that have both scores.
        setting: of utility: on rewritten (private) or clean texts.

    Returns:
        The limits, and ``datasets``: see ``of_dataset``.

    Raises:
        RequestError: if no limit is given or one is no share of 1, no data set has both scores, or recovery was not
            measured and is limited.
        MissingArtifact: if there are no scores yet.
    """
    for limited, limit in (
        (option("min_utility"), min_utility),
        (option("max_attack"), max_attack),
        (option("max_recovery"), max_recovery),
    ):
        if limit is not None and not 0 <= limit <= 1:
            raise RequestError(f"{limited} {limit:g}: must lie between 0 and 1")
    if min_utility is None and max_attack is None:
        raise RequestError(f"nothing to recommend by: give {option('min_utility')}, {option('max_attack')} or both")
    if band not in BANDS:
        raise RequestError(f"{option('band')} {band}: must be one of {', '.join(BANDS)}")
    if setting not in SETTINGS["utility"]:
        raise RequestError(f"{option('setting')} {setting}: must be one of {', '.join(SETTINGS['utility'])}")
    records = read_records()
    there = sorted({one for record in records for one in record["datasets"]})
    if dataset is not None and dataset not in there:
        raise RequestError(f"{option('dataset')} {dataset}: not evaluated; there are {', '.join(there)}")
    found: dict[str, object] = {}
    missing: list[str] = []
    for one in there if dataset is None else [dataset]:
        scores = {
            measured: [score(record, one, measured, which) for record in records]
            for measured, which in (("utility", setting), ("attack", ATTACKER))
        }
        both = [
            (record, utility, attack)
            for record, utility, attack in zip(records, *scores.values(), strict=True)
            if utility is not None and attack is not None
        ]
        if any(record["mechanism"] != "none" for record, _, _ in both):
            recovered = {name(record): recovery(record, one, band) for record, _, _ in both}
            if max_recovery is not None and not any(value is not None for value in recovered.values()):
                raise RequestError(
                    f"{option('max_recovery')}: no run on {one} says what is recovered of its {band} words; `lexveil "
                    f"run` "
                    "measures it (stage evaluate)"
                )
            found[one] = of_dataset(both, min_utility, max_attack, recovered, max_recovery)
        else:
            absent = [measured for measured, values in scores.items() if not any(values)]
            missing.append(f"{one} (no {' and no '.join(absent) or 'run with both'})")
    if not found:
        raise RequestError(
            f"no data set has both a utility and an attack to weigh: {', '.join(missing)}; documents need a label, an "
            "attribute and splits (docs/explanation/evaluation.md)"
        )
    limits = {"min_utility": min_utility, "max_attack": max_attack, "max_recovery": max_recovery, "band": band}
    return {"limits": limits, "setting": setting, "attacker": ATTACKER, "datasets": found, "left_out": missing}


def of_dataset(
    scored: Sequence[tuple[Record, Score, Score]],
    min_utility: float | None,
    max_attack: float | None,
    recovered: Mapping[str, float | None],
    max_recovery: float | None,
) -> dict[str, object]:
    """What is said of one data set.

    Args:
        scored: runs with their utility and attack, the clean baseline among them if it is there.
        recovered: by run, where it was measured.

    Returns:
        ``clean``: of the clean texts, to compare with, None if not there; ``majority``: of the majority-class baseline;
        ``n_test``; ``runs``: every run with its scores and its standing; ``like_clean``: runs whose attack cannot be
        told from that on clean texts; ``readable``: runs of which too much is recovered, or it was not measured;
        neither are recommended, so that of the others, ``fitting``: names of the runs that are on the frontier and keep
        the limits, the best first; ``sure``: those of them that keep the limits with their margins; ``alike``: for each
        of ``fitting`` the runs that keep the limits and cannot be told apart from it; ``recommended``; ``nearest`` and
        ``shortfall``: if none keeps the limits, what comes nearest, and by how much it misses them, None and 0 if all
        are ``like_clean`` or ``readable``; ``extremes``: the runs of the highest utility and of the lowest attack.
    """
    runs = [run for run in scored if run[0]["mechanism"] != "none"]
    clean = next((run for run in scored if run[0]["mechanism"] == "none"), None)
    points = [point_of(run) for run in runs]
    standing = dict(zip((point.label for point in points), standings(points), strict=True))
    on_frontier = [point for point in points if standing[point.label] == "frontier"]
    like_clean = [] if clean is None else [one.label for one in points if not is_harder(one, point_of(clean))]
    readable = [
        label
        for label in standing
        if max_recovery is not None and ((share := recovered[label]) is None or share > max_recovery)
    ]
    private = [point for point in points if point.label not in (*like_clean, *readable)]
    # A run that only such runs beat is on the frontier of those that may be recommended.
    stand = [point for point, how in zip(private, standings(private), strict=True) if how == "frontier"]
    best = Recommendation((), (), None, 0.0)
    keeping: Sequence[Point] = ()
    if private:
        best = within_limits(stand, min_utility=min_utility, max_attack=max_attack)
        keeping = within_limits(private, min_utility=min_utility, max_attack=max_attack).fitting
    same = indistinguishable(keeping)
    alike = {
        point.label: [other.label for other, is_same in zip(keeping, row, strict=True) if is_same and other != point]
        for point, row in zip(keeping, same.tolist(), strict=True)
    }
    _, utility, attack = runs[0]
    return {
        "n_test": {"utility": utility.n_test, "attack": attack.n_test},
        "majority": {"utility": utility.majority, "attack": attack.majority},
        "clean": None if clean is None else {"utility": clean[1].summary(), "attack": clean[2].summary()},
        "runs": [
            {
                "run": name(record),
                **{key: record[key] for key in ("mechanism", "strategy", "epsilon", "level") if key in record},
                "utility": utility.summary(),
                "attack": attack.summary(),
                "standing": standing[name(record)],
                "recovered": recovered[name(record)],
            }
            for record, utility, attack in runs
        ],
        "fitting": [point.label for point in best.fitting],
        "sure": [point.label for point in best.sure],
        "alike": {point.label: alike[point.label] for point in best.fitting},
        "recommended": None if best.point is None else best.point.label,
        "like_clean": like_clean,
        "readable": readable,
        "nearest": None if best.nearest is None else best.nearest.label,
        "shortfall": best.shortfall,
        "extremes": {
            "utility": max(on_frontier, key=lambda point: point.utility.mean).label,
            "attack": min(on_frontier, key=lambda point: point.attack.mean).label,
        },
    }


def point_of(run: tuple[Record, Score, Score]) -> Point:
    """A run as a point to compare."""
    record, utility, attack = run
    return Point(name(record), utility.estimate, attack.estimate, utility.paired, attack.paired)


def is_harder(point: Point, clean: Point) -> bool:
    """Whether the attack on a run is below that on clean texts by more than chance explains."""
    # The same utility in both, so that the attack alone can tell them apart.
    same = [replace(one, utility=clean.utility, paired_utility=None) for one in (point, clean)]
    return point.attack.mean < clean.attack.mean and not indistinguishable(same)[0, 1]


def commands(run: Mapping[str, Any]) -> list[str]:
    """The commands that make a release of the settings of a run."""
    epsilon = f"--epsilon {run['epsilon']:g}"
    settings = f"--mechanism {run['mechanism']} --strategy {run['strategy']}"
    if run.get("level") is not None:  # each token got the epsilon, and no token of a release is to get more
        epsilon += f" --max-token-epsilon {run['epsilon']:g}"
    audit = paths.AUDITS / f"{run['mechanism']}-{run['strategy']}-{run['epsilon']:g}.json"
    return [
        f"mkdir -p {paths.AUDITS} && lexveil audit {settings} --epsilon {run['epsilon']:g} --out {audit}",
        f"lexveil inspect FILE {settings} {epsilon}",
        f"lexveil privatize FILE -o OUT {settings} {epsilon}",
    ]


def as_text(result: Mapping[str, Any]) -> list[str]:
    """The lines that are printed for a result of ``recommend``."""
    limits = result["limits"]
    wanted = " and ".join(
        f"{what} {sign} {limits[key]:g}"
        for what, sign, key in (("utility", "≥", "min_utility"), ("attack", "≤", "max_attack"))
        if limits[key] is not None
    )
    if limits["max_recovery"] is not None:
        wanted += f" and recovery of {limits['band']} words ≤ {limits['max_recovery']:g}"
    lines = []
    for dataset, found in result["datasets"].items():
        lines += [f"{dataset}: {wanted}", *_of_dataset(found, wanted), ""]
    lines += [f"not weighed: {one}" for one in result["left_out"]]
    return [
        *lines,
        f"Macro F1: utility on {'rewritten' if result['setting'] == 'private' else 'clean'} texts, attack by the "
        f"{result['attacker']} attacker. ± is the standard deviation over trainings; in brackets half of the 95% "
        "interval that the number of documents asked about allows. Runs are compared by their paired differences, "
        "document by document, where the evaluation has them. Noise was drawn once per run.",
    ]


def _of_dataset(found: Mapping[str, Any], wanted: str) -> list[str]:
    rows = {row["run"]: row for row in found["runs"]}
    nearest = [found["nearest"]] if found["nearest"] else []
    listed = found["fitting"] or list(dict.fromkeys([*nearest, *found["extremes"].values()]))
    cells = [["run", "utility", "attack", "keeps the limits"]]
    for run in listed:
        kept = "no" if not found["fitting"] else "surely" if run in found["sure"] else "by its mean"
        cells.append([run, *(_score(rows[run][what]) for what in ("utility", "attack")), kept])
    if found["clean"] is not None:
        cells.append(["clean texts", *(_score(found["clean"][what]) for what in ("utility", "attack")), ""])
    cells.append(["majority", *(f"{found['majority'][what]:.3f}" for what in ("utility", "attack")), ""])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    ]
    if not found["fitting"]:
        highest, lowest = found["extremes"]["utility"], found["extremes"]["attack"]
        misses = f"; {nearest[0]} comes nearest and misses by {found['shortfall']:.3f}" if nearest else ""
        return [
            f"  no run keeps {wanted}{misses}; {highest} has the highest utility and {lowest} the lowest attack",
            *lines,
            *_not_named(found),
        ]
    lines += _not_named(found)
    best = found["recommended"]
    how_sure = "" if best in found["sure"] else ", by its mean alone: its margin of error does not keep the limits"
    lines.append(f"  recommended: {best}{how_sure}")
    for run in listed:
        others = found["alike"][run]
        lines.append(
            f"  {run} cannot be told apart from {formatting.listed(others)}"
            if others
            else f"  {run} differs from every other run that keeps the limits"
        )
    return [*lines, "  to release by it:", *(f"    {command}" for command in commands(rows[best]))]


def _not_named(found: Mapping[str, Any]) -> list[str]:
    said = (
        ("like_clean", "not private: the attack cannot be told from that on clean texts"),
        ("readable", "more is recovered than the limit allows, or it was not measured"),
    )
    return [f"  {why}: {formatting.listed(found[key])}" for key, why in said if found[key]]


def _score(value: Mapping[str, Any]) -> str:
    sd = "" if value["sd"] is None else f" ± {value['sd']:.3f}"
    return f"{value['mean']:.3f}{sd} [{value['half_width']:.2f}]"
