"""A fault of the program shows where it was, and never what an exception says: that may be a text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lexveil.runtime.crash import crash_report

CANARY = "Zanzibar"
FAILS = f"""
import sys
import {{module}} as module
def breaks(*_):
    try:
        {{{{}}}}["{CANARY[:4]}" + "{CANARY[4:]}"]
    except KeyError as error:
        error.add_note("{CANARY[:4]}" + "{CANARY[4:]}")
        raise ValueError(str(error)) from error
{{call}}
"""
ENTRIES = {
    "a command": ("lexveil.cli.main", "module._answer = breaks; sys.exit(module.main(['report']))"),
    "a stage": ("lexveil.runtime.stage", "module.stage_main(breaks)"),
    "a release of a flow": ("flows.archive_release", "module.release = breaks; sys.exit(module.main())"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_fault_is_shown_without_its_message(entry: str, tmp_path: Path) -> None:
    module, call = ENTRIES[entry]
    (tmp_path / "fails.py").write_text(FAILS.format(module=module, call=call))
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, tmp_path / "fails.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1 and CANARY not in done.stdout + done.stderr
    assert "fails.py" in done.stderr and "KeyError" in done.stderr and "ValueError" in done.stderr


def test_a_report_names_every_exception_once() -> None:
    try:
        raise KeyError(CANARY)
    except KeyError as error:
        error.__context__ = ValueError(CANARY)
        error.__context__.__context__ = error  # a circle ends
        report = crash_report(error)
    assert CANARY not in report and report.count("KeyError in ") == 1 == report.count("ValueError in ")


def test_a_log_handler_that_fails_does_not_show_what_is_being_handled(tmp_path: Path) -> None:
    """Logging prints the exception of a failed handler after the one that was being handled, with both messages."""
    (tmp_path / "fails.py").write_text(
        "import logging\n"
        "from lexveil.cli import main\n"
        "main.main(['--version'])\n"
        "closed = open(__file__)\n"
        "closed.close()\n"
        "logging.getLogger().addHandler(logging.StreamHandler(closed))\n"
        "try:\n"
        f"    raise KeyError('{CANARY}')\n"
        "except KeyError:\n"
        "    logging.warning('released')\n"
    )
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, tmp_path / "fails.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert CANARY not in done.stdout + done.stderr
