"""Notification of a webhook about a failed scheduled run: the notification has counts, names and
paths, never a text.
"""

from __future__ import annotations

import os
import re
from typing import Any

import httpx
from prefect import Flow, State
from prefect.client.schemas.objects import FlowRun
from prefect.logging.loggers import flow_run_logger
from prefect.settings import PREFECT_API_URL

from lexveil.base import errors
from lexveil.base.errors import LexveilError
from lexveil.io.config import load_configuration

# overrides operation.webhook with an address that must not be committed
WEBHOOK = "LEXVEIL_WEBHOOK"
TIMEOUT_SECONDS = 10.0
RETRIES = 2  # retries of a failed connection

OWN_ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w*)(?:: .*)?", re.DOTALL)
OF_A_STAGE = re.compile(r"(?P<stage>[a-z_]\w*(?:@[\w.@-]+)?): (?P<rest>.+)", re.DOTALL)
# text that Prefect puts before an exception of the flow itself
RAISED = "Flow run encountered an exception: "


def on_failure(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Send a notification about a failed run to the webhook of lexveil.toml, if there is one and a
    deployment started the run.

    Only scheduled runs notify, because `lexveil run` shows its own failure. An endpoint that does
    not answer causes a warning in the run's log.
    """
    if flow_run.deployment_id is None:
        return
    logger = flow_run_logger(flow_run, flow)
    try:
        address = os.environ.get(WEBHOOK) or load_configuration().operation.webhook
    except LexveilError as error:
        logger.warning(f"no notification of this failure is sent: {error}")
        return
    if address is None:
        return
    try:
        with httpx.Client(
            transport=httpx.HTTPTransport(retries=RETRIES), timeout=TIMEOUT_SECONDS
        ) as client:
            client.post(address, json=notice(flow.name, flow_run, state)).raise_for_status()
    except httpx.HTTPStatusError as error:
        logger.warning(
            f"the webhook received the notification, but answered {error.response.status_code}"
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # The message of the error can hold the address, which is often a secret.
        logger.warning(f"the webhook could not be notified of this failure: {type(error).__name__}")


def notice(flow: str, flow_run: FlowRun, state: State[Any]) -> dict[str, str | None]:
    """Return the JSON body of the notification: flow, run, state, stage (None if no stage failed),
    message, link to Prefect's page.
    """
    stage, message = blame(state.message or "")
    api = PREFECT_API_URL.value()
    return {
        "flow": flow,
        "run": flow_run.name,
        "state": state.name,
        "stage": stage,
        "message": message,
        "link": f"{api.rstrip('/').removesuffix('/api')}/runs/flow-run/{flow_run.id}"
        if api
        else None,
    }


def blame(message: str) -> tuple[str | None, str]:
    """Split the message of a failed run into the failed stage and its error, without words that may
    come from a document.

    The project's own errors never quote a document. For any other exception only the name of the
    exception is sent, because the message of a KeyError can be a word of a text.
    """
    message = message.removeprefix(RAISED)
    stage = None
    if (match := OF_A_STAGE.fullmatch(message)) and not EXCEPTION.fullmatch(message):
        stage = match["stage"]
        message = match["rest"]
    if (error := EXCEPTION.fullmatch(message)) and error["name"] not in OWN_ERRORS:
        message = f"{error['name']}; see the run's log"
    return stage, message
