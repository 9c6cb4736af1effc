"""The service as an application: its routes and what stands before them. It knows nothing of processes and sockets.

Pages can be added to what ``create_app`` returns; they pass the same gate, and the engine is ``app.state.queue``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from lexveil.runtime.hashes import version
from lexveil.service.bodies import (
    ErrorAnswer,
    HealthAnswer,
    InspectAnswer,
    InspectBody,
    PrivatizeAnswer,
    PrivatizeBody,
    ReadyAnswer,
    problems,
)
from lexveil.service.gate import METRICS, KeyAccess, add_gates
from lexveil.service.keys import Keys
from lexveil.service.metrics import Metrics
from lexveil.service.rates import Rates
from lexveil.service.refusals import Refusal
from lexveil.service.rewriting import Rewriter

T = TypeVar("T")
HEALTH, READY = "/v1/health", "/v1/ready"
ABOUT = """Rewrites texts under metric differential privacy. Every request is paid in the ledger, durably, before noise
is drawn for it; an answer with an error holds no text. Texts of a request are rewritten in the order given."""
ERRORS: dict[int | str, dict[str, object]] = {
    status: {"model": ErrorAnswer, "description": description}
    for status, description in {
        400: "unreadable, or another host's",
        401: "no valid API key",
        403: "a key of another role",
        408: "the body did not arrive",
        409: "a subject's budget is exhausted, and on_exhausted is refuse",
        413: "too large",
        422: "not valid, or settings that are fixed or refused",
        429: "too often; see Retry-After",
        500: "failed; charged says whether the epsilon is spent",
        503: "cannot serve now; nothing was charged",
    }.items()
}
# The framework can send bodies and messages of exceptions to whoever the environment names.
NO_TELEMETRY: Any = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
    "exclude": lambda _: True,
}


class RequestQueue:
    """One request after the other in the engine's thread.

    Args:
        queue: how many may wait.
        seconds: how long each.
    """

    def __init__(self, queue: int, seconds: float) -> None:
        self.queue, self.seconds = queue, seconds
        self._waiting = 0
        self._turn = asyncio.Semaphore(1)
        self._thread = ThreadPoolExecutor(1, "engine")
        self._first: Future[None] | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Do some work before all requests, which wait for it."""
        self._first = self._thread.submit(work)

    @property
    def is_ready(self) -> bool:
        """Whether that is done."""
        return self._first is None or self._first.done()

    async def take(self, request: Request, work: Callable[[], T]) -> T:
        """Do some work when its turn has come.

        Raises:
            Refusal: if too many wait, it waits too long, or who asked has left. Nothing has been done then.
        """
        if self._waiting >= self.queue:
            raise Refusal(503, "busy", retry_after=1)
        self._waiting += 1
        try:
            async with asyncio.timeout(self.seconds):
                await self._turn.acquire()
        except TimeoutError:
            raise Refusal(503, "busy", retry_after=self.seconds) from None
        finally:
            self._waiting -= 1
        try:
            if await request.is_disconnected():  # nobody would read what is paid for
                raise Refusal(503, "busy")
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._turn.release()


def create_app(rewriter: Rewriter) -> FastAPI:
    """The application of one worker."""
    terms, metrics = rewriter.terms, Metrics()
    queue = RequestQueue(terms.queue, terms.queue_seconds)
    app = FastAPI(
        title="Lexveil",
        version=version(),
        description=ABOUT,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its pages fetch scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        exception_handlers={RequestValidationError: _invalid, HTTPException: _http_error, Refusal: _refusal},
    )
    app.state.rewriter, app.state.queue, app.state.metrics = rewriter, queue, metrics
    secured = [] if terms.keys is None else [Depends(HTTPBearer(auto_error=False, description="an API key"))]

    @app.post("/v1/privatize", response_model=PrivatizeAnswer, responses=ERRORS, dependencies=secured)
    async def privatize(body: PrivatizeBody, request: Request) -> Response:
        """Charge texts to the ledger, rewrite them, and answer with them and their privacy record."""
        _check(body)
        settings, client = body.settings.given(), getattr(request.state, "client", None)
        answered = await queue.take(
            request, lambda: rewriter.privatize(body.texts, body.subjects, settings, body.on_exhausted, client)
        )
        metrics.texts.inc(sum(text is not None for text in answered.texts))
        metrics.withheld.inc(answered.withheld)
        metrics.epsilon.inc(answered.epsilon)
        return JSONResponse({"texts": answered.texts, "record": answered.record.to_dict()})

    @app.post("/v1/inspect", response_model=InspectAnswer, responses=ERRORS, dependencies=secured)
    async def inspect(body: InspectBody, request: Request) -> Response:
        """Say what rewriting would do: no noise is drawn, and nothing is charged."""
        _check(body)
        preview = await queue.take(request, lambda: rewriter.inspect(body.texts, body.settings.given()))
        return JSONResponse({"inspection": preview.to_dict()})

    @app.get(HEALTH, response_model=HealthAnswer, responses={503: {"model": HealthAnswer}})
    async def health() -> Response:
        """Whether the service can serve; needs no API key."""
        ledger = await asyncio.to_thread(rewriter.ledger_state)
        is_well = ledger != "failed"
        body = HealthAnswer(status="ok" if is_well else "unavailable", version=version(), ledger=ledger)
        return JSONResponse(body.model_dump(), 200 if is_well else 503)

    @app.get(READY, response_model=ReadyAnswer, responses={503: {"model": ReadyAnswer}})
    async def ready() -> Response:
        """Whether a first request would be answered at the speed of later ones; needs no API key."""
        body = ReadyAnswer(status="ready" if queue.is_ready else "starting", version=version())
        return JSONResponse(body.model_dump(), 200 if queue.is_ready else 503)

    @app.get(METRICS, include_in_schema=False)
    async def numbers() -> Response:
        return Response(metrics.exposition(), media_type=CONTENT_TYPE_LATEST)

    def _check(body: InspectBody) -> None:
        if len(body.texts) > terms.max_texts:
            raise Refusal(413, "too_many_texts")
        if not isinstance(body, PrivatizeBody):
            return
        if body.subjects is None and terms.require_subjects:
            raise Refusal(422, "invalid", fields=[("subjects", "is required")])
        if body.subjects is not None and len(body.subjects) != len(body.texts):
            raise Refusal(422, "invalid", fields=[("subjects", "must have one for each text")])

    rates = None
    if terms.per_minute is not None:
        rates = Rates(terms.per_minute, None if terms.rates is None else Path(terms.rates))
    access = KeyAccess(None if terms.keys is None else Keys(Path(terms.keys)), rates, open_paths=(HEALTH, READY))
    add_gates(app, access, terms.hosts, (terms.max_bytes, terms.body_seconds), metrics)
    return app


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    if error.charge is not None:
        request.app.state.metrics.wasted.inc()
    return error.response()


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return Refusal(422, "invalid", fields=list(problems(error.errors()).items())).response()


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "not_allowed"}.get(error.status_code, "malformed")
    return Refusal(error.status_code, code).response()
