"""Entry point of stages: command-line arguments, errors and progress. If a stage fails, its last
line of output states the reason.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.levels import GridRun, parse_noise
from lexveil.base.logs import logger, messages_on_stderr
from lexveil.base.runtime.arrow import keep_pandas_out
from lexveil.base.runtime.crash import hide_messages

LOG = logger(__name__)


def stage_main(main: Callable[[], None], *, pandas: bool = True) -> None:
    """Run the main function of a stage. A known error becomes one line on stderr and an exit code.

    Args:
        pandas: whether the stage uses pandas. If not, importing pandas is disabled, because it
            takes half a second. The stage must then run in a process of its own.
    """
    hide_messages()
    with messages_on_stderr():
        try:
            if not pandas:
                keep_pandas_out(of_process=True)
            main()
        except LexveilError as error:
            LOG.error(f"{type(error).__name__}: {' '.join(str(error).split())}")
            sys.exit(error.exit_code)


def named_run(usage: str) -> GridRun:
    """Return the run of the grid that the command line names by mechanism, strategy and noise
    setting.

    Raises:
        RequestError: if there are not three words, or the last word is neither a number nor a
            recovery level; the message is ``usage``.
    """
    try:
        mechanism, strategy, noise = sys.argv[1:]
        return mechanism, strategy, parse_noise(noise)
    except ValueError:
        raise RequestError(usage) from None


def named_segmentation(stage: str) -> str:
    """Return the segmentation from the command line of a stage.

    Raises:
        RequestError: if the command line does not name a segmentation.
    """
    if len(sys.argv) != 2:
        raise RequestError(f"usage: python -m tasks.{stage} word|gst|mst")
    return sys.argv[1]


# function that is called with the number of finished units, and with their total if it is known
Watch = Callable[[int, int | None], object]


class Progress:
    """Progress of a long loop, which is logged at most once in ``every`` seconds.

    The remaining time is estimated from the work after the first units. Before the first units are
    finished, libraries, lists and compiled code are loaded, and results of a stopped run appear at
    once.

    Args:
        label: name of the loop.
        total: units of work; 0 if not known.
        unit: name of the unit, in the plural.
        every: seconds between two reports.
        watch: function that is called at each step, instead of logging lines.
    """

    def __init__(
        self,
        label: str,
        total: int,
        unit: str,
        every: float = 5.0,
        watch: Watch | None = None,
    ) -> None:
        self.watch = watch
        self.label = label
        self.total = total
        self.unit = unit
        self.every = every
        self.start = self.last = time.monotonic()
        self.done = 0
        self.work = 0
        self.note = ""
        # time at which the first units were finished, and their number
        self._begun: tuple[float, int] | None = None

    def advance(self, done: int, work: int = 0, note: str = "") -> None:
        """Add ``done`` units with ``work`` tokens. Reports contain ``note`` from now on."""
        self.done += done
        self.work += work
        self.note = note or self.note
        if self.watch is not None:
            self.watch(self.done, self.total or None)
            return
        now = time.monotonic()
        is_due = now - self.last >= self.every
        if self._begun is None:
            self._begun = now, self.done
            self.last = now  # so that the next report is based on ``every`` seconds of work
        if is_due:
            self.last = now
            self._report(now)

    def finish(self) -> None:
        """Report the end of the loop."""
        self._report(time.monotonic())

    def _report(self, now: float) -> None:
        elapsed = max(now - self.start, 1e-9)
        share = f"{self.done:,} of {self.total:,}" if self.total else f"{self.done:,}"
        line = f"{self.label}: {share} {self.unit}"
        if self.note:
            line += f", {self.note}"
        if self.work:
            line += f", {self.work / elapsed:,.0f} tokens/s"
        begin, n_first = self._begun or (now, self.done)
        if n_first < self.done < self.total:
            left = (now - begin) * (self.total - self.done) / (self.done - n_first)
            line += f", about {left:.0f} s left"
        LOG.info(line)
