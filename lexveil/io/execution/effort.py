"""Estimates of the time and memory of long stages, from counts that are known in advance. A stage
that would take too long is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lexveil.base.errors import RequestError
from lexveil.base.logs import logger
from lexveil.io.config import MachineParams

LOG = logger(__name__)


class Rate(NamedTuple):
    """Cost of a unit of work: seconds of one core, and bytes of memory while the stage runs."""

    seconds: float
    bytes: float = 0.0


# Measured on servers of 2025 (docs/reference/benchmarks.md). On other machines they may be wrong
# by a factor of two.
RATES = {
    "tokens counted": Rate(1.1e-6),
    # per epoch, with a window of 5 and 5 negative samples
    "token dimensions trained": Rate(7.7e-8),
    "vector dimensions trained": Rate(0.0, 19.0),
    "distances listed": Rate(4.5e-11),  # per dimension, like the next two rates
    "distances ordered": Rate(1e-10),
    "distances searched": Rate(2e-11),  # products of 8-bit numbers take half of that
    "words listed": Rate(0.0, 1e4),
    "tokens rewritten": Rate(1e-5),
    "texts scored": Rate(2e-4),  # per training of a linear classifier
    "tokens named": Rate(2e-4),  # for an adversary who sees the output
}
LIBRARIES = 0.5e9  # bytes of memory of a process after its imports


def foresee(
    what: str, work: Mapping[str, float], way_out: str, machine: MachineParams, cores: int = 1
) -> None:
    """Print the estimated time and memory of a stage before it begins, if it takes a minute or
    more.

    Args:
        what: description of the work, with its counts.
        work: number of units by the names of ``RATES``.
        way_out: advice about parameters that reduce the work.
        machine: settings with the limit.
        cores: number of cores that share the work.

    Raises:
        RequestError: if the estimate is above ``machine.stage_minutes``.
    """
    minutes = sum(n * RATES[kind].seconds for kind, n in work.items()) / 60 / cores
    gigabytes = (LIBRARIES + sum(n * RATES[kind].bytes for kind, n in work.items())) / 1e9
    estimate = f"{what}: about {minutes:,.0f} minutes, {gigabytes:.1f} GB of memory"
    if machine.stage_minutes is not None and minutes > machine.stage_minutes:
        raise RequestError(
            f"{estimate}, by estimate, but lexveil.toml: machine.stage_minutes allows "
            f"{machine.stage_minutes:,}. {way_out}, or raise the limit"
        )
    if minutes >= 1:
        LOG.info(estimate)
