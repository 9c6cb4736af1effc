"""Runs by what a reader gets back of them: a level of recovery in the place of a base epsilon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PREFIX = "r"  # of a level in names of files and runs: r0.2


class Level(float):
    """A share of words, at which a run is made, where the name of another run has its base epsilon.

    It is written with a prefix, so that no folder of an epsilon is meant, and equals no epsilon.

    Attributes:
        epsilon: of each replaced token, found for the level by public things; None until that is read.
    """

    epsilon: float | None

    def __new__(cls, share: float, epsilon: float | None = None) -> Level:
        """A level; ``share`` lies between 0 and 1."""
        level = super().__new__(cls, share)
        level.epsilon = epsilon
        return level

    def __str__(self) -> str:
        return f"{PREFIX}{self.share}"

    def __format__(self, spec: str) -> str:
        return format(self.share, spec) if spec else str(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Level) and self.share == other.share

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((PREFIX, self.share))

    @property
    def share(self) -> float:
        """The level as a plain number."""
        return float.__float__(self)


def parse_epsilon(written: str) -> float:
    """A base epsilon, or a level, as the name of a run has it.

    Raises:
        ValueError: if it is neither.
    """
    if written.startswith(PREFIX):
        return Level(float(written.removeprefix(PREFIX)))
    return float(written)


def epsilon_in(record: Mapping[str, Any]) -> float:
    """The base epsilon of a run, or its level, as a record of what was measured of it has them."""
    if (share := record.get("level")) is None:
        return float(record["epsilon"])
    return Level(float(share), float(record["epsilon"]))


def stage_name(stage: str, mechanism: str, strategy: str, epsilon: float) -> str:
    """The stage of dvc.yaml that makes something of a run, as DVC names it.

    Args:
        stage: its name where runs have a base epsilon.
    """
    if isinstance(epsilon, Level):
        return f"{stage}_at_level@{mechanism}-{strategy}-{epsilon.share}"
    return f"{stage}@{mechanism}-{strategy}-{epsilon}"
