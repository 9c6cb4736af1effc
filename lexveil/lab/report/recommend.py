"""Recommendation of runs within limits of utility and attack success, for the command `lexveil
recommend`. No stage of the pipeline uses this module.

It reads the files of the stage `evaluate`. Utility and attack are macro F1; the attack is the
adaptive attack. Each score has two errors: one from the trainings (standard deviation over
shuffles), and one from the number of evaluated documents. All runs are evaluated on the same
documents after the same trainings, so they are compared by paired differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lexveil.base import paths
from lexveil.base.errors import MissingArtifactError, RequestError, option
from lexveil.base.levels import noise_in, parse_noise
from lexveil.base.runtime.tables import read_json
from lexveil.io.config import load_params
from lexveil.io.request import SENTENCES
from lexveil.lab.evaluation.frontier import (
    Estimate,
    Paired,
    Point,
    Recommendation,
    indistinguishable,
    share_error,
    standings,
)
from lexveil.lab.evaluation.frontier import recommend as within_limits
from lexveil.lab.evaluation.recovery.measured import READERS
from lexveil.lab.report import formatting
from lexveil.lab.report.formatting import NORMAL
from lexveil.lab.report.records import RunRecovery

METRIC = "macro_f1"
ATTACKER = "adaptive"

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MacroF1:
    """Macro F1 of one run on a task or an attack, with the data to estimate its error.

    Attributes:
        each: score of every training, in [0, 1].
        n_test: number of evaluated documents.
        majority: score of the baseline that reads no text.
        right: for each document, the number of trainings that classify it correctly, for paired
            comparison with other runs; None if this number is unknown.
    """

    each: Sequence[float]
    n_test: int
    majority: float
    right: Sequence[int] | None

    @classmethod
    def of(cls, record: Record, dataset: str, measured: str, setting: str) -> MacroF1 | None:
        """Read a macro F1 from the evaluation record of a run; return None if the score was left
        out or not measured.
        """
        entry = record["datasets"].get(dataset, {}).get(measured)
        if entry is None or entry["left_out"] is not None or setting not in entry["scores"]:
            return None
        right = entry.get("right", {}).get(setting)
        return cls(
            entry["scores"][setting][METRIC]["each"],
            entry["n_test"],
            entry["majority"][METRIC],
            None if right is None else [int(number) for number in right.split()],
        )

    @property
    def estimate(self) -> Estimate:
        """The score as an estimate with its errors from trainings and from documents."""
        return Estimate.of(self.each).asked_of(self.n_test)

    @property
    def paired(self) -> Paired | None:
        """The score in a form for paired comparison with other runs; None if ``right`` is None."""
        if self.right is None:
            return None
        return Paired(np.array(self.each), np.array(self.right) / len(self.each))

    def summary(self) -> dict[str, object]:
        """Return the score as JSON values: mean, standard deviation over shuffles (None for one
        training), and half of the 95% interval.
        """
        once = Estimate.of(self.each)
        return {
            "mean": once.mean,
            "sd": once.standard_error * len(self.each) ** 0.5 if len(self.each) > 1 else None,
            "half_width": NORMAL * share_error(once.mean, self.n_test),
        }


@dataclass(frozen=True, slots=True)
class WeighedRun:
    """Utility and attack scores of a run on a data set, or of the clean texts of the data set."""

    record: Record
    utility: MacroF1
    attack: MacroF1

    @property
    def is_clean(self) -> bool:
        """Whether the run is the clean baseline (texts that were not rewritten)."""
        return bool(self.record["mechanism"] == "none")

    @property
    def name(self) -> str:
        """Name of the run: mechanism, strategy and epsilon."""
        return f"{self.record['mechanism']} {self.record['strategy']} {noise_in(self.record).title}"

    @property
    def point(self) -> Point:
        """The run as a point of the Pareto frontier, with both scores."""
        utility = self.utility
        attack = self.attack
        return Point(self.name, utility.estimate, attack.estimate, utility.paired, attack.paired)

    def summary(self) -> dict[str, object]:
        """Return utility and attack as JSON values."""
        return {"utility": self.utility.summary(), "attack": self.attack.summary()}

    def row(self, standing: str, recovered: float | None) -> dict[str, object]:
        """Return the run as JSON values, with its standing (on the frontier, dominated or
        undecided) and the share of words that an adversary recovers.
        """
        keys = ("mechanism", "strategy", "epsilon", "level")
        settings = {key: self.record[key] for key in keys if key in self.record}
        return {
            "run": self.name,
            **settings,
            **self.summary(),
            "standing": standing,
            "recovered": recovered,
        }

    def recovered(self, dataset: str, band: str) -> float | None:
        """Return the upper end of the 95% interval of the share of words that the strongest
        adversary recovers; None if the share was not measured.
        """
        file = paths.recovery(
            self.record["mechanism"], self.record["strategy"], parse_noise(self.record["run"])
        )
        run = RunRecovery(read_json(file, "evaluate") if file.exists() else {"datasets": {}})
        shares = [run.share(band, reader, dataset) for reader in READERS]
        return max((share.high for share in shares if share is not None), default=None)


def read_records() -> list[Record]:
    """Read the evaluation files of all runs (artifacts/evaluation), ordered by mechanism, strategy
    and ε; ``run`` of each record is ε as params.yaml writes it. Skipped runs are left out. Runs of
    strategy S5 (sentences) are left out, too, because their epsilon belongs to another distance.

    Raises:
        MissingArtifactError: if there are no evaluation files.
    """
    folder = paths.ARTIFACTS / "evaluation"
    records = [
        record | {"run": file.stem}
        for file in folder.glob("*/*/*.json")
        if file.parent.name != SENTENCES
        if "skipped" not in (record := read_json(file, "evaluate"))
    ]
    if not records:
        raise MissingArtifactError(
            f"{folder} holds no scores yet; `lexveil run` computes them (stage evaluate)"
        )
    return sorted(
        records, key=lambda record: (record["mechanism"], record["strategy"], record["epsilon"])
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for recommended runs; None for no limit.

    Attributes:
        min_utility: smallest acceptable macro F1 of the task.
        max_attack: largest acceptable macro F1 of the adaptive attacker.
        max_recovery: largest share of replaced words of the frequency band ``band`` that an
            adversary may recover; the upper end of the 95% interval of the share must not exceed
            it.
        band: frequency band of the words to which ``max_recovery`` refers.
    """

    min_utility: float | None = None
    max_attack: float | None = None
    max_recovery: float | None = None
    band: str = "all"


