"""The two ways to set the noise of a run, base epsilons and levels of recovery; and the names of
runs.

A run of the grid is a mechanism, a strategy, and either a base epsilon or a level. The classes of
both have the same methods. Where only a level has a value, the method of a base epsilon returns
None or an empty mapping.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

# segmentation of each strategy
SEGMENTATION_OF = {"S1": "word", "S2": "gst", "S3": "gst", "S4": "mst"}
PREFIX = "r"  # prefix of a level in params.yaml and in names of files and runs: r0.2
MISSING = "–"  # printed for a missing number


@dataclass(frozen=True, slots=True)
class BaseEpsilon:
    """Base epsilon per word of a run.

    Attributes:
        value: the number as params.yaml writes it. The values 10 and 10.0 are equal, but DVC keeps
            the written form in the names of stages and files. The clean baseline has the value 0.
        is_level: always False.
        share: always None; only a level states a share of words.
    """

    value: float
    is_level: ClassVar[Literal[False]] = False
    share: ClassVar[None] = None

    def __str__(self) -> str:
        """Return the name in paths, in names of stages, and in params.yaml."""
        return str(self.value)

    def __lt__(self, other: NoiseSetting) -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[int, float]:
        """Sort key among the runs of a mechanism and strategy; base epsilons come before levels."""
        return 0, self.value

    @property
    def epsilon(self) -> float:
        """The base epsilon as a float, which records contain."""
        return float(self.value)

    @property
    def number(self) -> float:
        """Position of the run on an axis of a chart: the base epsilon."""
        return self.value

    @property
    def parameter(self) -> float:
        """The base epsilon as a value of params.yaml."""
        return float(self.value)

    @property
    def level_entry(self) -> dict[str, float]:
        """Entry that records have for a level; empty for a base epsilon."""
        return {}

    @property
    def short(self) -> str:
        """The base epsilon as a short text: 0.5, 1, 50; a dash for the clean baseline."""
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
    """Level of recovery: the share of words that an adversary is expected to recover from a run.
    The epsilon of the run is calibrated for this share.

    A level is written with a prefix, so that its folder differs from the folder of an epsilon.

    Attributes:
        share: the share, between 0 and 1.
        epsilon: epsilon of each replaced token, calibrated for the share on public data; None until
            the plan is read. Two levels of the same share are equal, whatever their epsilon.
        is_level: always True.
    """

    share: float
    epsilon: float | None = field(default=None, compare=False)
    is_level: ClassVar[Literal[True]] = True

    def __str__(self) -> str:
        """Return the name in paths, in names of stages, and in params.yaml."""
        return f"{PREFIX}{self.share}"

    def __lt__(self, other: NoiseSetting) -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[int, float]:
        """Sort key among the runs of a mechanism and strategy; base epsilons come before levels."""
        return 1, self.share

    @property
    def number(self) -> float:
        """Position of the run on an axis of a chart: the share."""
        return self.share

    @property
    def parameter(self) -> str:
        """The level as a value of params.yaml, for example r0.2."""
        return str(self)

    @property
    def level_entry(self) -> dict[str, float]:
        """Entry that records have for a level: the share, under the key ``level``."""
        return {"level": self.share}

    @property
    def short(self) -> str:
        """The share in percent as a short text: 5%, 0.5%."""
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
GridRun = tuple[str, str, NoiseSetting]  # mechanism, strategy, and how its noise is set


def parse_noise(written: str) -> NoiseSetting:
    """Parse a base epsilon or a level as params.yaml and the names of runs write it.

    Raises:
        ValueError: if ``written`` is neither an epsilon nor a level.
    """
    if not written.startswith(PREFIX):
        return BaseEpsilon(int(written) if written.isdecimal() else float(written))
    if not re.fullmatch(r"0?\.\d+", share := written.removeprefix(PREFIX)) or float(share) == 0:
        raise ValueError(f"{written} is not a level")
    return RecoveryTarget(float(share))


def noise_in(record: Mapping[str, object]) -> NoiseSetting:
    """Return the base epsilon or the level of a run from a record of the run's figures."""
    epsilon = float(str(record["epsilon"]))
    if record.get("level") is None:
        return BaseEpsilon(epsilon)
    return RecoveryTarget(float(str(record["level"])), epsilon)


def stage_name(stage: str, mechanism: str, strategy: str, noise: NoiseSetting) -> str:
    """Return DVC's name for the stage that processes one run. Stages for sentences of a bank have
    other names, one for each level.
    """
    if strategy not in SEGMENTATION_OF:
        return f"{stage}_sentences@{noise}"
    return f"{stage}@{mechanism}-{strategy}-{noise}"
