"""Imports at startup: the libraries that are imported, never the time that they take."""

import json
import os
import subprocess
import sys

import pytest

from lexveil.base.runtime.graph_libraries import PACKAGES
from tests.asking import ESTIMATE_QUICKLY

pytestmark = pytest.mark.slow

# Neither starting nor a few texts need any of them.
HEAVY = ("scipy", *sorted(PACKAGES))

ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in NAMES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""

PRIVATIZE = """
import lexveil
done = lexveil.privatize(
    ["The fire burned for days, and the smoke hung over the city."],
    mechanism="tem_context", strategy="S3", epsilon=10.0, model="toy",
)
assert len(done.values) == 1 and done.values[0]
"""

COMMAND = """
from lexveil.faces.cli.main import main
options = ["--mechanism", "madlib", "--strategy", "S3", "--epsilon", "10", "--model", "toy"]
assert main(["privatize", "in.jsonl", "-o", "out.jsonl", *options]) == 0
"""

WITHOUT_PROJECT = """
import os
from lexveil.faces.cli.main import main
options = ["--mechanism", "tem", "--strategy", "S3", "--epsilon", "10", "--model", "toy"]
for line in (
    ["privatize", "in.jsonl", "-o", "out.jsonl", *options], ["inspect", "in.jsonl", *options],
    ["lineage", "out.jsonl"], ["ledger", "show"],
    ["ledger", "verify", "--record", "out.jsonl.record.json"], ["model", "list"],
    ["model", "show", "toy"], ["model", "verify", "toy"],
    ["model", "export", "toy", "-o", "toy.zip"],
):
    assert main(line) == 0, line
os.environ["LEXVEIL_HOME"] = os.path.abspath("another")
assert main(["model", "add", "toy.zip"]) == 0
import lexveil.auditing.audit
"""

OF_A_PROJECT = """
import os
from lexveil.faces.cli.main import main
assert main(["model", "build", "mine", "--corpus", "in.jsonl"]) == 2
assert main(["init", "demo"]) == 0
os.chdir("demo")
for verb in ("run", "ui", "schedule", "release"):
    assert main([verb]) == 2, verb
"""


def without(names, script, folder):
    """Run a script with these packages absent."""
    code = ABSENT.replace("NAMES", repr(tuple(names))) + script
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def imported(script, folder):
    """The top-level modules that a script has imported when it ends, with the heavy ones absent."""
    report = (
        "\nimport json, sys; print(json.dumps(sorted({name.partition('.')[0] for name "
        "in sys.modules})))"
    )
    return set(json.loads(without(HEAVY, script + report, folder).stdout.splitlines()[-1]))


def test_the_import_of_the_library_and_help_are_light(tmp_path):
    assert not {"numba", "numpy", "pyarrow", "pydantic", "yaml", "rich", "cyclopts"} & imported(
        "import lexveil", tmp_path
    )
    for verb in ([], ["privatize"], ["service"]):
        shown = f"from lexveil.faces.cli.main import main\nassert main({[*verb, '--help']}) == 0"
        assert not {"numba", "numpy", "pandas", "pyarrow", "fastapi"} & imported(shown, tmp_path)


def test_a_few_texts_need_nothing_of_the_graph(outside):
    """The request uses a packaged model outside any project, after its epsilon has been
    used once.
    """
    (outside / "in.jsonl").write_text('{"text": "The fire burned for days."}\n', encoding="utf-8")
    script = ESTIMATE_QUICKLY + PRIVATIZE + COMMAND
    without((), script, outside)
    for file in outside.glob("out.jsonl*"):
        file.unlink()
    assert "lexveil" in imported(script, outside)


def test_what_needs_no_project_needs_nothing_of_the_extra(outside):
    (outside / "in.jsonl").write_text('{"text": "The fire burned for days."}\n', encoding="utf-8")
    without(sorted(PACKAGES), ESTIMATE_QUICKLY + WITHOUT_PROJECT, outside)


def test_what_needs_the_extra_says_so_in_one_line(outside):
    (outside / "in.jsonl").write_text('{"text": "The fire burned for days."}\n', encoding="utf-8")
    said = without(sorted(PACKAGES), OF_A_PROJECT, outside).stderr.splitlines()
    assert [line.split(":")[0].split()[1] for line in said] == [
        "model",
        "run",
        "ui",
        "schedule",
        "release",
    ]
    assert all("which is not installed; `pip install 'lexveil[graph]'`" in line for line in said)
