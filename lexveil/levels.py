"""Runs by what an adversary names of them: a level of recovery in the place of a base epsilon."""

from __future__ import annotations

import re
from collections.abc import Mapping

# how each strategy cuts texts
SEGMENTATION_OF = {"S1": "word", "S2": "gst", "S3": "gst", "S4": "mst"}
PREFIX = "r"  # of a level in params.yaml and in names of files and runs: r0.2


class Level(float):
    """A share of words that an adversary is expected to name, at which a run is made in place of a
    base epsilon.

    It is written with a prefix, so that no folder of an epsilon is meant, and equals no epsilon.

    Attributes:
        epsilon: of each replaced token, found for the level by public things; None until the plan
            is read.
    """

    epsilon: float | None

    def __new__(cls, share: float, epsilon: float | None = None) -> Level:
        """A level; ``share`` lies between 0 and 1."""
        level = super().__new__(cls, share)
        level.epsilon = epsilon
        return level

    def __reduce__(self) -> tuple[type[Level], tuple[float, float | None]]:
        return Level, (self.share, self.epsilon)

    def __str__(self) -> str:
        return f"{PREFIX}{self.share}"

    __repr__ = __str__

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


class WholeEpsilon(float):
    """A base epsilon that params.yaml writes without a decimal point; DVC names its stages and
    files so.
    """

    def __str__(self) -> str:
        return str(int(self))


def parse_epsilon(written: str) -> float:
    """A base epsilon, or a level, as params.yaml and the name of a run have it.

    Raises:
        ValueError: if it is neither.
    """
    if not written.startswith(PREFIX):
        return WholeEpsilon(written) if written.isdecimal() else float(written)
    if not re.fullmatch(r"0?\.\d+", share := written.removeprefix(PREFIX)) or float(share) == 0:
        raise ValueError(f"{written} is no level")
    return Level(float(share))


def epsilon_in(record: Mapping[str, object]) -> float:
    """The base epsilon of a run, or its level, as a record of what was measured of it has them."""
    epsilon = float(str(record["epsilon"]))
    return epsilon if record.get("level") is None else Level(float(str(record["level"])), epsilon)


def stage_name(stage: str, mechanism: str, strategy: str, epsilon: float) -> str:
    """The stage of dvc.yaml that makes something of a run, as DVC names it."""
    return f"{stage}@{mechanism}-{strategy}-{epsilon}"
