"""The wheel: what is in it, and that it makes a project in an empty folder, without the
repository."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from lexveil.base.runtime.graph_libraries import INSTALLED_AS, PACKAGES
from lexveil.base.runtime.new_project import FILES, FOLDERS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built as a release builds it."""
    if shutil.which("uv") is None:
        pytest.skip("uv is not installed")
    out = tmp_path_factory.mktemp("wheel")
    command = ["uv", "build", "--quiet", "--wheel", "--out-dir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "build-system.requires" in done.stderr:
        pytest.skip("the build backend cannot be fetched here")
    assert done.returncode == 0, done.stderr
    (file,) = out.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel):
    """The folder that the wheel is unpacked into."""
    folder = wheel.parent / "site"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return folder


def call(installed, folder, *command):
    """Run Python in ``folder`` with the unpacked wheel before everything else, and without the
    repository."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_its_one_package_is_the_library(wheel):
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"lexveil"}
    assert "lexveil/py.typed" in names
    for name in (*FILES, *(f"{folder}/" for folder in FOLDERS)):
        assert any(packed_name.startswith(f"lexveil/_project/{name}") for packed_name in names), (
            name
        )
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]
    model = {
        str(file.relative_to(ROOT))
        for folder in ("lexveil/models/en", "lexveil/models/written")
        for file in (ROOT / folder).rglob("*")
        if file.is_file()
    }
    assert (
        model and model <= set(names) and any(name.endswith("/licenses/NOTICE") for name in names)
    )
    listed = subprocess.run(
        ["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0:
        template = {
            name.removeprefix("lexveil/_project/")
            for name in names
            if name.startswith("lexveil/_project/")
        }
        assert set(listed.stdout.split()) <= template


def test_what_a_project_needs_is_an_extra(installed):
    (found,) = installed.glob("lexveil-*.dist-info")
    needs = [Requirement(line) for line in PathDistribution(found).requires or ()]
    base = {need.name for need in needs if need.marker is None}
    graph = {
        need.name
        for need in needs
        if need.marker and "extra == 'graph'" in str(need.marker).replace('"', "'")
    }
    assert graph == {INSTALLED_AS.get(package, package) for package in PACKAGES}
    assert not base & graph and {"numpy", "pyarrow", "numba", "scipy"} <= base


def test_it_makes_a_project_in_an_empty_folder(installed, tmp_path):
    where = call(installed, tmp_path, "-c", "import lexveil; print(lexveil.__file__)")
    assert Path(where.stdout.strip()) == installed / "lexveil/__init__.py"
    made = call(installed, tmp_path, "-m", "lexveil.faces.cli", "init", "demo")
    assert (made.returncode, made.stderr) == (0, "")
    project = tmp_path / "demo"
    # Stages, flows and queries are the project's, the library is the installed one.
    code = (
        "from pathlib import Path\nfrom lexveil.faces.cli.output import in_project\nin_project()\n"
        "import flows, tasks, lexveil\nfrom lexveil.base import paths\n"
        "print(Path(flows.__file__).parent, Path(tasks.__file__).parent, paths.sql(), "
        "paths.TEMPLATE)"
    )
    (project / "below").mkdir()
    found = call(installed, project / "below", "-c", code)
    own = [str(project / name) for name in ("flows", "tasks", "sql")]
    assert found.stdout.split() == [*own, str(installed / "lexveil/_project")], found.stderr
