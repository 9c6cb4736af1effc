"""Real servers on loopback, from the system's packages, in folders that end with the tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

USER, PASSWORD = "lexveil", "a-password-of-the-tests"


@dataclass(frozen=True)
class Server:
    folder: Path
    port: int

    def address(self, database: str = "crm", user: str = USER, more: str = "") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}{more}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def unprivileged(folder: Path) -> list[str]:
    """What runs a server as another user than root, which servers refuse; the folder is then that user's."""
    if os.getuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("runs as root, and there is no setpriv to start a server as another user")
    shutil.chown(folder, "nobody", "nogroup")
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """PostgreSQL on a port of its own; passwords are asked for."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    if not programs:
        pytest.skip("PostgreSQL is not installed (Debian's package is postgresql)")
    with tempfile.TemporaryDirectory(prefix="lexveil-postgresql-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        (folder / "data").mkdir(mode=0o700)
        before = unprivileged(folder)
        unprivileged(folder / "data")

        def run(*command: str | Path) -> None:
            subprocess.run(
                [*before, *command], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )

        made = ["-U", USER, "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8", "--locale=C", "--no-sync"]
        run(programs[-1] / "initdb", "-D", folder / "data", *made)
        settings = f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories= -c fsync=off -c autovacuum=off"
        control = [programs[-1] / "pg_ctl", "-D", folder / "data", "-w"]
        run(*control, "-l", folder / "data" / "log", "-o", settings, "start")
        try:
            yield Server(folder, port)
        finally:
            run(*control, "-m", "immediate", "stop")
