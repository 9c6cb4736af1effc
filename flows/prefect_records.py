"""Records of a flow run on the Prefect server: the id of the current run, its tables, and its
end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from uuid import UUID

import httpx
from prefect import get_run_logger
from prefect.artifacts import create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import TaskRunFilter
from prefect.client.schemas.objects import TERMINAL_STATES
from prefect.context import FlowRunContext
from prefect.events.worker import EventsWorker
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.logging.handlers import APILogWorker
from prefect.states import Crashed

from lexveil.base.runtime.project import STATE

FLOW_RUN = STATE / "flow-run"  # file with Prefect's id of the current run
HAND_OVER_SECONDS = 30


def note_run(say: Callable[[str], None]) -> UUID:
    """Write the id of the current flow run to a file and return the id. If the file names an
    earlier run that was killed, that run is ended in Prefect first.
    """
    context = FlowRunContext.get()
    assert context is not None and context.flow_run is not None
    if killed := settle_killed_run():
        say(f"the previous run ({killed}) was killed; this run continues it")
    FLOW_RUN.write_text(f"{context.flow_run.id}\n", encoding="utf-8")
    return context.flow_run.id


def settle_killed_run() -> str | None:
    """Mark the flow run that the file names as ended in Prefect if it was killed, and return its
    name. Otherwise Prefect would show the run as running forever.

    Only the holder of the build lock may call this function, because the run in the file is then
    dead.
    """
    with (
        contextlib.suppress(OSError, ValueError, ObjectNotFound),
        get_client(sync_client=True) as client,
    ):
        killed = client.read_flow_run(UUID(FLOW_RUN.read_text(encoding="utf-8").strip()))
        if killed.state is not None and not killed.state.is_final():
            client.set_flow_run_state(
                killed.id, Crashed(message="the process was killed"), force=True
            )
            return killed.name
    return None


def show_table(key: str, table: list[dict[str, object]], description: str) -> None:
    """Show a table on the flow run's page in Prefect. If the server does not accept the table, a
    warning is logged and the run continues.
    """
    try:
        create_table_artifact(key=key, table=table, description=description)
    except (httpx.HTTPError, PrefectException) as error:
        get_run_logger().warning(
            f"the run's table could not be written to Prefect: {type(error).__name__}"
        )


def hand_over(flow_run: UUID | None, n_tasks: int) -> None:
    """Wait until the Prefect server has stored the log lines and the states of ``n_tasks`` task
    runs.

    Prefect sends them in the background. If the server is already gone, Prefect tries for a minute
    after the end of the run. The server writes states in batches, and loses unwritten states when
    it ends.
    """
    EventsWorker.drain_all(timeout=HAND_OVER_SECONDS)
    APILogWorker.drain_all(timeout=HAND_OVER_SECONDS)
    states = TaskRunFilter.model_validate(
        {"state": {"type": {"any_": list(TERMINAL_STATES)}}}
    ).model_dump(mode="json")
    ended = {"flow_runs": {"id": {"any_": [str(flow_run)]}}, "task_runs": states}
    deadline = time.monotonic() + HAND_OVER_SECONDS
    with contextlib.suppress(httpx.HTTPError), get_client(sync_client=True) as client:
        while flow_run and client.request("POST", "/task_runs/count", json=ended).json() < n_tasks:
            if time.monotonic() > deadline:
                return
            time.sleep(0.1)
