"""Attacks on what is published, each of which recovered something once: they must fail now.

Each is a script: `python tests/attacks/NAME.py PROJECT_FOLDER` prints what it recovered and ends with exit code 1 if it
succeeds, 0 if it fails; it runs with the interpreter of any commit and uses only the command line and Lexveil's API.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from unittest import mock

import pytest

FOLDER = Path(__file__).parent
ATTACKS: list[str] = [  # a name a line
    "ledger_edit",
    "ledger_reset",
    "no_guarantee",
    "private_average",
    "retry_gate",
    "short_text",
    "who_is_who",
    "record_statistics",
    "release_ids",
]


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attack_fails(name: str, listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [name, str(listed)])
    with mock.patch.dict(os.environ), pytest.raises(SystemExit) as end:
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert end.value.code == 0
