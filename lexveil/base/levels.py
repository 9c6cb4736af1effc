"""Base epsilons and levels of recovery, by which the noise of a run is set; and the names of runs.

A run of the grid is a mechanism, a strategy, and one of the two, which have the same methods. What
exists at a level alone is None at a base epsilon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

# segmentation of each strategy
SEGMENTATION_OF = {"S1": "word", "S2": "gst", "S3": "gst", "S4": "mst"}
PREFIX = "r"  # prefix of a level in params.yaml and in names of files and runs: r0.2
MISSING = "–"  # text of a number that there is not


@dataclass(frozen=True, slots=True)
class BaseEpsilon:
    """Base epsilon per word of a run.

    Attributes:
        value: the number as params.yaml writes it. The values 10 and 10.0 are equal, and DVC uses
            each as it is written in the names of stages and files. The value 0 is that of the clean
            baseline.
        share: None, because a base epsilon names no share of words.
    """

    value: float
    share: ClassVar[None] = None

    def __str__(self) -> str:
        """Return the name in paths, in names of stages, and in params.yaml."""
        return str(self.value)

    def __lt__(self, other: NoiseSetting) -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[int, float]:
        """Place among the runs of a mechanism and strategy: base epsilons come before levels."""
        return 0, self.value

    @property
    def epsilon(self) -> float:
        """The base epsilon as a number of records."""
        return float(self.value)

    @property
    def number(self) -> float:
        """The number that an axis shows: the base epsilon."""
        return self.value

    @property
    def parameter(self) -> float:
        """The value that params.yaml has for it."""
        return float(self.value)

    @property
    def level_entry(self) -> dict[str, float]:
        """Entry of a record beside that of the epsilon: none."""
        return {}

    @property
    def short(self) -> str:
        """The base epsilon as briefly as possible: 0.5, 1, 50; a dash for the clean baseline."""
        return f"{self.value:g}" if self.value else MISSING

    @property
    def text(self) -> str:
        """The base epsilon in a column of a table: 0.5."""
        return self.short

    @property
    def title(self) -> str:
        """The base epsilon in the name of a run: ε 0.5."""
        return f"ε {self.short}"


@dataclass(frozen=True, slots=True)
class RecoveryTarget:
    """Level of recovery: share of words that an adversary is expected to recover from a run, for
    which the epsilon of the run is calibrated.

    A level is written with a prefix, so that its folder differs from the folder of an epsilon.

    Attributes:
        share: the share, between 0 and 1.
        epsilon: epsilon of each replaced token, calibrated for the share on public data; None until
            the plan is read. Levels of one share are equal, whatever their epsilon.
    """

    share: float
    epsilon: float | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Return the name in paths, in names of stages, and in params.yaml."""
        return f"{PREFIX}{self.share}"

    def __lt__(self, other: NoiseSetting) -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[int, float]:
        """Place among the runs of a mechanism and strategy: base epsilons come before levels."""
        return 1, self.share

    @property
    def number(self) -> float:
        """The number that an axis shows: the share."""
        return self.share

    @property
    def parameter(self) -> str:
        """The value that params.yaml has for it."""
        return str(self)

    @property
    def level_entry(self) -> dict[str, float]:
        """Entry of a record beside that of the epsilon: the share, as ``level``."""
        return {"level": self.share}

    @property
    def short(self) -> str:
        """The share in percent, as briefly as possible: 5%, 0.5%."""
        return f"{100 * self.share:g}%"

    @property
    def text(self) -> str:
        """The level in a column of a table, with its epsilon if that is known: 20%, ε 8.11."""
        return self.short if self.epsilon is None else f"{self.short}, ε {self.epsilon:.3g}"

    @property
    def title(self) -> str:
        """The level in the name of a run: 20%, ε 8.11."""
        return self.text


NoiseSetting = BaseEpsilon | RecoveryTarget
Run = tuple[str, str, NoiseSetting]  # mechanism, strategy, and how its noise is set


def parse_noise(written: str) -> NoiseSetting:
    """Parse a base epsilon, or a level, in the form of params.yaml and of the names of
    runs.

    Raises:
        ValueError: if the text is neither an epsilon nor a level.
    """
    if not written.startswith(PREFIX):
        return BaseEpsilon(int(written) if written.isdecimal() else float(written))
    if not re.fullmatch(r"0?\.\d+", share := written.removeprefix(PREFIX)) or float(share) == 0:
        raise ValueError(f"{written} is no level")
    return RecoveryTarget(float(share))


def noise_in(record: Mapping[str, object]) -> NoiseSetting:
    """Return how the noise of a run is set, from a record of the run's figures."""
    epsilon = float(str(record["epsilon"]))
    if record.get("level") is None:
        return BaseEpsilon(epsilon)
    return RecoveryTarget(float(str(record["level"])), epsilon)


def stage_name(stage: str, mechanism: str, strategy: str, noise: NoiseSetting) -> str:
    """Return the name that DVC gives to the stage that processes one run; sentences of a bank have
    stages of their own, one for each level.
    """
    if strategy not in SEGMENTATION_OF:
        return f"{stage}_sentences@{noise}"
    return f"{stage}@{mechanism}-{strategy}-{noise}"
