"""Management of the Prefect server: use of a running server, a temporary server for one run
otherwise, and the server of `lexveil ui`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from flows.process import Command, interrupt
from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.runtime.project import LOGS, STATE

RUNNING = STATE / "ui.json"  # file with the address of the server of `lexveil ui`
# startup takes 3 s on a fast machine and minutes on a busy one; an early exit is noticed at once
STARTUP_SECONDS = 600

# A server for one run only records this run; scheduler and clean-up are for a server that stays.
FOR_ONE_RUN = {
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_LATE_RUNS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_FOREMAN_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_PAUSE_EXPIRATIONS_ENABLED": "false",
}


class ServerLostError(LexveilError):
    """Error about a Prefect server that stopped answering during a run. If a stage failed, the
    message about the stage comes first.
    """

    def __init__(self, url: str, headline: str, failure: LexveilError | None) -> None:
        super().__init__(
            f"{f'{failure}; and ' if failure else ''}Prefect's server at {url} went away during "
            f"the run and did not record the end of the run. {headline}: finished stages stay "
            "finished; `lexveil run` continues the run"
        )
        self.exit_code = failure.exit_code if failure else 1


def running_api() -> str | None:
    """Return the address of the Prefect API that shows runs: PREFECT_API_URL, or the API of
    `lexveil ui`; None if neither is available.

    Raises:
        RequestError: if PREFECT_API_URL is set and no server answers there.
    """
    configured = os.environ.get("PREFECT_API_URL")
    if not configured:
        return running_ui()
    if not answers(configured):
        raise RequestError(
            f"no Prefect server answers at PREFECT_API_URL={configured}; start it, or unset "
            "the variable"
        )
    return configured


def running_ui() -> str | None:
    """Return the API address of the server that the project's own `lexveil ui` runs; None if
    `lexveil ui` is not running.
    """
    try:
        url = str(json.loads(RUNNING.read_text(encoding="utf-8"))["api"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return url if answers(url) else None


def answers(url: str) -> bool:
    """Return whether a Prefect API answers at ``url`` (http://HOST:PORT/api)."""
    import httpx

    # Use no proxy for a server on loopback.
    local = url.startswith(("http://127.", "http://localhost", "http://[::1]"))
    try:
        status = httpx.get(f"{url.rstrip('/')}/health", timeout=5, trust_env=not local).status_code
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return status in (200, 401, 403)  # 401, 403: the server is up, and Prefect's client has the key


def free_port() -> int:
    """Find a free loopback port below the range from which systems take ports for connections. In
    that range, another process may soon take the port.

    Raises:
        LexveilError: if no port is free.
    """
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise LexveilError("100 ports of 127.0.0.1 were tried at random, and none is free")


@contextlib.contextmanager
def api(url: str | None) -> Iterator[str]:
    """Context manager that yields the address of a Prefect API that answers: ``url`` of a running
    server, or a temporary server for this run.

    Raises:
        LexveilError: if the server for this run does not start.
    """
    if url is not None:
        yield url
        return
    with _server(free_port(), LOGS / "prefect-server.log", FOR_ONE_RUN) as (own_url, _):
        yield own_url


@contextlib.contextmanager
def lasting_api(port: int) -> Iterator[tuple[str, Command | None]]:
    """Context manager that yields a Prefect API that stays after a run: PREFECT_API_URL, `lexveil
    ui`, or a server with web pages that is started for this block.

    Yields:
        The address, and the server if it was started for this block.

    Raises:
        RequestError: if PREFECT_API_URL is set and no server answers there, or the port is taken.
    """
    if configured := running_api():
        yield configured, None
    else:
        with pages(port) as (url, server):
            yield url, server


@contextlib.contextmanager
def pages(port: int) -> Iterator[tuple[str, Command]]:
    """Context manager that runs the Prefect server with its web pages on loopback; it yields the
    address of the API, and the server.

    Raises:
        RequestError: if the port is taken.
        LexveilError: if the server does not start.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            own = running_ui() == f"http://127.0.0.1:{port}/api"
            hint = (
                "this project's own `lexveil ui` uses it"
                if own
                else "give another port with --port"
            )
            raise RequestError(f"port {port} of 127.0.0.1 is taken; {hint}") from None
    with _server(port, LOGS / "prefect-ui.log", {"PREFECT_SERVER_UI_ENABLED": "true"}) as (
        url,
        server,
    ):
        RUNNING.write_text(json.dumps({"api": url}) + "\n", encoding="utf-8")
        try:
            yield url, server
        finally:
            RUNNING.unlink(missing_ok=True)


@contextlib.contextmanager
def _server(port: int, log: Path, settings: dict[str, str]) -> Iterator[tuple[str, Command]]:
    """Context manager that runs a Prefect server on loopback; when the server answers, it yields
    the address of the API, and the server.
    """
    url = f"http://127.0.0.1:{port}/api"
    # Host and port are set by variables: with `--port` alone, the pages would request their data
    # from the default port.
    settings = settings | {
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_API_URL": url,
    }
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as output:
        server = Command(
            [sys.executable, "-m", "prefect", "server", "start"], {**os.environ, **settings}, output
        )
    try:
        deadline = time.monotonic() + STARTUP_SECONDS
        while not answers(url):
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise LexveilError(
                    f"Prefect's server did not start; its log is {log}. If its database is "
                    f"damaged, remove {STATE}/prefect: this deletes the record of past runs and "
                    "nothing else"
                )
            time.sleep(0.05)
        yield url, server
    finally:
        interrupt([server])
        server.wait()
