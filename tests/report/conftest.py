"""The report of one small set of artifacts, made once; and a copy of the set, to be changed."""

import shutil

import pytest

from tasks import report
from tests.report.artifacts import Page, make_artifacts
from tests.shared_trees import share


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with all artifacts and the report of them."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_artifacts()
        report.main()
    share(folder)
    return folder


@pytest.fixture(scope="session")
def page(made):
    """Page of the report."""
    return Page((made / "artifacts/report/index.html").read_text(encoding="utf-8"))


@pytest.fixture
def changed(made, tmp_path, monkeypatch):
    """A copy of the folder without the report, to be changed; it is the current folder."""
    folder = tmp_path / "project"
    shutil.copytree(made, folder)
    shutil.rmtree(folder / "artifacts/report")
    monkeypatch.chdir(folder)
    return folder
