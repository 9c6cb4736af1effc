"""What the lines of `dvc repro` tell about how a stage went.

DVC has no other way to say it: `dvc repro` has no JSON, its Python API does not tell a stage that ran from one that was
restored from the run cache, and the exit code of a stage's command stands only in the text of an exception. The stage
itself sends events; see lexveil.runtime.events.
"""

from __future__ import annotations

import re
import signal

from lexveil.errors import advised
from lexveil.runtime.events import ErrorEvent
from lexveil.runtime.project import LOGS

STAGE_ERROR = re.compile(r"ERROR: failed to reproduce '[^']*': (.*)")
ANY_ERROR = re.compile(r"ERROR: (.*)")
EXIT_CODE = re.compile(r"exited with (-?\d+)$")
# What DVC says about itself and not about the stage.
HINTS = re.compile(
    r"To track the changes with git, run:|\s+git add .*|To enable auto staging, run:|\s+dvc config core\.autostage true"
    r"|Use `dvc push` to send .*|(?:Updating|Generating) lock file .*|Data and pipelines are up to date\."
)
NOT_IN_A_FILE_NAME = re.compile(r"[^\w@.-]")


class DvcOutputParser:
    """Reads the lines of `dvc repro` for one stage.

    Attributes:
        log: the file for them.
        state: "ran", "cached" (nothing had changed) or "restored" (from the run cache).
    """

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.log = LOGS / f"{NOT_IN_A_FILE_NAME.sub('-', stage)}.log"
        self.state = "ran"
        self._error = ""
        self._code: int | None = None  # of the stage's command; DVC itself always ends with 255

    def read(self, stream: str, line: str) -> bool:
        """Read a line of "out" or "err"; return whether it is worth showing."""
        if stream == "out":
            if line.endswith("' didn't change, skipping"):
                self.state = "cached"
            elif line.startswith(f"Stage '{self.stage}' is cached - skipping run"):
                self.state = "restored"
        elif match := STAGE_ERROR.match(line):
            self._error = match[1]
            if exited := EXIT_CODE.search(line):
                self._code = int(exited[1])
        elif match := ANY_ERROR.match(line):
            self._error = self._error or match[1]
        return not HINTS.fullmatch(line)

    def failure(self, code: int, error: ErrorEvent | None) -> tuple[str, int]:
        """Return message and exit code of a stage that failed.

        Args:
            code: DVC's own.
            error: what the stage sent; without it the message is DVC's, or says how the stage ended and where its
                output is.
        """
        if error is not None:
            return advised(f"{error.type}: {error.message}"), error.exit_code
        return advised(self._ended(code)), 2 if self._code == 2 else 1

    def _ended(self, code: int) -> str:
        if self._code is None:
            return self._error or f"DVC ended with code {code}; its output is in {self.log}"
        number = -self._code if self._code < 0 else self._code - 128  # killed itself, or reported so by its shell
        if number == signal.SIGKILL:
            return f"the stage was killed (signal 9), as when memory runs out; its output is in {self.log}"
        return f"the stage ended with code {self._code} and no error; its output is in {self.log}"
