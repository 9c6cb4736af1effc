"""Server process for the scheduled Prefect deployments of prefect.yaml; it runs until it is
interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from filelock import FileLock, Timeout
from prefect.client.schemas.objects import ConcurrencyLimitConfig
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import PrefectException
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.logging import get_logger
from prefect.runner import Runner
from prefect.schedules import Schedule
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.types.entrypoint import EntrypointType
from pydantic import BaseModel, Field, ValidationError

from flows.prefect_records import settle_killed_run
from flows.process import Command
from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.runtime.project import LOGS, STATE, build_lock

DEPLOYMENTS = Path("prefect.yaml")
LOCK = STATE / "serve.lock"


class ScheduleEntry(BaseModel, extra="forbid"):
    """Schedule of a deployment: a cron line, or an interval in seconds."""

    cron: str | None = None
    interval: Annotated[timedelta, Field(gt=timedelta(0))] | None = None
    timezone: str | None = None
    active: bool = True


class DeploymentEntry(BaseModel, extra="forbid"):
    """One deployment in prefect.yaml. Only `prefect deploy` uses ``work_pool``."""

    name: str
    entrypoint: Literal["flows.build.build", "flows.audit.audit", "flows.release.release"]
    description: str | None = None
    tags: list[str] = []
    parameters: dict[str, object] = {}
    schedules: list[ScheduleEntry] = []
    concurrency_limit: ConcurrencyLimitConfig | None = None
    work_pool: dict[str, object] | None = None

    def deployment(self) -> RunnerDeployment:
        """Convert the entry to a Prefect deployment, after checking the flow's parameters."""
        flow: Flow[..., Any] = load_flow_from_entrypoint(self.entrypoint)
        log = get_logger("flows")
        log.disabled = True  # the error below reports what is wrong
        try:
            flow.validate_parameters(self.parameters)
        finally:
            log.disabled = False
        if any((entry.cron is None) == (entry.interval is None) for entry in self.schedules):
            raise ValueError("a schedule needs exactly one of cron and interval")
        deployment = flow.to_deployment(
            self.name,
            description=self.description,
            tags=self.tags,
            parameters=self.parameters,
            schedules=[Schedule(**dict(entry)) for entry in self.schedules],
            concurrency_limit=self.concurrency_limit,
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        assert isinstance(deployment, RunnerDeployment)  # a coroutine only in asynchronous code
        return deployment


def read_deployments(path: Path = DEPLOYMENTS) -> list[RunnerDeployment]:
    """Read the deployments in prefect.yaml and check them.

    Raises:
        RequestError: if the file is absent or an entry is not valid; the message names the entry
            and the key.
    """
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))["deployments"]
    except FileNotFoundError:
        raise RequestError(
            f"{path}: no such file; it defines the schedules, see docs/how-to/operation.md"
        ) from None
    except (yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError):
        entries = None
    if not isinstance(entries, list) or not entries:
        raise RequestError(
            f"{path}: not valid YAML with a list `deployments` of at least one entry"
        )
    deployments = []
    for number, entry in enumerate(entries):
        try:
            deployments.append(DeploymentEntry.model_validate(entry).deployment())
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise RequestError(f"{path}: deployments[{number}].{where}: {first['msg']}") from None
        except (
            ValueError,
            PrefectException,
        ) as error:  # an error of a cron line, a time zone or a parameter
            raise RequestError(
                f"{path}: deployments[{number}]: {' '.join(str(error).split())[:300]}"
            ) from None
    return deployments


def serve(url: str, server: Command | None, deployments: list[RunnerDeployment]) -> int:
    """Run the scheduled deployments until the process is interrupted; a graceful end pauses their
    schedules.

    Args:
        url: address of a Prefect API that answers.
        server: the server of this API, if it was started for this call; the call ends if the server
            ends.
        deployments: deployments that `read_deployments` returned.

    Raises:
        RequestError: if another process serves the deployments of this project.
        LexveilError: if the server ends.
    """
    os.environ["PREFECT_API_URL"] = url  # the processes of runs inherit it
    # Wait about 8 minutes for a server that restarts; Prefect's own 5 retries take one.
    retries = int(os.environ.setdefault("PREFECT_CLIENT_MAX_RETRIES", "8"))
    try:
        # A second process would pause the schedules of the first one when it ends.
        with (
            FileLock(LOCK, timeout=0),
            temporary_settings({PREFECT_API_URL: url, PREFECT_CLIENT_MAX_RETRIES: retries}),
        ):
            _serve(url, server, deployments)
    except Timeout:
        raise RequestError(
            "another `lexveil schedule` runs in this project; end it first"
        ) from None
    if server is not None and server.process.poll() is not None:
        raise LexveilError(f"Prefect's server ended; its log is {LOGS}/prefect-ui.log")
    return 0


def _serve(url: str, server: Command | None, deployments: list[RunnerDeployment]) -> None:
    with contextlib.suppress(RequestError), build_lock():
        settle_killed_run()  # otherwise it would block the deployment's next run
    # One run at a time: the build lock excludes other runs, whose processes would only wait.
    runner = StoppableRunner(name="lexveil", limit=1)
    print(f"{url.removesuffix('/').removesuffix('/api')}/deployments", flush=True)
    for deployment in deployments:
        runner.add_deployment(deployment)
        schedules = [entry.schedule for entry in deployment.schedules or []]
        when = [
            str(getattr(schedule, "cron", None) or f"every {getattr(schedule, 'interval', '')}")
            for schedule in schedules
        ]
        print(
            f"{deployment.flow_name}/{deployment.name}: {', '.join(when) or 'no schedule'}",
            flush=True,
        )
    print(
        "Ctrl-C ends this command; schedules are then paused until it is started again", flush=True
    )
    if server is not None:
        threading.Thread(target=_follow, args=(server, runner), daemon=True).start()
    before = signal.signal(signal.SIGINT, runner.handle_sigterm)
    try:
        asyncio.run(runner.start())
    finally:
        runner.has_ended = True
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class StoppableRunner(Runner):
    """A Prefect runner that shuts down gracefully on SIGTERM and Ctrl-C.

    Prefect's own handler exits at once, so that runs are killed and stay "running" on the server.
    """

    has_ended = False

    def handle_sigterm(self, *_: Any) -> None:
        """Shut down gracefully: end the current flow run, wait for its end, pause the schedules,
        and stop.
        """
        if not self.stopping:
            self.execute_in_background(self.astop)


def _follow(server: Command, runner: StoppableRunner) -> None:
    """Stop the runner when its Prefect server has ended. Otherwise the runner would poll the server
    forever; a service manager restarts both.
    """
    server.process.wait()
    if not runner.has_ended:
        os.kill(os.getpid(), signal.SIGTERM)
