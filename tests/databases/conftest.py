"""Real servers on loopback, from the system's packages, in folders that end with the tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

USER, PASSWORD = "lexveil", "a-password-of-the-tests"


@dataclass(frozen=True)
class Server:
    folder: Path
    port: int
    scheme: str

    def address(self, database: str = "crm", user: str = USER, more: str = "") -> str:
        return f"{self.scheme}://{user}@127.0.0.1:{self.port}/{database}{more}"


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
            yield Server(folder, port, "postgresql")
        finally:
            run(*control, "-m", "immediate", "stop")


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Server]:
    """MariaDB on a port of its own, with one user that has a password."""
    pymysql = pytest.importorskip("pymysql")
    server, install = shutil.which("mariadbd", path="/usr/sbin:/usr/bin"), shutil.which("mariadb-install-db")
    if server is None or install is None:
        pytest.skip("MariaDB is not installed (Debian's packages are mariadb-server-core and mariadb-client-core)")
    with tempfile.TemporaryDirectory(prefix="lexveil-mariadb-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        (folder / "data").mkdir(mode=0o700)
        before = unprivileged(folder)
        unprivileged(folder / "data")
        data = ["--no-defaults", f"--datadir={folder / 'data'}", "--innodb-buffer-pool-size=8M"]
        start = folder / "start.sql"
        start.write_text(  # a statement a line
            f"create user '{USER}'@'127.0.0.1' identified by '{PASSWORD}';\n"
            f"grant all on *.* to '{USER}'@'127.0.0.1' with grant option;\n"
        )
        start.chmod(0o644)
        made = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*before, install, *data, *made], check=True, **quiet)
        running = subprocess.Popen(
            [
                *[*before, server, *data, f"--init-file={start}", f"--socket={folder / 'socket'}"],
                *[
                    "--bind-address=127.0.0.1",
                    f"--port={port}",
                    "--skip-name-resolve",
                    "--innodb-flush-log-at-trx-commit=0",
                ],
            ],
            **quiet,
        )
        try:
            while True:
                assert running.poll() is None, "the server ended"
                try:
                    pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD).close()
                    break
                except pymysql.OperationalError as error:
                    assert error.args[0] == pymysql.constants.CR.CR_CONN_HOST_ERROR, error
                    time.sleep(0.1)
            yield Server(folder, port, "mysql")
        finally:
            running.terminate()
            running.wait(60)
