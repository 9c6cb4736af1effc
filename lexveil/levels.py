"""Recovery levels, base epsilons, and the names of runs that use them."""

from __future__ import annotations

import re
from collections.abc import Mapping

# segmentation of each strategy
SEGMENTATION_OF = {"S1": "word", "S2": "gst", "S3": "gst", "S4": "mst"}
PREFIX = "r"  # prefix of a level in params.yaml and in names of files and runs: r0.2


class Level(float):
    """Share of words that an adversary is expected to recover, which sets the noise of a run in
    place of a base epsilon.

    A level is written with a prefix, so that its folder differs from the folder of an epsilon. A
    level never equals an epsilon.

    Attributes:
        epsilon: epsilon of each replaced token, calibrated for the level on public data; None
            until the plan is read.
    """

    epsilon: float | None

    def __new__(cls, share: float, epsilon: float | None = None) -> Level:
        """Create a level; ``share`` lies between 0 and 1."""
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
    """Base epsilon that params.yaml writes without a decimal point; DVC uses this form in the names
    of stages and files.
    """

    def __str__(self) -> str:
        return str(int(self))


def parse_epsilon(written: str) -> float:
    """Parse a base epsilon, or a level, in the form of params.yaml and of the names of runs.

    Raises:
        ValueError: if the text is neither an epsilon nor a level.
    """
    if not written.startswith(PREFIX):
        return WholeEpsilon(written) if written.isdecimal() else float(written)
    if not re.fullmatch(r"0?\.\d+", share := written.removeprefix(PREFIX)) or float(share) == 0:
        raise ValueError(f"{written} is no level")
    return Level(float(share))


def epsilon_in(record: Mapping[str, object]) -> float:
    """Return the base epsilon of a run, or its level, from a record of the run's figures."""
    epsilon = float(str(record["epsilon"]))
    return epsilon if record.get("level") is None else Level(float(str(record["level"])), epsilon)


def stage_name(stage: str, mechanism: str, strategy: str, epsilon: float) -> str:
    """Return the name that DVC gives to the stage that processes one run; sentences of a bank have
    stages of their own, one for each level.
    """
    if strategy not in SEGMENTATION_OF:
        return f"{stage}_sentences@{epsilon}"
    return f"{stage}@{mechanism}-{strategy}-{epsilon}"
