"""Artifacts on another machine: pushed to a remote, pulled into a fresh clone, and used there without any work."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from scratch_project import Project, run_flow

from lexveil.lineage.trace import lineage
from lexveil.lineage.verify import verify

PRIVATE = Path("artifacts/private/S1/1.0/documents.txt")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An S3 server on loopback with one bucket; its address."""
    import boto3
    from moto.server import ThreadedMotoServer

    with pytest.MonkeyPatch.context() as patch:
        # Keys of nobody, and nothing of the user's own.
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, str(tmp_path_factory.mktemp("aws") / "absent"))
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("NO_PROXY", "127.0.0.1")
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        boto3.client("s3", endpoint_url=address).create_bucket(Bucket="bucket")
        yield address
        server.stop()


@pytest.fixture
def pushed(request: pytest.FixtureRequest, built: Project, tmp_path: Path) -> Project:
    """The built project, pushed to a remote that its configuration names, and committed."""
    if request.param == "local":
        built.dvc("remote", "add", "-d", "store", str(tmp_path / "store"))
    else:
        built.dvc("remote", "add", "-d", "store", "s3://bucket/lexveil")
        built.dvc("remote", "modify", "store", "endpointurl", request.getfixturevalue("s3"))
    built.dvc("push")
    built.commit()
    return built


@pytest.fixture
def clone(pushed: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A fresh clone, as current folder: no artifact, no cache."""
    subprocess.run(["git", "clone", "-q", str(pushed.root), str(tmp_path / "clone")], check=True)
    monkeypatch.chdir(tmp_path / "clone")
    made = Project(tmp_path / "clone")
    assert made.artifacts() == {}
    made.ran()
    return made


def flow(prefect_server: str) -> set[str]:
    done = run_flow(prefect_server)
    assert done.code == 0
    return set(done.states.values())


@pytest.mark.parametrize("pushed", ["local", "s3"], indirect=True)
def test_after_a_pull_nothing_runs(pushed: Project, clone: Project, prefect_server: str) -> None:
    clone.dvc("pull")
    assert clone.artifacts() == pushed.artifacts() and len(clone.artifacts()) == 7
    clone.dvc("repro")
    assert clone.ran() == []
    assert flow(prefect_server) == {"cached"} and clone.ran() == []
    assert clone.git("status", "--porcelain") == ""
    assert verify(PRIVATE)["holds"] and lineage(PRIVATE)["committed"]
