"""Parser of the output of `dvc repro`, which tells how each stage ended.

DVC has no other interface for this: `dvc repro` has no JSON, its Python API does not distinguish a
stage that ran from one that was restored from the run cache, and only the text of an exception has
the exit code of a stage's command. The last line of a failed stage tells the reason.
"""

from __future__ import annotations

import re
import signal

from lexveil.errors import advised
from lexveil.runtime.project import LOGS

FAILED = re.compile(
    r"ERROR: failed to reproduce '[^']*': (?P<error>.*?)(?:exited with (?P<code>-?\d+))?"
)
# Lines of DVC that are not about the stage.
HINTS = re.compile(
    r"To track the changes with git, run:|\s+git add .*|To enable auto staging, run:|\s+dvc "
    r"config core\.autostage true"
    r"|Use `dvc push` to send .*|(?:Updating|Generating) lock file .*|Data and pipelines are "
    r"up to date\."
)
NOT_IN_A_FILE_NAME = re.compile(r"[^\w@.-]")


class DvcOutputParser:
    """Parser of the lines of `dvc repro` for one stage.

    Attributes:
        log: file for the lines.
        state: "ran", "cached" (nothing had changed) or "restored" (from the run cache).
    """

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.log = LOGS / f"{NOT_IN_A_FILE_NAME.sub('-', stage)}.log"
        self.state = "ran"
        self._last = ""  # last line of the stage
        self._error = ""
        self._code: int | None = None  # exit code of the stage; that of DVC is always 255

    def read(self, line: str) -> bool:
        """Parse a line; return whether it should be shown."""
        if line.endswith("' didn't change, skipping"):
            self.state = "cached"
        elif line.startswith(f"Stage '{self.stage}' is cached - skipping run"):
            self.state = "restored"
        elif match := FAILED.fullmatch(line):
            self._error, self._code = match["error"], int(match["code"]) if match["code"] else None
        elif line.startswith("ERROR: "):
            self._error = self._error or line.removeprefix("ERROR: ")
        elif not line.startswith(("Running stage '", "> ")):
            self._last = line
        return not HINTS.fullmatch(line)

    def failure(self, code: int) -> tuple[str, int]:
        """Return message and exit code of a stage whose `dvc repro` ended with ``code``."""
        return advised(self._reason(code)), 2 if self._code == 2 else 1

    def _reason(self, code: int) -> str:
        if self._code is None:
            return self._error or f"DVC ended with code {code}; its output is in {self.log}"
        # killed itself, or reported so by its shell
        number = -self._code if self._code < 0 else self._code - 128
        if number == signal.SIGKILL:
            return (
                "the stage was killed (signal 9), as when memory runs out; its output is "
                f"in {self.log}"
            )
        return self._last or f"the stage ended with code {self._code} and no word"
