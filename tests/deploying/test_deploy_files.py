"""Container, compose and systemd files are sound, and what they run is there."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "examples" / "deploy"
BIN = Path(sys.executable).parent


def checked(*command: str | Path) -> str:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_container_file_lints_clean() -> None:
    hadolint = BIN / "hadolint"
    if not hadolint.exists():
        pytest.skip("no build of hadolint for this platform")
    assert checked(hadolint, DEPLOY / "Containerfile") == ""


def test_the_compose_file_follows_the_specification() -> None:
    checked(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_ports_are_published_on_this_machine_alone() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert published and all(port.startswith("127.0.0.1:") for port in published)


def test_no_password_is_in_the_files() -> None:
    assert "PREFECT_DATABASE_PASSWORD=\n" in (DEPLOY / ".env.example").read_text(encoding="utf-8")
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    for service in services.values():
        for name, value in service.get("environment", {}).items():
            assert "PASSWORD" not in name or value.startswith("${PREFECT_DATABASE_PASSWORD:?")


def test_units_are_sound(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze here")
    for unit in DEPLOY.glob("*.service"):
        # It looks for the program, which is not installed where the unit says.
        text = unit.read_text(encoding="utf-8").replace("/opt/lexveil/bin/lexveil", sys.executable)
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
        assert checked(analyze, "verify", "--man=no", tmp_path / unit.name) == ""


@pytest.mark.nightly  # it installs all packages again
def test_the_steps_of_the_container(tmp_path: Path) -> None:
    """What container and compose file run, without a daemon: install, make a key, serve, ask whether it lives."""
    if shutil.which("uv") is None:
        pytest.skip("uv is not installed")
    source, prefix = tmp_path / "src", tmp_path / "lexveil"
    root = DEPLOY.parents[1]
    here = {".venv", ".git", "artifacts", ".lexveil", "data", "tests"}  # as large as they are needless

    def left_out(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name == "__pycache__" or (Path(folder) == root and name in here)}

    shutil.copytree(root, source, ignore=left_out)
    assert "lexveil" in checked(DEPLOY / "install.sh", source, prefix)
    shutil.rmtree(source)  # as the image has it
    lexveil, home = prefix / "bin" / "lexveil", tmp_path / "home"
    checked(lexveil, "service", "key", "add", "tickets", "--keys", tmp_path / "keys.json")
    command = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["service"]["command"]
    changed = {
        "--host": "127.0.0.1",
        "--keys": str(tmp_path / "keys.json"),
        "--workers": "1",
        "--allowed-host": "localhost",
    }
    options = [f"{name}={changed.get(name, value)}" for name, _, value in (each.partition("=") for each in command[1:])]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"LEXVEIL_HOME": str(home), "NUMBA_CACHE_DIR": str(home / "compiled")}
    environment.pop("PYTHONPATH", None)
    with subprocess.Popen(
        [lexveil, command[0], *options, f"--port={port}"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as service:
        try:
            asked = [str(DEPLOY / "healthy.sh"), f"http://127.0.0.1:{port}/v1/ready"]
            for _ in range(600):
                if (
                    service.poll() is not None
                    or subprocess.run(asked, capture_output=True, check=False).returncode == 0
                ):
                    break
                time.sleep(0.2)
            checked(*asked)
        finally:
            service.terminate()
            said = service.communicate(timeout=120)[1]
    assert service.returncode == 0, said


@pytest.mark.parametrize("script", ["install.sh", "healthy.sh"])
def test_scripts_are_shell_and_can_be_run(script: str) -> None:
    assert (DEPLOY / script).stat().st_mode & 0o111
    checked("sh", "-n", DEPLOY / script)
