"""Mechanisms of another package: found by its entry points, run, and never called proven."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.asking import ESTIMATE_QUICKLY

ROOT = Path(__file__).parents[2]
PACKAGE = Path(__file__).parent / "installed_package"
COMMAND = f"""{ESTIMATE_QUICKLY}
import sys
from lexveil.faces.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
HOW = ("--strategy", "S1", "--epsilon", "5", "--max-token-epsilon", "5", "--model", "toy")


def lexveil(*arguments):
    """The command in a process of its own, where the package is installed."""
    path = os.pathsep.join([str(ROOT), str(PACKAGE)])
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(autouse=True)
def texts(outside):
    (outside / "in.csv").write_text("id,text\n1,The government said no.\n", encoding="utf-8")


def test_it_runs_and_its_record_says_that_nothing_is_proven(outside):
    """A mechanism of another package is released without a guarantee only,
    whatever its class claims."""
    refused = lexveil("privatize", "in.csv", "-o", "out.csv", "--mechanism", "mine", *HOW)
    assert refused.returncode == 2
    assert "not proven: the mechanism comes from the package lexveil-mine 2.1" in refused.stderr
    done = lexveil(
        "privatize", "in.csv", "-o", "out.csv", "--mechanism", "mine", *HOW, "--without-guarantee"
    )
    assert done.returncode == 0, done.stderr
    (written,) = outside.glob("out*.record.json")
    record = json.loads(written.read_text(encoding="utf-8"))
    assert record["mechanism"] == "mine" and record["guarantee"]["formula"] == "none"
    assert record["no_proof"] == "not proven: the mechanism comes from the package lexveil-mine 2.1"
    assert "no-guarantee" in written.name
    (page,) = outside.glob("out*.statement.txt")
    assert "not proven" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("other", "lexveil_mine:Other is not a mechanism of that name"),
        ("broken", "cannot be imported (ModuleNotFoundError); repair or uninstall the package"),
        ("none_such", "mine"),  # the list of what there is has it
    ],
)
def test_what_is_no_mechanism_is_refused_when_it_is_asked_for(name, said):
    refused = lexveil("privatize", "in.csv", "-o", "out.csv", "--mechanism", name, *HOW)
    assert refused.returncode == 2 and said in refused.stderr and "Traceback" not in refused.stderr


def test_no_package_takes_the_name_of_a_mechanism_of_ours(outside):
    done = lexveil("privatize", "in.csv", "-o", "out.csv", "--mechanism", "tem", *HOW)
    assert done.returncode == 0, done.stderr
    record = json.loads((outside / "out.csv.record.json").read_text(encoding="utf-8"))
    assert record["guarantee"]["formula"] != "none" and record["no_proof"] is None