def recommend(
    limits: Limits, *, dataset: str | None = None, setting: str = "private"
) -> dict[str, Any]:
    """Recommend runs that keep limits of utility and attack success, by data set.

    Args:
        limits: the limits of the runs; utility or attack must have a limit.
        dataset: name of the only data set to look at; None takes all data sets that have both
            scores.
        setting: texts on which utility is measured: rewritten (private) or clean texts.

    Returns:
        The limits, and ``datasets`` with the result of ``of_dataset`` for each data set.

    Raises:
        RequestError: if no limit is given, no data set has both scores, or recovery is limited but
            was not measured.
        MissingArtifactError: if there are no scores yet.
    """
    if limits.min_utility is None and limits.max_attack is None:
        raise RequestError(
            f"no limit is given; give {option('min_utility')}, {option('max_attack')} or both"
        )
    records = read_records()
    weighed: dict[str, object] = {}
    left_out: list[str] = []
    for name in _datasets(records, dataset):
        candidates = weighed_runs(records, name, setting)
        if all(candidate.is_clean for candidate in candidates):
            left_out.append(f"{name} ({_absent_scores(records, name, setting)})")
        else:
            weighed[name] = of_dataset(name, candidates, limits)
    if not weighed:
        raise RequestError(
            f"no data set has both a utility and an attack: {', '.join(left_out)}; documents "
            "need a label, an attribute and splits (docs/explanation/evaluation.md)"
        )
    return {
        "limits": asdict(limits),
        "setting": setting,
        "attacker": ATTACKER,
        "is_per_token": load_params().grid.budget == "token",
        "datasets": weighed,
        "left_out": left_out,
    }


def _datasets(records: Sequence[Record], dataset: str | None) -> list[str]:
    """Return the names of the evaluated data sets, or only the one that was requested.

    Raises:
        RequestError: if the requested data set was not evaluated.
    """
    evaluated = sorted({name for record in records for name in record["datasets"]})
    if dataset is None:
        return evaluated
    if dataset not in evaluated:
        raise RequestError(
            f"{option('dataset')} {dataset}: was not evaluated; evaluated data sets: "
            f"{', '.join(evaluated)}"
        )
    return [dataset]


