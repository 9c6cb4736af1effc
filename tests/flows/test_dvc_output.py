"""What is read out of the lines of `dvc repro`."""

from __future__ import annotations

import pytest

from flows.dvc_output import DvcOutputParser

ERROR = "ERROR: failed to reproduce 'check': failed to run: python -m tasks.check, exited with "


@pytest.mark.parametrize(
    ("lines", "message", "code"),
    [
        (["2 of 3", "CheckFailed: 2 of 3 hold", ERROR + "1"], "CheckFailed: 2 of 3 hold", 1),
        (["RequestError: no such key", ERROR + "2"], "RequestError: no such key", 2),
        (["2 of 3", ERROR + "137"], "the stage was killed (signal 9), as when memory runs out; its output is in", 1),
        (["2 of 3", ERROR + "-9"], "the stage was killed (signal 9)", 1),
        (["Running stage 'check':", "> python -m tasks.check", ERROR + "3"], "the stage ended with code 3", 1),
        (["OSError: [Errno 28] No space left on device", ERROR + "1"], "free some space on that disk, and run", 1),
        (["ERROR: failed to reproduce 'check': [Errno 30] Read-only file system"], "make it writable", 1),
        (["ERROR: Unable to acquire lock", "ERROR: another"], "Unable to acquire lock", 1),
        ([], "DVC ended with code 255", 1),
    ],
)
def test_failures(lines: list[str], message: str, code: int) -> None:
    parser = DvcOutputParser("check")
    assert all(parser.read(line) for line in lines)
    said, exit_code = parser.failure(255)
    assert message in said and exit_code == code
