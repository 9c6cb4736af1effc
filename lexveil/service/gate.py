"""What every request passes before a route sees it, as plain ASGI: an answer to any error, the key, rate and size."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Sequence
from typing import Any

from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexveil.errors import LexveilError
from lexveil.runtime.crash import crash_report
from lexveil.service.keys import Keys
from lexveil.service.metrics import Metrics
from lexveil.service.rates import Rates
from lexveil.service.refusals import Refusal

LOG = logging.getLogger("lexveil.service")
EVERYBODY = "(no keys)"  # the client's name where no keys are asked for; no key can have it
METRICS = "/metrics"
HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]


class Outermost:
    """Answers whatever is raised, logs each request by its route, and counts it.

    A path that no route has may be anything, so it is neither logged nor counted by its name.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            await send(message)

        try:
            await self.app(scope, receive, sending)
        except Exception as error:
            refusal = error if isinstance(error, Refusal) else Refusal(500, "failed")
            if refusal is not error:
                LOG.error("%s", crash_report(error))
            if status:  # half an answer is out: the connection ends without the rest
                raise _Broken from None
            await refusal.response()(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "-")
            seconds = time.perf_counter() - start
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            client = scope["state"].get("client") or "-"
            LOG.info("%s %s %d %.0f ms key=%s", _method(scope), route, status, 1000 * seconds, client)


class _Broken(Exception):
    """An answer that could not be finished; says nothing."""


def _method(scope: Scope) -> str:
    method = scope["method"]
    return method if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS") else "-"


class Hosts:
    """Lets in requests for this service's names, against pages that make their own name one of it (DNS rebinding).

    Starlette judges the Host header. What it would answer itself is plain text, so it is not let speak.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str]) -> None:
        self.app = app
        self._judge = TrustedHostMiddleware(_say_nothing, allowed_hosts=list(names), www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        refusal: list[Message] = []

        async def hear(message: Message) -> None:
            refusal.append(message)

        await self._judge(scope, receive, hear)
        if refusal:
            raise Refusal(400, "invalid_host")
        await self.app(scope, receive, send)


async def _say_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """What a request reaches that is let in."""


class Door:
    """Lets in who has a key, no more often than agreed.

    Args:
        keys: None lets everybody in.
        open_paths: that need no key.
    """

    def __init__(self, app: ASGIApp, keys: Keys | None, rates: Rates | None, open_paths: Collection[str] = ()) -> None:
        self.app, self.keys, self.rates, self.open_paths = app, keys, rates, frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"] not in self.open_paths:
            self._check(scope)
        await self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        client = EVERYBODY
        if self.keys is not None:
            kind, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
            try:
                found = self.keys.find(key.strip()) if kind.lower() == "bearer" else None
            except LexveilError as error:
                LOG.error("%s", error)
                raise Refusal(503, "unavailable") from None
            if found is None:
                raise Refusal(401, "unauthorized")
            scope["state"]["client"] = client = found.name
            if (found.role == "metrics") != (scope["path"] == METRICS):
                raise Refusal(403, "forbidden")
        if self.rates is not None and scope["path"] != METRICS and (seconds := self.rates.take(client)):
            raise Refusal(429, "too_many_requests", retry_after=seconds)


class Intake:
    """Takes a request's body, no longer and no larger than agreed, before anything looks at it."""

    def __init__(self, app: ASGIApp, max_bytes: int, seconds: float) -> None:
        self.app, self.max_bytes, self.seconds = app, max_bytes, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdigit() or len(declared) > 18 or int(declared) > self.max_bytes:
            raise Refusal(413, "too_large")
        try:
            async with asyncio.timeout(self.seconds):
                body = await self._read(receive)
        except TimeoutError:
            raise Refusal(408, "slow") from None
        if body is None:  # the client has left
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return waiting.pop() if waiting else await receive()

        await self.app(scope, again, send)

    async def _read(self, receive: Receive) -> bytes | None:
        parts, size = [], 0
        while True:
            message: dict[str, Any] = dict(await receive())
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.max_bytes:
                raise Refusal(413, "too_large")
            if not message.get("more_body", False):
                return b"".join(parts)
