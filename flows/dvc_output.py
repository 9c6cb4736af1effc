"""What the lines of `dvc repro`, and of the stage inside it, tell about how the stage went."""

from __future__ import annotations

import re
import signal

from lexveil.errors import advised
from lexveil.runtime.project import LOGS

# The line by which a stage says what went wrong: `CheckFailed: ...`, or the last line of a traceback.
ERROR_LINE = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*[a-z]\w*: \S")
DVC_ERROR = re.compile(r"ERROR: failed to reproduce '[^']*': (.*)")
ANY_DVC_ERROR = re.compile(r"ERROR: (.*)")
DVC_EXIT = re.compile(r"exited with (-?\d+)$")
# What DVC says about itself and not about the stage.
DVC_HINTS = re.compile(
    r"To track the changes with git, run:|\s+git add .*|To enable auto staging, run:|\s+dvc config core\.autostage true"
    r"|Use `dvc push` to send .*|(?:Updating|Generating) lock file .*|Data and pipelines are up to date\."
)
NOT_IN_A_FILE_NAME = re.compile(r"[^\w@.-]")


class DvcOutputParser:
    """What can be learned from the lines of `dvc repro` and the stage inside it."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.log = LOGS / f"{NOT_IN_A_FILE_NAME.sub('-', stage)}.log"
        self.state = "ran"
        self.exit_code = 1
        self._error = self._dvc = ""
        self._code: int | None = None

    def hear(self, stream: str, line: str) -> bool:
        """Take in a line of "out" or "err"; return whether it is worth showing."""
        if stream == "out":
            if line.endswith("' didn't change, skipping"):
                self.state = "cached"
            elif line.startswith(f"Stage '{self.stage}' is cached - skipping run"):
                self.state = "restored"
        elif found := DVC_ERROR.match(line):
            self._dvc = found[1]
            if exited := DVC_EXIT.search(line):
                # DVC itself always ends with 255; the stage's own code stands only here.
                self._code = int(exited[1])
                self.exit_code = 2 if self._code == 2 else 1
        elif found := ANY_DVC_ERROR.match(line):
            self._dvc = self._dvc or found[1]
        elif ERROR_LINE.match(line):
            self._error = line.strip()
        return not DVC_HINTS.fullmatch(line)

    def error(self, code: int) -> str:
        """Return one line: the stage's own words, or else DVC's, or else how it ended and where its output is."""
        return advised(self._ended(code))

    def _ended(self, code: int) -> str:
        if self._error:
            return self._error
        if self._code is None:
            return self._dvc or f"DVC ended with code {code}; its output is in {self.log}"
        number = -self._code if self._code < 0 else self._code - 128  # killed itself, or the shell around it tells
        if number == signal.SIGKILL:
            return f"the stage was killed (signal 9), as when memory runs out; its output is in {self.log}"
        return f"the stage ended with code {self._code} and no error line; its output is in {self.log}"
