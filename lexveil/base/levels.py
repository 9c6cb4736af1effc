"""Noise settings of a run of the experiment grid, and the names of runs.

A run of the grid combines a mechanism, a strategy and a noise setting. The noise setting is either
a base epsilon or a recovery level, which is the share of words that an adversary may recover. The
classes of both have the same methods. If only a recovery level has a value, the method of a base
epsilon returns None or an empty mapping.
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
    """Noise setting of a run that is given as a base epsilon per word.

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
        """Return the form of this setting in paths, stage names and params.yaml."""
        return str(self.value)

    def __lt__(self, other: NoiseSetting) -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[int, float]:
        """Sort key of this setting among the runs of one mechanism and strategy. Base epsilons
        precede recovery levels.
        """
        return 0, self.value

    @property
    def epsilon(self) -> float:
        """The base epsilon as a float, which records contain."""
        return float(self.value)

    @property
    def number(self) -> float:
        """Position of the run on the axis of a chart, which is the base epsilon."""
        return self.value

    @property
    def parameter(self) -> float:
        """The value of this setting in params.yaml, which is the base epsilon."""
        return float(self.value)

    @property
    def level_entry(self) -> dict[str, float]:
        """Return an empty mapping, because only a recovery level adds an entry to records."""
        return {}

    @property
    def short(self) -> str:
        """The base epsilon as a short text, such as 0.5, 1 or 50; the text of the clean baseline is
        a dash.
        """
        return f"{self.value:g}" if self.value else MISSING

    @property
    def text(self) -> str:
        """The base epsilon as the text of a table cell, such as 0.5."""
        return self.short

    @property
    def title(self) -> str:
        """The base epsilon as a part of a run's title, such as ε 0.5."""
        return f"ε {self.short}"


@dataclass(frozen=True, slots=True)
class RecoveryTarget:
    """Noise setting of a run that is given as a recovery level: the share of words that an
    adversary is expected to recover. The epsilon of the run is calibrated for this share.

    A recovery level is written with a prefix, so that its folder differs from the folder of an
    epsilon.

    Attributes:
        share: the share, between 0 and 1.
        epsilon: epsilon of each replaced token, calibrated for the share on public data; None until
            the budget plan of the run is read. Two levels of the same share are equal, whatever
            their epsilon.
        is_level: always True.
    """

    share: float
    epsilon: float | None = field(default=None, compare=False)
    is_level: ClassVar[Literal[True]] = True

    def __str__(self) -> str:
        """Return the form of this setting in paths, stage names and params.yaml."""
        return f"{PREFIX}{self.share}"

    def __lt__(self, other: NoiseSetting) -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[int, float]:
        """Sort key of this setting among the runs of one mechanism and strategy. Base epsilons
        precede recovery levels.
        """
        return 1, self.share

    @property
    def number(self) -> float:
        """Position of the run on the axis of a chart, which is the share of recovered words."""
        return self.share

    @property
    def parameter(self) -> str:
        """The value of this setting in params.yaml, for example r0.2."""
        return str(self)

    @property
    def level_entry(self) -> dict[str, float]:
        """Return the entry that this recovery level adds to records: its share, under the key
        ``level``.
        """
        return {"level": self.share}

    @property
    def short(self) -> str:
        """The share as a short text in percent, such as 5% or 0.5%."""
        return f"{100 * self.share:g}%"

    @property
    def text(self) -> str:
        """The recovery level as the text of a table cell, with its epsilon if the epsilon is known,
        such as 20%, ε 8.11.
        """
        return self.short if self.epsilon is None else f"{self.short}, ε {self.epsilon:.3g}"

    @property
    def title(self) -> str:
        """The recovery level as a part of a run's title, such as 20%, ε 8.11."""
        return self.text


NoiseSetting = BaseEpsilon | RecoveryTarget
GridRun = tuple[str, str, NoiseSetting]  # mechanism, strategy, and how its noise is set


def parse_noise(written: str) -> NoiseSetting:
    """Parse a noise setting, which is a base epsilon or a recovery level, from its form in
    params.yaml and in the names of runs.

    Raises:
        ValueError: if ``written`` is neither an epsilon nor a recovery level.
    """
    if not written.startswith(PREFIX):
        return BaseEpsilon(int(written) if written.isdecimal() else float(written))
    if not re.fullmatch(r"0?\.\d+", share := written.removeprefix(PREFIX)) or float(share) == 0:
        raise ValueError(f"{written} is not a level")
    return RecoveryTarget(float(share))


def noise_in(record: Mapping[str, object]) -> NoiseSetting:
    """Return the noise setting of a run, a base epsilon or a recovery level, from a record of the
    run.
    """
    epsilon = float(str(record["epsilon"]))
    if record.get("level") is None:
        return BaseEpsilon(epsilon)
    return RecoveryTarget(float(str(record["level"])), epsilon)


def stage_name(stage: str, mechanism: str, strategy: str, noise: NoiseSetting) -> str:
    """Return the DVC name of the stage that processes one run of the grid. The stages for the
    sentence bank have other names, one for each recovery level.
    """
    if strategy not in SEGMENTATION_OF:
        return f"{stage}_sentences@{noise}"
    return f"{stage}@{mechanism}-{strategy}-{noise}"
