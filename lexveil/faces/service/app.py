"""The HTTP service as a FastAPI application with its routes. This module does not deal with
processes and sockets.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from lexveil.base.runtime.hashes import version
from lexveil.faces.service.bodies import (
    ErrorAnswer,
    HealthAnswer,
    InspectAnswer,
    InspectBody,
    PrivatizeAnswer,
    PrivatizeBody,
    ReadyAnswer,
    duplicate_problem,
    problems,
)
from lexveil.faces.service.gate import METRICS, Gate, Metrics, RequestQueue, key_access
from lexveil.faces.service.json_bodies import DuplicateKey, JsonRoute
from lexveil.faces.service.keys import Keys
from lexveil.faces.service.refusals import REFUSALS, Refusal
from lexveil.faces.service.rewriting import TextRewriter
from lexveil.faces.service.terms import LOCAL, Terms
from lexveil.release.adapters.memory import Privatized
from lexveil.release.looking.inspect import texts_in_words

HEALTH = "/v1/health"
READY = "/v1/ready"
ABOUT = """Rewrites texts under metric differential privacy. Every request is charged to the
ledger, durably, before its noise is drawn. An answer with an error contains no text. The texts of a
request are rewritten in their order."""
# By an environment variable, the framework can be told to send bodies and messages of exceptions to
# an address.
NO_TELEMETRY: Any = {
    **dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False),
    "exclude": lambda _: True,
}


def _errors() -> dict[int | str, dict[str, Any]]:
    """Return the error responses by HTTP status, for the OpenAPI document."""
    meanings = defaultdict(list)
    for status, message in REFUSALS.values():
        meanings[status].append(message)
    return {
        status: {"model": ErrorAnswer, "description": "; or ".join(said)}
        for status, said in meanings.items()
    }


secured = APIRouter(responses=_errors(), route_class=JsonRoute)
public = APIRouter()


@secured.post("/v1/privatize", response_model=PrivatizeAnswer)
async def privatize(body: PrivatizeBody, request: Request) -> Response:
    """Charge texts to the budget ledger, rewrite them, and return them with their privacy
    record.
    """
    state = request.app.state
    _check(body, state.rewriter.terms)
    settings = body.settings.given()
    client = getattr(request.state, "client", None)
    done: Privatized = await state.queue.take(
        request,
        lambda: state.rewriter.privatize(
            body.texts, body.subjects, settings, body.on_exhausted, client
        ),
    )
    state.metrics.texts.inc(sum(text is not None for text in done.values))
    if (costs := done.operator.ledger) is not None:
        state.metrics.withheld.inc(costs.documents_withheld)
        state.metrics.epsilon.inc(costs.epsilon_charged)
    return JSONResponse({"texts": done.values, "record": done.record.to_dict()})


@secured.post("/v1/inspect", response_model=InspectAnswer)
async def inspect(body: InspectBody, request: Request) -> Response:
    """Return the effects that rewriting texts would have. The drawn noise is discarded, and nothing
    is charged.
    """
    state = request.app.state
    _check(body, state.rewriter.terms)
    seen = await state.queue.take(
        request, lambda: state.rewriter.inspect(body.texts, body.settings.given())
    )
    return JSONResponse(
        {"inspection": seen.to_dict(), "in_words": texts_in_words(seen.budget, seen.tried)}
    )


@public.head(HEALTH, include_in_schema=False)
@public.get(HEALTH, response_model=HealthAnswer, responses={503: {"model": HealthAnswer}})
async def health(request: Request) -> Response:
    """Return whether the service works. This route needs no API key."""
    ledger = await asyncio.to_thread(request.app.state.rewriter.ledger_state)
    is_well = ledger != "failed"
    body = HealthAnswer(status="ok" if is_well else "unavailable", version=version(), ledger=ledger)
    return JSONResponse(body.model_dump(), 200 if is_well else 503)


@public.head(READY, include_in_schema=False)
@public.get(READY, response_model=ReadyAnswer, responses={503: {"model": ReadyAnswer}})
async def ready(request: Request) -> Response:
    """Return whether the service has loaded everything, so that a first request would be answered
    as fast as later requests. This route needs no API key.
    """
    is_ready = request.app.state.queue.is_ready
    body = ReadyAnswer(status="ready" if is_ready else "starting", version=version())
    return JSONResponse(body.model_dump(), 200 if is_ready else 503)


@public.get(METRICS, include_in_schema=False)
async def numbers(request: Request) -> Response:
    """Return the service's metrics in the text format of Prometheus."""
    return Response(request.app.state.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)


def _check(body: InspectBody, terms: Terms) -> None:
    if len(body.texts) > terms.max_texts:
        raise Refusal("too_many_texts")
    if not isinstance(body, PrivatizeBody):
        return
    if body.subjects is None and terms.require_subjects:
        raise Refusal("invalid", fields=[("subjects", "is required")])
    if body.subjects is not None and len(body.subjects) != len(body.texts):
        raise Refusal("invalid", fields=[("subjects", "must have one subject for each text")])


def create_app(rewriter: TextRewriter) -> FastAPI:
    """Create the application that one worker process serves."""
    terms = rewriter.terms
    metrics = Metrics()
    app = FastAPI(
        title="Lexveil",
        version=version(),
        description=ABOUT,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # these pages fetch scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        exception_handlers={RequestValidationError: _invalid, HTTPException: _http_error},
    )
    app.state.rewriter = rewriter
    app.state.metrics = metrics
    app.state.queue = RequestQueue(terms.queue, terms.queue_seconds)
    bearer = (
        []
        if terms.keys is None
        else [Depends(HTTPBearer(auto_error=False, description="an API key"))]
    )
    app.include_router(secured, dependencies=bearer)
    app.include_router(public)
    keys = None if terms.keys is None else Keys(Path(terms.keys))
    probes = (HEALTH, READY)
    # prevents DNS rebinding, by which another site gives its own name the address of this machine
    app.add_middleware(
        TrustedHostMiddleware, allowed_hosts=(*LOCAL, *terms.allowed_host), www_redirect=False
    )
    app.add_middleware(
        Gate,
        admit=key_access(keys, open_paths=probes),
        max_bytes=terms.max_bytes,
        metrics=metrics,
        probes=probes,
    )
    return app


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    if isinstance(error.__cause__, DuplicateKey):
        raise Refusal("invalid", fields=[duplicate_problem(error.__cause__.key)]) from None
    raise Refusal("invalid", fields=list(problems(error.errors()).items())) from None


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    raise Refusal(
        {404: "not_found", 405: "not_allowed"}.get(error.status_code, "malformed")
    ) from None
