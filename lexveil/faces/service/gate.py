"""Middleware that every request passes. It checks the API key and the size before a route sees the
request, answers every exception in fixed words, and logs and counts requests.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar
from urllib.parse import parse_qsl

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexveil.base.errors import LexveilError
from lexveil.base.runtime.crash import crash_report
from lexveil.faces.service.keys import Keys
from lexveil.faces.service.refusals import Refusal

LOG = logging.getLogger("lexveil.faces.service")
METRICS = "/metrics"
PAGE = "/"
STATIC = "/static/"
TOKEN_HEADER = "x-lexveil-token"
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
PAGE_HEADERS = {
    "content-security-policy": "; ".join(
        [
            "default-src 'none'",
            *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
            *(f"{kind} 'none'" for kind in ("form-action", "base-uri", "frame-ancestors")),
        ]
    ),
    "referrer-policy": "no-referrer",  # the address contains the token
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
Admit = Callable[[Scope], None]  # admits a request, or raises a Refusal


class Gate:
    """Middleware that admits requests by API key and size, answers every exception, and logs and
    counts each request by its route.

    A path without a route may contain any text, so it is neither logged nor counted. Health probes
    ask every few seconds, so the response to a probe is logged only if its status differs from the
    previous status.
    """

    def __init__(
        self,
        app: ASGIApp,
        admit: Admit,
        max_bytes: int,
        metrics: Metrics,
        headers: dict[str, str] | None = None,
        probes: Collection[str] = (),
    ) -> None:
        self._answered: dict[str, int | None] = dict.fromkeys(probes)
        self.app = app
        self.admit = admit
        self.max_bytes = max_bytes
        self.metrics = metrics
        self.headers = [
            (name.encode(), value.encode()) for name, value in (HEADERS | (headers or {})).items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI)."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 0
        scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *self.headers]}
            await send(message)

        try:
            await self._pass(scope, receive, sending)
        except Exception as error:
            refusal = error if isinstance(error, Refusal) else Refusal("failed")
            if refusal is not error:
                LOG.error("%s", crash_report(error))
            if status:  # half an answer has been sent, so the connection ends without the rest
                raise _BrokenAnswerError from None
            if refusal.charge is not None:
                self.metrics.wasted.inc()
            await refusal.response()(scope, receive, sending)
        finally:
            self._note(scope, status, time.perf_counter() - start)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        """Log a request, and count it in the metrics."""
        route = getattr(scope.get("route"), "path", "-")
        self.metrics.requests.labels(route, str(status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        method = scope["method"] if scope["method"] in METHODS else "-"
        client = scope["state"].get("client") or "-"
        if self._answered.get(route) != status:
            LOG.info("%s %s %d %.0f ms key=%s", method, route, status, 1000 * seconds, client)
        if route in self._answered:
            self._answered[route] = status

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        # a proxy could find another end of the body than this service
        if "transfer-encoding" in headers and "content-length" in headers:
            raise Refusal("malformed")
        self.admit(scope)
        declared = headers.get("content-length", "0")
        if not declared.isdigit() or len(declared) > 18 or int(declared) > self.max_bytes:
            raise Refusal("too_large")
        body = await read_body(receive, self.max_bytes)
        if body is None:  # the client has left
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return waiting.pop() if waiting else await receive()

        await self.app(scope, again, send)


class _BrokenAnswerError(Exception):
    """Error for a response that could not be finished. The error has no message."""


async def read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """Read and return the body of a request, or return None if the client has disconnected.

    Raises:
        Refusal: if the body is larger than the service accepts.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > max_bytes:
            raise Refusal("too_large")
        if not message.get("more_body", False):
            return bytes(body)


