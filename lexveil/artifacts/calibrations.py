"""The epsilon of each run of the grid, which the stage ``plan_budgets`` writes beside its plan."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from lexveil import paths
from lexveil.accounting.expected_recovery import RecoveryAt
from lexveil.accounting.results import Result
from lexveil.artifacts.sentence_runs import epsilon_of_sentences, why_skipped
from lexveil.errors import RequestError
from lexveil.levels import NoiseSetting, RecoveryTarget, Run
from lexveil.request import SENTENCES
from lexveil.runtime.tables import read_json

SKIPPED = "skipped.json"  # the only file in the folder of texts of a run that was skipped


class PlannedEpsilon(Result):
    """Base epsilon of a run.

    Attributes:
        parameters: Parameters of the mechanism.
    """

    mechanism: str
    strategy: str
    epsilon: float
    parameters: dict[str, JsonValue]


class LevelCalibration(PlannedEpsilon):
    """Epsilon of each replaced token at which an adversary is expected to recover a given share of
    words. It is computed from public data only.

    Attributes:
        recovery: The level: expected share of the words of ``band`` that an adversary recovers.
        achieved: Expected recovery at that epsilon, for other words and other noise than the
            calibration used.
    """

    recovery: float
    band: str
    achieved: RecoveryAt


class SkippedLevel(Result):
    """A run of the grid that is not made, because its level of recovery is out of reach.

    Attributes:
        recovery: The level: wanted share of the words of ``band`` that an adversary recovers.
        nearest: The share nearest to the level that the run can reach.
        skipped: Why the run is skipped, in words.
    """

    mechanism: str
    strategy: str
    recovery: float
    band: str
    nearest: float
    skipped: str

    @property
    def name(self) -> str:
        """Mechanism, strategy and level of the run."""
        return f"{self.mechanism} {self.strategy} {RecoveryTarget(self.recovery)}"


def skipped_run(mechanism: str, strategy: str, noise: NoiseSetting) -> SkippedLevel | None:
    """Return why a run of the grid is skipped; None if it is made.

    Raises:
        MissingArtifactError: if the run was not planned.
    """
    if noise.share is None:
        return None
    if strategy == SENTENCES:
        return _skipped_sentences(mechanism, noise)
    planned = read_json(paths.planned_epsilon(mechanism, strategy, noise), "plan_budgets")
    return SkippedLevel.model_validate(planned) if "skipped" in planned else None


def _skipped_sentences(mechanism: str, level: RecoveryTarget) -> SkippedLevel | None:
    """Return why a run of sentences is skipped; none of its texts is found again then."""
    why = why_skipped(level)
    if why is None:
        return None
    return SkippedLevel(
        mechanism=mechanism,
        strategy=SENTENCES,
        recovery=level.share,
        band="content",
        nearest=0.0,
        skipped=why,
    )


def made_runs(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that are not skipped.

    Raises:
        MissingArtifactError: if a run was not planned.
    """
    return [run for run in runs if skipped_run(*run) is None]


def epsilon_of(mechanism: str, strategy: str, noise: NoiseSetting) -> float:
    """Return the base epsilon of a run; at a level, the epsilon of each token in its plan.

    Raises:
        MissingArtifactError: if the run was not planned.
        RequestError: if the run is skipped.
    """
    if noise.share is None:
        return noise.epsilon
    if strategy == SENTENCES:
        return epsilon_of_sentences(noise)
    if skipped := skipped_run(mechanism, strategy, noise):
        raise RequestError(f"{skipped.name} was not made: {skipped.skipped}")
    planned = read_json(paths.planned_epsilon(mechanism, strategy, noise), "plan_budgets")
    return LevelCalibration.model_validate(planned).epsilon


def resolved(mechanism: str, strategy: str, noise: NoiseSetting) -> NoiseSetting:
    """Return the base epsilon of a run, or its level with the epsilon that was computed for it.

    Raises:
        MissingArtifactError: if the run was not planned.
    """
    if noise.share is None:
        return noise
    return RecoveryTarget(noise.share, epsilon_of(mechanism, strategy, noise))


def named_in_record(mechanism: str, strategy: str, noise: NoiseSetting) -> dict[str, object]:
    """Return the keys that identify a run in records of measurements. A run at a level has its
    level beside its epsilon.
    """
    named: dict[str, object] = {"mechanism": mechanism, "strategy": strategy}
    named["epsilon"] = epsilon_of(mechanism, strategy, noise)
    return named | noise.level_entry
