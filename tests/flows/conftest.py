"""The scratch project and the one Prefect server that the tests of the flow share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from scratch_project import Project, make_template, run_flow

import flows  # noqa: F401
from tests.shared_trees import share

# Read when Prefect is imported, which the test files do: nothing of the user's home or of other
# tests of this machine, and a server that starts sooner.
_home = tempfile.TemporaryDirectory(prefix="lexveil-tests-prefect-", ignore_cleanup_errors=True)
os.environ["PREFECT_HOME"] = _home.name
os.environ.setdefault("PREFECT_API_BLOCKS_REGISTER_ON_START", "false")


def environment():
    """Return an environment in which `python` is the interpreter of the tests."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """Make one project, which is copied for each test."""
    root = tmp_path_factory.mktemp("template") / "project"
    make_template(root)
    share(root)
    return root


@pytest.fixture
def project(template, tmp_path, monkeypatch):
    """A fresh copy, as the current folder; nothing has run in it."""
    root = tmp_path / "project"
    shutil.copytree(template, root)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", environment()["PATH"])
    return Project(root)


@pytest.fixture(scope="session")
def built_template(template, tmp_path_factory):
    """The project after one serial `dvc repro`."""
    root = tmp_path_factory.mktemp("built") / "project"
    shutil.copytree(template, root)
    command = [sys.executable, "-m", "dvc", "repro", "--quiet"]
    subprocess.run(command, cwd=root, env=environment(), stdout=subprocess.DEVNULL, check=True)
    Project(root).ran()
    share(root)
    return root


@pytest.fixture
def built(project, built_template):
    """The project with everything made."""
    return project.take(built_template)


@pytest.fixture(scope="module")
def worked_once(tmp_path_factory):
    """Does some work in a copy of a folder, once for all tests of a module, and gives its result;
    the copy is for reading alone.
    """

    def work(of, does):
        root = tmp_path_factory.mktemp("worked") / "project"
        shutil.copytree(of, root, symlinks=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(root)
            patch.setenv("PATH", environment()["PATH"])
            result = does(Project(root))
        share(root)
        return result

    return work


@pytest.fixture(scope="session")
def prefect_server():
    """Start one Prefect server for all tests, and give the address of its API."""
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=1800):
        yield PREFECT_API_URL.value()


@pytest.fixture
def run(project, prefect_server):
    """Run the flow in the project."""
    return lambda keep_going=False: run_flow(prefect_server, keep_going)