def weighed_runs(records: Sequence[Record], dataset: str, setting: str) -> list[WeighedRun]:
    """Return the runs that have both a utility and an attack score on a data set."""
    weighed = []
    for record in records:
        utility = MacroF1.of(record, dataset, "utility", setting)
        attack = MacroF1.of(record, dataset, "attack", ATTACKER)
        if utility is not None and attack is not None:
            weighed.append(WeighedRun(record, utility, attack))
    return weighed


def _absent_scores(records: Sequence[Record], dataset: str, setting: str) -> str:
    """Return the reason why the runs on a data set cannot be compared."""
    scores = {"utility": setting, "attack": ATTACKER}
    absent = [
        score
        for score, how in scores.items()
        if all(MacroF1.of(record, dataset, score, how) is None for record in records)
    ]
    return f"no {' and no '.join(absent) or 'run with both'}"


def of_dataset(dataset: str, candidates: Sequence[WeighedRun], limits: Limits) -> dict[str, object]:
    """Return the recommended runs for one data set.

    Args:
        candidates: runs, at least one, and the clean baseline if it exists.

    Returns:
        ``clean``: scores of the clean texts for comparison, None if they do not exist;
            ``majority``: scores of the majority-class baseline; ``n_test``: number of evaluated
            documents; ``runs``: every run with its scores and its standing; ``like_clean``: runs
            whose attack is indistinguishable from the attack on clean texts; ``readable``: runs
            with too much recovery, or with no measured recovery; ``extremes``: the runs with the
            highest utility and with the lowest attack. No run of ``like_clean`` or ``readable`` is
            recommended; the result of ``_verdict`` for the other runs is added.
    """
    runs = [candidate for candidate in candidates if not candidate.is_clean]
    clean = next((candidate for candidate in candidates if candidate.is_clean), None)
    points = {run.name: run.point for run in runs}
    standing = dict(zip(points, standings([*points.values()]), strict=True))
    frontier = [points[name] for name, how in standing.items() if how == "frontier"]
    recovered = {run.name: run.recovered(dataset, limits.band) for run in runs}
    like_clean = [
        name
        for name, point in points.items()
        if clean is not None and not is_harder(point, clean.point)
    ]
    readable = too_readable(dataset, recovered, limits)
    private = [point for name, point in points.items() if name not in (*like_clean, *readable)]
    utility = runs[0].utility
    attack = runs[0].attack
    return {
        "n_test": {"utility": utility.n_test, "attack": attack.n_test},
        "majority": {"utility": utility.majority, "attack": attack.majority},
        "clean": None if clean is None else clean.summary(),
        "runs": [run.row(standing[run.name], recovered[run.name]) for run in runs],
        "like_clean": like_clean,
        "readable": readable,
        **_verdict(private, limits),
        "extremes": {
            "utility": max(frontier, key=lambda point: point.utility.mean).label,
            "attack": min(frontier, key=lambda point: point.attack.mean).label,
        },
    }


def _verdict(private: Sequence[Point], limits: Limits) -> dict[str, object]:
    """Return the recommendation among runs that are private enough to be considered.

    Returns:
        ``fitting``: names of the runs that are on the frontier and keep the limits, the best first;
            ``sure``: the runs of ``fitting`` that keep the limits with their margins of error;
            ``alike``: for each run of ``fitting``, the runs that keep the limits and are
            indistinguishable from it; ``recommended``: name of the best run; ``nearest`` and
            ``shortfall``: if no run keeps the limits, the run that comes nearest and by how much it
            misses them, None and 0 if there is no run.
    """
    best, alike = within(private, limits.min_utility, limits.max_attack)
    return {
        "fitting": [point.label for point in best.fitting],
        "sure": [point.label for point in best.sure],
        "alike": alike,
        "recommended": None if best.point is None else best.point.label,
        "nearest": None if best.nearest is None else best.nearest.label,
        "shortfall": best.shortfall,
    }


def too_readable(dataset: str, recovered: Mapping[str, float | None], limits: Limits) -> list[str]:
    """Return the names of the runs from which an adversary recovers more words than the limit
    allows, or for which the recovery was not measured.

    Raises:
        RequestError: if recovery is limited and was measured for no run.
    """
    limit = limits.max_recovery
    if limit is None:
        return []
    if all(share is None for share in recovered.values()):
        raise RequestError(
            f"{option('max_recovery')}: no run on {dataset} has a measured recovery of "
            f"{limits.band} words; `lexveil run` measures it (stage evaluate)"
        )
    return [name for name, share in recovered.items() if share is None or share > limit]


