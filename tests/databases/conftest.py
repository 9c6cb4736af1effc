"""Real servers on loopback, from the system's packages, in folders that end with the tests."""

import os
import shutil
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from flows.prefect_server import free_port

USER = "lexveil"
PASSWORD = "a-password-of-the-tests"
SECRET = "Jane Doe owes money"
NONE = {"mechanism": "none", "strategy": "none", "mode": "experiment"}


@pytest.fixture(scope="session")
def port():
    """Port of a PostgreSQL server on loopback, which asks for passwords."""
    programs = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name)
    )
    if not programs:
        pytest.skip("PostgreSQL is not installed (Debian's package is postgresql)")
    port = free_port()
    with tempfile.TemporaryDirectory(
        prefix="lexveil-postgresql-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        data = Path(name, "data")
        before = list[str]()
        data.mkdir(mode=0o700)
        (folder / "password").write_text(PASSWORD)
        (folder / "password").chmod(0o644)
        if os.getuid() == 0:  # whom servers refuse: another user runs it, and has its folders
            if shutil.which("setpriv") is None:
                pytest.skip(
                    "runs as root, and there is no setpriv to start a server as another user"
                )
            for own in (folder, data):
                shutil.chown(own, "nobody", "nogroup")
            before = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]

        def run(program, *arguments):
            command = [*before, programs[-1] / program, "-D", data, *arguments]
            subprocess.run(
                command,
                check=True,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

        made = [
            "-U",
            USER,
            "-A",
            "scram-sha-256",
            f"--pwfile={folder / 'password'}",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        run("initdb", *made, "--no-sync")
        settings = (
            f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories= -c "
            "fsync=off -c autovacuum=off"
        )
        try:
            run("pg_ctl", "-w", "-t", "600", "-l", data / "log", "-o", settings, "start")
            yield port
        finally:
            run("pg_ctl", "-w", "-t", "600", "-m", "immediate", "stop")


@pytest.fixture
def database(port, tmp_path, monkeypatch):
    """The address of a new database crm, whose password is in a file as psql reads it."""
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"127.0.0.1:{port}:*:{USER}:{PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    for name in (
        "PGPASSWORD",
        "PGSERVICE",
        "PGUSER",
        "PGHOST",
        "PGPORT",
        "PGDATABASE",
        "PGOPTIONS",
    ):
        monkeypatch.delenv(name, raising=False)
    server = f"postgresql://{USER}@127.0.0.1:{port}"
    sql(
        f"{server}/postgres",
        "drop database if exists crm with (force)",
        "create database crm template template0",
    )
    return f"{server}/crm"


def sql(address, *statements):
    """Run statements, each by itself; the rows of the last if it is a SELECT."""
    from adbc_driver_postgresql import dbapi

    rows = []
    with (
        closing(dbapi.connect(address, autocommit=True)) as connection,
        closing(connection.cursor()) as cursor,
    ):
        for statement in statements:
            cursor.execute(statement)
            rows = cursor.fetchall() if statement.startswith("select") else []
    return rows
