"""The gate that every request passes: host, key, rate and size are checked before a route sees the
request; then it waits for its turn of the engine, and the metrics count it.

Whatever is raised is answered here, in fixed words.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import os
import re
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexveil.errors import LexveilError
from lexveil.runtime.crash import crash_report
from lexveil.service.keys import Keys
from lexveil.service.refusals import Refusal

LOG = logging.getLogger("lexveil.service")
EVERYBODY = "(no keys)"  # the client's name where no keys are asked for; no key can have it
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
    "referrer-policy": "no-referrer",  # the address has the token
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
Admit = Callable[[Scope], None]  # lets a request in, or raises a Refusal


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that a request must keep.

    Attributes:
        hosts: names that a Host header may have, * for any; against pages that make their own name
            one of this machine's (DNS rebinding).
        max_bytes: the largest size of a body.
        body_seconds: the longest time to wait for a body.
    """

    hosts: Sequence[str]
    max_bytes: int
    body_seconds: float


class Gate:
    """Lets requests in by host, key and size, answers whatever is raised, and logs and counts each
    by its route.

    A path that no route has may be anything, so it is neither logged nor counted by its name. Of
    probes, which ask every few seconds, an answer is logged when its status is another one than
    before.
    """

    def __init__(
        self,
        app: ASGIApp,
        admit: Admit,
        limits: Limits,
        metrics: Metrics,
        headers: dict[str, str] | None = None,
        probes: Collection[str] = (),
    ) -> None:
        self._answered: dict[str, int | None] = dict.fromkeys(probes)
        self.app = app
        self.admit = admit
        self.limits = limits
        self.metrics = metrics
        self.headers = [
            (name.encode(), value.encode()) for name, value in (HEADERS | (headers or {})).items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
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
            if status:  # half an answer is out: the connection ends without the rest
                raise _Broken from None
            if refusal.charge is not None:
                self.metrics.wasted.inc()
            await refusal.response()(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "-")
            seconds = time.perf_counter() - start
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
        # a proxy could take another end than we do
        if "transfer-encoding" in headers and "content-length" in headers:
            raise Refusal("malformed")
        named = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(:\d+)?", headers.get("host", ""))
        if "*" not in self.limits.hosts and (
            named is None or named[1].lower() not in self.limits.hosts
        ):
            raise Refusal("invalid_host")
        self.admit(scope)
        declared = headers.get("content-length", "0")
        if not declared.isdigit() or len(declared) > 18 or int(declared) > self.limits.max_bytes:
            raise Refusal("too_large")
        body = await read_body(receive, self.limits)
        if body is None:  # the client has left
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return waiting.pop() if waiting else await receive()

        await self.app(scope, again, send)


class _Broken(Exception):
    """An answer that could not be finished; says nothing."""


async def read_body(receive: Receive, limits: Limits) -> bytes | None:
    """Take a request's body before anything looks at it; None if its client has left.

    Raises:
        Refusal: if it is larger than agreed, or takes longer.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > limits.max_bytes:
                    raise Refusal("too_large")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Refusal("slow") from None


def key_access(keys: Keys | None, rates: Rates | None, open_paths: Collection[str] = ()) -> Admit:
    """Admit the requests that bring an API key, and each key no more often than was agreed.

    Args:
        keys: None lets everybody in.
        open_paths: the paths that need no key.
    """

    def admit(scope: Scope) -> None:
        if scope["path"] in open_paths:
            return
        client = EVERYBODY
        if keys is not None:
            kind, _, written = Headers(scope=scope).get("authorization", "").partition(" ")
            try:
                key = keys.find(written.strip()) if kind.lower() == "bearer" else None
            except LexveilError as error:
                LOG.error("%s", error)
                raise Refusal("unavailable") from None
            if key is None:
                raise Refusal("unauthorized")
            scope["state"]["client"] = client = key.name
            if (key.role == "metrics") != (scope["path"] == METRICS):
                raise Refusal("forbidden")
        if rates is not None and scope["path"] != METRICS and (seconds := rates.take(client)):
            raise Refusal("too_many_requests", retry_after=seconds)

    return admit


def token_access(token: str) -> Admit:
    """Admit the requests that bring the token: requests for the page bring it in the address, all
    others in a header, which no other site can send.

    A cookie would go to whatever else listens on this machine, at any port. What lies under
    ``STATIC`` is the same for everybody and open.
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
    """Gives the engine's thread to one request after the other.

    Args:
        places: how many may wait.
        seconds: how long each.
    """

    def __init__(self, places: int, seconds: float) -> None:
        self.places = places
        self.seconds = seconds
        self._waiting = 0
        self._turn = asyncio.Semaphore(1)
        self._thread = ThreadPoolExecutor(1, "engine")
        self._first: Future[None] | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Do some work before all requests, which wait for it."""
        self._first = self._thread.submit(work)

    @property
    def is_ready(self) -> bool:
        """Whether the work before all requests is done."""
        return self._first is None or self._first.done()

    async def take(self, request: Request, work: Callable[[], T]) -> T:
        """Do some work when its turn has come.

        Raises:
            Refusal: if too many wait, it waits too long, or who asked has left. Nothing has been
                done then.
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
            if await request.is_disconnected():  # nobody would read what is paid for
                raise Refusal("busy")
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._turn.release()


class Rates:
    """Buckets that hold a minute's requests of each client and fill up evenly; all workers draw
    from them together.

    They lie in a file of SQLite, whose locks end with their process: who is killed holds none.

    Args:
        per_minute: requests of one client.
        path: the path of the file; None counts in this process alone.
        clock: seconds, the same in all processes.
    """

    def __init__(
        self, per_minute: int, path: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._buckets = sqlite3.connect(
            path or ":memory:", timeout=60, isolation_level=None, check_same_thread=False
        )
        self._buckets.execute("pragma synchronous = off")
        self._buckets.execute(
            "create table if not exists buckets (client text primary key, tokens real, at real)"
        )

    def take(self, client: str) -> float:
        """Take a request of a client: 0, or the seconds after which there is one to take."""
        full = float(self.per_minute)
        self._buckets.execute("begin immediate")
        now = self._clock()
        found = self._buckets.execute(
            "select tokens, at from buckets where client = ?", (client,)
        ).fetchone()
        tokens, at = found or (full, now)
        tokens = min(full, tokens + (now - at) * full / 60)
        taken = tokens >= 1
        self._buckets.execute(
            "insert or replace into buckets values (?, ?, ?)", (client, tokens - taken, now)
        )
        self._buckets.execute("commit")
        return 0.0 if taken else math.ceil((1 - tokens) * 60 / full)


# environment variable of the client library: where workers add up
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The counters of a worker, which the client library adds up over all of them."""

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
        self.texts = Counter("lexveil_texts", "Texts rewritten and handed out", registry=own)
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