def within(
    private: Sequence[Point], min_utility: float | None, max_attack: float | None
) -> tuple[Recommendation, dict[str, list[str]]]:
    """Return the best runs within limits of utility and attack, and for each of them the other runs
    that are statistically indistinguishable from it.
    """
    if not private:
        return Recommendation((), (), None, 0.0), {}
    # Leave out the runs that are not recommended: a run that only these runs beat is on the
    # frontier.
    frontier = [
        point for point, how in zip(private, standings(private), strict=True) if how == "frontier"
    ]
    best = within_limits(frontier, min_utility=min_utility, max_attack=max_attack)
    keeping = within_limits(private, min_utility=min_utility, max_attack=max_attack).fitting
    alike = {
        point.label: [
            other.label
            for other, is_same in zip(keeping, row, strict=True)
            if is_same and other != point
        ]
        for point, row in zip(keeping, indistinguishable(keeping).tolist(), strict=True)
    }
    return best, {point.label: alike[point.label] for point in best.fitting}


def is_harder(point: Point, clean: Point) -> bool:
    """Return whether the attack on a run succeeds less than the attack on clean texts, by more than
    chance explains.
    """
    # Give both points the same utility, so that only the attack can distinguish them.
    same = [replace(one, utility=clean.utility, paired_utility=None) for one in (point, clean)]
    return point.attack.mean < clean.attack.mean and not indistinguishable(same)[0, 1]


def commands(run: Mapping[str, Any], *, is_per_token: bool = False) -> list[str]:
    """Return the shell commands that release a file with the settings of a run.

    Args:
        is_per_token: whether every token of the run got the same epsilon, as in a run at a recovery
            level.
    """
    epsilon = f"--epsilon {run['epsilon']:g}"
    settings = f"--mechanism {run['mechanism']} --strategy {run['strategy']}"
    audit = paths.AUDITS / f"{run['mechanism']}-{run['strategy']}-{run['epsilon']:g}.json"
    # If each token of the run got the same epsilon, no token of a release may get more.
    is_limited = is_per_token or run.get("level") is not None
    most = f" --max-token-epsilon {run['epsilon']:g}" if is_limited else ""
    return [
        f"mkdir -p {paths.AUDITS} && lexveil audit {settings} {epsilon} --out {audit}",
        f"lexveil inspect FILE {settings} {epsilon}{most}",
        f"lexveil privatize FILE -o OUT {settings} {epsilon}{most}",
    ]


def as_text(result: Mapping[str, Any]) -> list[str]:
    """Format a result of ``recommend`` as lines of text."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.filters["listed"] = formatting.listed
    limits = result["limits"]
    recovery = f"recovery of {result['limits']['band']} words ≤"
    signs = {"min_utility": "utility ≥", "max_attack": "attack ≤", "max_recovery": recovery}
    wanted = " and ".join(
        f"{sign} {limits[key]:g}" for key, sign in signs.items() if limits[key] is not None
    )
    template = environment.get_template("recommend.txt.j2")
    return template.render(result, wanted=wanted, table=_table, commands=commands).splitlines()


def _table(weighed: Mapping[str, Any]) -> list[str]:
    """Format as text the table of the runs that keep the limits, or of the nearest run, with their
    scores, followed by the clean texts and the majority-class baseline.
    """
    verdicts = {
        run: "surely" if run in weighed["sure"] else "by its mean" for run in weighed["fitting"]
    }
    nearest = [weighed["nearest"]] if weighed["nearest"] else []
    verdicts = verdicts or dict.fromkeys([*nearest, *weighed["extremes"].values()], "no")
    rows = {row["run"]: row for row in weighed["runs"]} | {"clean texts": weighed["clean"]}
    cells = [["run", "utility", "attack", "keeps the limits"]]
    for name in [*verdicts, *(["clean texts"] if weighed["clean"] else [])]:
        cells.append(
            [
                name,
                *(_written(rows[name][score]) for score in ("utility", "attack")),
                verdicts.get(name, ""),
            ]
        )
    cells.append(
        ["majority", *(f"{weighed['majority'][score]:.3f}" for score in ("utility", "attack")), ""]
    )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]


def _written(score: Mapping[str, Any]) -> str:
    sd = "" if score["sd"] is None else f" ± {score['sd']:.3f}"
    return f"{score['mean']:.3f}{sd} [{score['half_width']:.2f}]"
