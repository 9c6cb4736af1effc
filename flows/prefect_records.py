"""Records of a flow run on Prefect's server: which run is under way, its pages, and its end."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import TERMINAL_STATES
from prefect.context import FlowRunContext
from prefect.events.worker import EventsWorker
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.logging.handlers import APILogWorker
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES
from prefect.states import Crashed

from lexveil.runtime.project import STATE

FLOW_RUN = STATE / "flow-run"  # Prefect's id of the run that is under way
HAND_OVER_SECONDS = 30


def note_run(say: Callable[[str], None]) -> UUID:
    """Note which flow run this is and return its id; one that was noted before and killed is ended in Prefect."""
    context = FlowRunContext.get()
    assert context is not None and context.flow_run is not None
    if killed := settle_killed_run():
        say(f"the run before this one ({killed}) was killed; this one continues there")
    FLOW_RUN.write_text(f"{context.flow_run.id}\n", encoding="utf-8")
    return context.flow_run.id


def settle_killed_run() -> str | None:
    """End in Prefect the run that was noted and killed, and return its name; else it would run there forever.

    Only the holder of the build lock may call this: then no run that was noted is alive.
    """
    with contextlib.suppress(OSError, ValueError, ObjectNotFound), get_client(sync_client=True) as client:
        killed = client.read_flow_run(UUID(FLOW_RUN.read_text(encoding="utf-8").strip()))
        if killed.state is not None and not killed.state.is_final():
            client.set_flow_run_state(killed.id, Crashed(message="the process was killed"), force=True)
            return killed.name
    return None


@contextlib.contextmanager
def published(logger: logging.Logger | logging.LoggerAdapter[logging.Logger]) -> Iterator[None]:
    """Write artifacts; a server that does not take them costs a warning and not the run."""
    try:
        yield
    except (httpx.HTTPError, PrefectException) as error:
        logger.warning(f"the run's pages could not be written to Prefect: {type(error).__name__}")


def retry_seconds() -> float:
    """Return for how many seconds Prefect's client repeats a request that is refused: 2 + 4 + 8 + ..."""
    return float(2 ** (PREFECT_CLIENT_MAX_RETRIES.value() + 1) - 2)


def hand_over(flow_run: UUID | None, n_tasks: int) -> None:
    """Wait until log lines and the states of ``n_tasks`` task runs are in the server's database.

    Prefect sends them in the background, and where the server is gone by then it tries for a minute, after the end. The
    server in turn writes states in batches, and forgets those that it has not written when it ends.
    """
    EventsWorker.drain_all(timeout=HAND_OVER_SECONDS)
    APILogWorker.drain_all(timeout=HAND_OVER_SECONDS)
    if flow_run is None:
        return
    deadline = time.monotonic() + HAND_OVER_SECONDS
    with contextlib.suppress(httpx.HTTPError), get_client(sync_client=True) as client:
        while _recorded(client, flow_run) < n_tasks and time.monotonic() < deadline:
            time.sleep(0.1)


def _recorded(client: SyncPrefectClient, flow_run: UUID) -> int:
    """Count the task runs of a flow run that have ended, as far as the server has written it down."""
    ended = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=list(TERMINAL_STATES))))
    of_run = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run]))
    filters = {"flow_runs": of_run.model_dump(mode="json"), "task_runs": ended.model_dump(mode="json")}
    return int(client.request("POST", "/task_runs/count", json=filters).json())