def key_access(keys: Keys | None, open_paths: Collection[str] = ()) -> Admit:
    """Return a function that admits only requests with a valid API key.

    Args:
        keys: the valid keys; None admits every request.
        open_paths: the paths that need no key.
    """

    def admit(scope: Scope) -> None:
        if keys is None or scope["path"] in open_paths:
            return
        kind, _, written = Headers(scope=scope).get("authorization", "").partition(" ")
        try:
            key = keys.find(written.strip()) if kind.lower() == "bearer" else None
        except LexveilError as error:
            LOG.error("%s", error)
            raise Refusal("no_keys") from None
        if key is None:
            raise Refusal("unauthorized")
        scope["state"]["client"] = key.name
        if (key.role == "metrics") != (scope["path"] == METRICS):
            raise Refusal("forbidden")

    return admit


def token_access(token: str) -> Admit:
    """Return a function that admits only requests with a secret token. Requests for the page have
    the token in the address. All other requests have it in a header, which no other site can send.

    A cookie would not be safe, because browsers send it to every other server on this machine, at
    any port. Paths below ``STATIC`` are the same for everybody and need no token.
    """

    def admit(scope: Scope) -> None:
        if scope["path"].startswith(STATIC):
            return
        if scope["path"] == PAGE:
            query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            written = query.get("token", "")
        else:
            written = Headers(scope=scope).get(TOKEN_HEADER, "")
        if not hmac.compare_digest(written.encode(), token.encode()):
            raise Refusal("no_token")

    return admit


T = TypeVar("T")


class RequestQueue:
    """Queue that runs the work of one request after another in a single thread, the thread of the
    rewriting engine.

    Args:
        places: number of requests that may wait.
        seconds: time that each request may wait.
    """

    def __init__(self, places: int, seconds: float) -> None:
        self.places = places
        self.seconds = seconds
        self._waiting = 0
        self._turn = asyncio.Semaphore(1)
        self._thread = ThreadPoolExecutor(1, "engine")
        self._first: Future[None] | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Start a piece of work, such as loading the model, that must be done before any request.
        Requests wait for it.
        """
        self._first = self._thread.submit(work)

    @property
    def is_ready(self) -> bool:
        """Whether the work that must precede all requests is done."""
        return self._first is None or self._first.done()

    async def take(self, request: Request, work: Callable[[], T]) -> T:
        """Wait for the turn of a request, run its work in the engine's thread, and return the
        result.

        Raises:
            Refusal: if too many requests wait, the request waits too long, or its client has left.
                The work has not been run then.
        """
        if self._waiting >= self.places:
            raise Refusal("busy", retry_after=1)
        self._waiting += 1
        try:
            async with asyncio.timeout(self.seconds):
                await self._turn.acquire()
        except TimeoutError:
            raise Refusal("busy", retry_after=self.seconds) from None
        finally:
            self._waiting -= 1
        try:
            # do not charge a request if its client would not read the answer
            if await request.is_disconnected():
                raise Refusal("busy")
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._turn.release()


# environment variable of the client library with the folder in which workers add up metrics
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The metrics of a worker process for Prometheus. The Prometheus client library adds up the
    counters of all workers.
    """

    def __init__(self) -> None:
        own = CollectorRegistry()
        self._registry = own
        self.requests = Counter(
            "lexveil_requests", "Requests by route and status", ["route", "status"], registry=own
        )
        self.seconds = Histogram(
            "lexveil_request_seconds",
            "Seconds to the answer",
            ["route"],
            buckets=BUCKETS,
            registry=own,
        )
        self.texts = Counter("lexveil_texts", "Texts rewritten and returned", registry=own)
        self.withheld = Counter(
            "lexveil_texts_withheld", "Texts withheld: budget exhausted", registry=own
        )
        self.epsilon = Counter(
            "lexveil_epsilon_charged", "Epsilon charged for answers", registry=own
        )
        self.wasted = Counter(
            "lexveil_charged_without_answer", "Requests charged and not answered", registry=own
        )

    def exposition(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        registry = self._registry
        if os.environ.get(METRICS_FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
