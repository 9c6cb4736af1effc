"""What starting takes: which libraries are imported, never how long it takes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# Of the graph and of compiled code: none of them is needed for a few texts.
HEAVY = (
    "numba", "llvmlite", "scipy", "pandas", "sklearn", "gensim", "duckdb", "dvc", "prefect", "great_expectations",
    "pynndescent", "matplotlib", "jinja2", "openlineage", "httpx", "fastapi", "sqlalchemy", "threadpoolctl",
)  # fmt: skip

ABSENT = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""

PRIVATIZE = """
import lexveil
done = lexveil.privatize(
    ["The fire burned for days, and the smoke hung over the city."], mechanism=NAME, strategy="S3", epsilon=10.0,
    model="toy",
)
assert len(done.values) == 1 and done.values[0]
"""

COMMAND = """
from lexveil.cli.main import main
options = ["--mechanism", NAME, "--strategy", "S3", "--epsilon", "10", "--model", "toy"]
assert main(["privatize", "in.jsonl", "-o", "out.jsonl", *options]) == 0
"""


def imported(script: str, folder: Path) -> set[str]:
    """The top-level modules that a script has imported when it ends, with the heavy ones absent."""
    report = "\nimport json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", ABSENT + script + report],
        cwd=folder, env=os.environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_import_of_the_library_is_light(tmp_path: Path) -> None:
    assert not {"numpy", "pyarrow", "pydantic", "yaml", "rich", "cyclopts"} & imported("import lexveil", tmp_path)


def test_the_help_is_light(tmp_path: Path) -> None:
    help_of = "from lexveil.cli.main import main\nmain(['--help'])\nmain(['privatize', '--help'])"
    assert not {"numpy", "pyarrow", "pydantic"} & imported(help_of, tmp_path)


@pytest.mark.parametrize("mechanism", ["tem", "madlib"])
@pytest.mark.parametrize("script", [PRIVATIZE, COMMAND], ids=["function", "command"])
def test_a_few_texts_need_nothing_of_the_graph(outside: Path, script: str, mechanism: str) -> None:
    """Neither engine nor compiled code, by a packaged model outside any project."""
    (outside / "in.jsonl").write_text('{"text": "The fire burned for days."}\n', encoding="utf-8")
    assert "lexveil" in imported(script.replace("NAME", repr(mechanism)), outside)


def test_the_command_leaves_pandas_where_it_is(outside: Path) -> None:
    """Where it is installed, PyArrow would import it for its first array."""
    (outside / "in.jsonl").write_text('{"text": "The fire burned for days."}\n', encoding="utf-8")
    script = COMMAND.replace("NAME", "'madlib'") + "\nimport sys\nassert 'pandas' not in sys.modules\nimport pandas"
    subprocess.run([sys.executable, "-c", script], cwd=outside, env=os.environ, capture_output=True, check=True)
