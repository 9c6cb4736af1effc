"""A fault of the program shows where it was, and never what an exception says: that may be a
text."""

import subprocess
import sys
from pathlib import Path

import pytest

from lexveil.base.errors import RequestError
from lexveil.io.execution.stage import stage_main

CANARY = "Zanzibar"
FAILS = f"""
import logging, sys
import {{module}} as module
def breaks(*_):
    try:
        {{{{}}}}["{CANARY[:4]}" + "{CANARY[4:]}"]
    except KeyError as error:
        error.add_note("{CANARY[:4]}" + "{CANARY[4:]}")
        raise ValueError(str(error)) from error
def logs(*_):
    closed = open(__file__)
    closed.close()
    logging.getLogger().addHandler(logging.StreamHandler(closed))
    try:
        breaks()
    except ValueError:
        logging.warning("released")
    breaks()
{{call}}
"""
ENTRIES = {
    "a command": (
        "lexveil.faces.cli.main",
        "module._answer = breaks; sys.exit(module.main(['report']))",
    ),
    "a stage": ("lexveil.io.execution.stage", "module.stage_main(breaks)"),
    "a release of a flow": (
        "flows.archive_release",
        "module.release = breaks; sys.exit(module.main())",
    ),
    # Logging prints the exception of a failed handler after the one that was being handled, with
    # both messages.
    "a log handler": (
        "lexveil.faces.cli.main",
        "module._answer = logs; sys.exit(module.main(['report']))",
    ),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_fault_is_shown_without_its_message(entry, tmp_path):
    module, call = ENTRIES[entry]
    (tmp_path / "fails.py").write_text(FAILS.format(module=module, call=call))
    command = [sys.executable, tmp_path / "fails.py"]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1 and CANARY not in done.stdout + done.stderr
    assert "fails.py" in done.stderr and "KeyError" in done.stderr and "ValueError" in done.stderr


def test_the_last_line_of_a_stage_is_its_error(capsys):
    def fails():
        raise RequestError("no such\nkey")

    with pytest.raises(SystemExit) as ended:
        stage_main(fails)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "RequestError: no such key\n"
