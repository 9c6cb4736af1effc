"""One stage's entry in dvc.lock is read and written as DVC itself would."""

import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
from dvc.utils.serialize import dumps_yaml, loads_yaml

from lexveil.lineage.lock_text import HEAD, cut, joined
from tests.flows.scratch_project import Project

LOCK = Path(__file__).parents[2] / "dvc.lock"


def test_the_entries_are_the_bytes_that_dvc_writes() -> None:
    text = LOCK.read_text(encoding="utf-8")
    entries = cut(text)
    assert entries is not None and joined(entries) == text
    stages = loads_yaml(text)["stages"]
    assert list(entries) == list(stages)
    assert all(loads_yaml(HEAD + entry)["stages"] == {name: stages[name]} for name, entry in entries.items())
    report = {**stages["report"], "cmd": "echo 'a: b'\n\n# c"}
    changed = {**stages, "report": report, "new@a-1.0": deepcopy(stages["baseline"])}
    ours = entries | {
        name: dumps_yaml({"stages": {name: changed[name]}}).removeprefix("stages:\n")
        for name in ("report", "new@a-1.0")
    }
    assert joined(ours) == dumps_yaml({"schema": "2.0", "stages": changed})


@pytest.mark.parametrize(
    "text",
    [
        "schema: '2.0'\n",
        HEAD + "  a:\n    cmd: x\ndatasets:\n- name: b\n",
        HEAD + "  a:\n    cmd: x",
        HEAD + "  'a: b':\n    cmd: x\n",
        HEAD + "  a:\n    cmd: x\n  a:\n    cmd: y\n",
        HEAD + "<<<<<<< ours\n  a:\n    cmd: x\n",
    ],
)
def test_a_file_of_another_form_is_left_to_dvc(text: str) -> None:
    assert cut(text) is None


def test_an_empty_file_has_no_entries() -> None:
    assert cut("") == {}


@pytest.mark.parametrize("head", ["", "# kept by DVC's own writer\n"])
def test_a_stage_leaves_the_lock_that_dvc_leaves(built: Project, head: str) -> None:
    lock = built.root / "dvc.lock"
    lock.write_text(head + lock.read_text())
    before = lock.read_text()
    source = built.root / "src.txt"
    source.write_text("other words\n")
    built.dvc("repro", "--single-item", "first")
    wanted = lock.read_text()
    assert wanted != before
    lock.write_text(before)
    built.dvc("checkout", "--force")
    done = subprocess.run([sys.executable, "-m", "flows.dvc_stage", "first"], cwd=built.root, check=True, text=True)
    assert (done.returncode, lock.read_text()) == (0, wanted)
    assert not list(built.root.glob(".dvc.lock.*"))
