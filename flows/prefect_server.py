"""Prefect's server: found if one runs, started for one run if not, and `lexveil ui`."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from flows.process import Command
from lexveil.errors import LexveilError, RequestError
from lexveil.runtime.project import LOGS, STATE

RUNNING = STATE / "ui.json"  # where the server of `lexveil ui` listens
LOG = LOGS / "prefect-server.log"
UI_LOG = LOGS / "prefect-ui.log"
STARTUP_SECONDS = 120  # it takes 3 on a fast machine, 40 on a slow one with a new database

# Its scheduler and clean-up belong to a server that stays; a server for one run only records it.
FOR_ONE_RUN = {
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_LATE_RUNS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_FOREMAN_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_PAUSE_EXPIRATIONS_ENABLED": "false",
}


class ServerLost(LexveilError):
    """Prefect's server answered when the run began, and does not when it ends."""


@contextlib.contextmanager
def api(url: str | None) -> Iterator[str]:
    """Give the address of a Prefect API that answers: of a server that runs, or of one for this run alone.

    Args:
        url: of :func:`running_api`.

    Raises:
        LexveilError: if the server for this run does not start.
    """
    if url is not None:
        yield url
    else:
        with _server_for_one_run() as own_url:
            yield own_url


def running_api() -> str | None:
    """Return the address of the Prefect API that runs are shown in: PREFECT_API_URL, or that of `lexveil ui`.

    Raises:
        RequestError: if PREFECT_API_URL is set and nothing answers there.
    """
    configured = os.environ.get("PREFECT_API_URL")
    if not configured:
        return running_ui()
    if not answers(configured):
        raise RequestError(
            f"no Prefect server answers at PREFECT_API_URL={configured}; start it, or unset the variable"
        )
    return configured


def answers(url: str) -> bool:
    """Return whether a Prefect API is up at ``url`` (http://HOST:PORT/api)."""
    # No proxy: a server on loopback is not behind one.
    local = url.startswith(("http://127.", "http://localhost", "http://[::1]"))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({})) if local else urllib.request.build_opener()
    try:
        with opener.open(f"{url.rstrip('/')}/health", timeout=5) as response:
            return bool(response.status == 200)
    except urllib.error.HTTPError as error:
        return error.code in (401, 403)  # it is up, and Prefect's client has the key
    except (OSError, ValueError):
        return False


def answers_within(url: str, seconds: float) -> bool:
    """Return whether a Prefect API is up at ``url``, or comes up within so many seconds."""
    deadline = time.monotonic() + seconds
    while not answers(url):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.5)
    return True


def running_ui() -> str | None:
    """Return the API address of the project's own `lexveil ui`, if it is up."""
    try:
        url = str(json.loads(RUNNING.read_text(encoding="utf-8"))["api"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return url if answers(url) else None


def _start(port: int, log: Path, settings: Mapping[str, str]) -> Command:
    log.parent.mkdir(parents=True, exist_ok=True)
    # Host and port by variables: `--port` alone leaves the pages asking the default port for their data.
    address = {
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
    }
    with log.open("w", encoding="utf-8") as output:
        return Command(
            [sys.executable, "-m", "prefect", "server", "start"], {**os.environ, **address, **settings}, output
        )


def _await(server: Command, url: str) -> bool:
    """Wait until the server answers; false if it ended instead."""
    deadline = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            return False
        if answers(url):
            return True
        time.sleep(0.05)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _server_for_one_run() -> Iterator[str]:
    for _ in range(3):  # another process may take the free port before the server does
        port = _free_port()
        url = f"http://127.0.0.1:{port}/api"
        server = _start(port, LOG, FOR_ONE_RUN)
        try:
            if _await(server, url):
                yield url
                return
        finally:
            server.end()
    raise LexveilError(
        f"Prefect's server did not start; what it said is in {LOG}. If its database is damaged, remove "
        f"{STATE}/prefect: that forgets past runs and nothing else"
    )


def serve(port: int) -> int:
    """Run Prefect's server and pages on loopback until interrupted; the runs of this project show there.

    Raises:
        RequestError: if the port is taken.
    """
    with pages(port) as (_, server):
        print(f"http://127.0.0.1:{port}  (Ctrl-C ends it; runs of `lexveil run` show here)", flush=True)
        return server.process.wait()


@contextlib.contextmanager
def lasting_api(port: int) -> Iterator[tuple[str, Command | None]]:
    """Give an API that stays: PREFECT_API_URL, `lexveil ui`, or a server with pages that is started for this block.

    Yields:
        Its address, and the server if it was started here.

    Raises:
        RequestError: if PREFECT_API_URL is set and nothing answers there, or the port is taken.
    """
    if configured := running_api():
        yield configured, None
    else:
        with pages(port) as (url, server):
            yield url, server


@contextlib.contextmanager
def pages(port: int) -> Iterator[tuple[str, Command]]:
    """Run Prefect's server with its pages on loopback while the block runs; give the address of its API.

    Raises:
        RequestError: if the port is taken.
        LexveilError: if it does not start.
    """
    url = f"http://127.0.0.1:{port}/api"
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            hint = "it is this project's own" if running_ui() == url else "give another one with --port"
            raise RequestError(f"port {port} of 127.0.0.1 is taken; {hint}") from None
    server = _start(port, UI_LOG, {"PREFECT_SERVER_UI_ENABLED": "true"})
    try:
        if not _await(server, url):
            raise LexveilError(f"Prefect's server did not start; what it said is in {UI_LOG}")
        RUNNING.write_text(json.dumps({"api": url}) + "\n", encoding="utf-8")
        yield url, server
    finally:
        RUNNING.unlink(missing_ok=True)
        server.end()
