"""Script that has DVC bring one stage up to date (`python -m flows.repro STAGE`), and writes the
outcome to a file.

The flow runs this module as a process of its own, because the flow must be able to end the stage.
The output of the process is the output of the stage.
"""

from __future__ import annotations

import re
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dvc.exceptions import ReproductionError
from dvc.stage.cache import StageCache
from dvc.stage.exceptions import StageCmdFailedError

from lexveil.base.errors import LexveilError, advised
from lexveil.base.runtime.crash import hide_messages
from lexveil.base.runtime.dvc_graph import open_repo
from lexveil.base.runtime.project import LOGS
from lexveil.base.runtime.tables import read_object, write_json

NOT_IN_A_FILE_NAME = re.compile(r"[^\w@.-]")
# DVC's exception has the exit code of a stage's command only in its message.
EXIT_CODE = re.compile(r"exited with (-?\d+)$")


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """Outcome of bringing one stage up to date.

    Attributes:
        state: "ran", "cached" (nothing had changed), "restored" (from the run cache) or "failed".
        error: DVC's message, if something other than the stage's command failed.
        code: exit code of the stage's command, if it failed; negative after a signal.
    """

    state: str = "failed"
    error: str = ""
    code: int | None = None

    def failure(self, last_line: str, stage: str) -> tuple[str, int]:
        """Return the error message and the exit code of a stage that failed.

        Args:
            last_line: the last line that the stage printed, which states the reason.
            stage: name of the stage.
        """
        return advised(self._reason(last_line, stage)), 2 if self.code == 2 else 1

    def _reason(self, last_line: str, stage: str) -> str:
        if self.code is None:
            return self.error or f"DVC ended without a result; its output is in {log_of(stage)}"
        # -9 if the command killed itself, 128 + 9 if its shell reports the signal
        if self.code in (-signal.SIGKILL, 128 + signal.SIGKILL):
            return (
                "the stage was killed (signal 9), perhaps because memory ran out; its output "
                f"is in {log_of(stage)}"
            )
        return last_line or f"the stage ended with code {self.code} without a message"


class NotedCache(StageCache):  # type: ignore[misc]
    """DVC's run cache (results of earlier runs), which also records whether it restored the outputs
    of a stage.
    """

    has_restored = False

    def restore(self, *arguments: Any, **options: Any) -> None:
        """Restore the outputs of a stage if DVC knows an earlier run with the same inputs, and
        record that it did.
        """
        super().restore(*arguments, **options)
        self.has_restored = True


def command(stage: str) -> list[str]:
    """Return the command line that brings one stage up to date, and delete the recorded outcome of
    an earlier command.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    _outcome_file(stage).unlink(missing_ok=True)
    return [sys.executable, "-m", "flows.repro", stage]


def outcome(stage: str) -> StageOutcome:
    """Read the outcome of a command that has ended; "failed" without a reason if the command was
    killed before it could write its outcome.
    """
    return StageOutcome(**read_object(_outcome_file(stage)))


def log_of(stage: str) -> Path:
    """Return the path of the log file with the output lines of a stage's last run."""
    return LOGS / f"{NOT_IN_A_FILE_NAME.sub('-', stage)}.log"


def _outcome_file(stage: str) -> Path:
    return log_of(stage).with_suffix(".json")


def reproduce(stage: str) -> StageOutcome:
    """Bring a stage up to date with DVC, and return the outcome."""
    try:
        with open_repo() as repo:
            repo.stage_cache = NotedCache(repo)
            try:
                has_changed = repo.reproduce(stage, single_item=True)
            except ReproductionError as error:
                return _failed(error.__cause__ or error)
            if repo.stage_cache.has_restored:
                return StageOutcome("restored")
            return StageOutcome("ran" if has_changed else "cached")
    except LexveilError as error:
        return StageOutcome(error=str(error))


def _failed(cause: BaseException) -> StageOutcome:
    text = " ".join(str(cause).split())
    if isinstance(cause, StageCmdFailedError) and (match := EXIT_CODE.search(text)):
        return StageOutcome(code=int(match[1]))
    return StageOutcome(error=text)


def main() -> int:
    """Bring the stage that the command line names up to date, and write the outcome."""
    hide_messages()
    stage = sys.argv[1]
    try:
        result = reproduce(stage)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    write_json(asdict(result), _outcome_file(stage))
    return int(result.state == "failed")


if __name__ == "__main__":
    sys.exit(main())
