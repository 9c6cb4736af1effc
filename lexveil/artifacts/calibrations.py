"""Epsilons of levels of recovery, one file each, which the stage ``calibrate`` writes."""

from __future__ import annotations

from typing import overload

from lexveil import paths
from lexveil.accounting.expected_recovery import RecoveryAt
from lexveil.accounting.results import Result
from lexveil.levels import Level
from lexveil.runtime.tables import read_json


class LevelCalibration(Result):
    """The epsilon at which a mechanism and strategy give back so much; it follows from public things alone."""

    mechanism: str
    strategy: str
    recovery: float
    """The level: the share of the words of ``band`` that a best-informed reader is expected to name."""
    band: str
    epsilon: float
    """Of each replaced token."""
    achieved: RecoveryAt
    """At that epsilon, of other words and other noise than those it was found with."""


def load_calibration(mechanism: str, strategy: str, level: Level) -> LevelCalibration:
    """Read what was found for a run.

    Raises:
        MissingArtifact: if it was not.
    """
    made_by = f"calibrate@{mechanism}-{strategy}-{level.share}"
    return LevelCalibration.model_validate(read_json(paths.calibration(mechanism, strategy, level), made_by))


@overload
def resolved(mechanism: str, strategy: str, epsilon: Level) -> Level: ...
@overload
def resolved(mechanism: str, strategy: str, epsilon: float) -> float: ...
def resolved(mechanism: str, strategy: str, epsilon: float) -> float:
    """The base epsilon of a run, or its level with the epsilon that was found for it.

    Raises:
        MissingArtifact: if none was found so far.
    """
    if not isinstance(epsilon, Level):
        return epsilon
    return Level(epsilon.share, load_calibration(mechanism, strategy, epsilon).epsilon)


def epsilon_of(mechanism: str, strategy: str, epsilon: float) -> float:
    """The base epsilon of a run; at a level that which was found for it, the epsilon of each token.

    Raises:
        MissingArtifact: if none was found so far.
    """
    if not isinstance(epsilon, Level):
        return epsilon
    return load_calibration(mechanism, strategy, epsilon).epsilon


def named_in_record(mechanism: str, strategy: str, epsilon: float) -> dict[str, object]:
    """What names a run in the records of what was measured of it: a run at a level has its level beside its epsilon."""
    named: dict[str, object] = {"mechanism": mechanism, "strategy": strategy}
    named["epsilon"] = epsilon_of(mechanism, strategy, epsilon)
    return named | ({"level": epsilon.share} if isinstance(epsilon, Level) else {})
