"""The epsilon of each run of the grid, which the stage ``plan_budgets`` writes beside its plan."""

from __future__ import annotations

from pydantic import JsonValue

from lexveil import paths
from lexveil.accounting.expected_recovery import RecoveryAt
from lexveil.accounting.results import Result
from lexveil.levels import Level
from lexveil.runtime.tables import read_json


class PlannedEpsilon(Result):
    """The base epsilon of a run.

    Attributes:
        parameters: What its mechanism is built with.
    """

    mechanism: str
    strategy: str
    epsilon: float
    parameters: dict[str, JsonValue]


class LevelCalibration(PlannedEpsilon):
    """The epsilon at which an adversary is expected to name so much; it follows from public things
    alone.

    It is that of each replaced token.

    Attributes:
        recovery: The level: the share of the words of ``band`` that an adversary is expected to
            name.
        achieved: At that epsilon, of other words and other noise than those it was found with.
    """

    recovery: float
    band: str
    achieved: RecoveryAt


def epsilon_of(mechanism: str, strategy: str, epsilon: float) -> float:
    """The base epsilon of a run; at a level the epsilon of each token, as its plan has it.

    Raises:
        MissingArtifact: if the run was not planned.
    """
    if not isinstance(epsilon, Level):
        return epsilon
    planned = read_json(paths.planned_epsilon(mechanism, strategy, epsilon), "plan_budgets")
    return LevelCalibration.model_validate(planned).epsilon


def resolved(mechanism: str, strategy: str, epsilon: float) -> float:
    """The base epsilon of a run, or its level with the epsilon that was found for it.

    Raises:
        MissingArtifact: if the run was not planned.
    """
    return (
        Level(epsilon.share, epsilon_of(mechanism, strategy, epsilon))
        if isinstance(epsilon, Level)
        else epsilon
    )


def named_in_record(mechanism: str, strategy: str, epsilon: float) -> dict[str, object]:
    """What names a run in the records of what was measured of it: a run at a level has its level
    beside its epsilon.
    """
    named: dict[str, object] = {"mechanism": mechanism, "strategy": strategy}
    named["epsilon"] = epsilon_of(mechanism, strategy, epsilon)
    return named | ({"level": epsilon.share} if isinstance(epsilon, Level) else {})
