"""What every request passes before a route sees it, as plain ASGI: an answer to any error, the key, rate and size."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Collection, Sequence
from typing import ClassVar, Protocol
from urllib.parse import parse_qsl

from starlette.applications import Starlette
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
PAGE, STATIC = "/", "/static/"
TOKEN_HEADER = "x-lexveil-token"
HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)


class ErrorMiddleware:
    """Answers whatever is raised, logs each request by its route, and counts it.

    A path that no route has may be anything, so it is neither logged nor counted by its name.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self.app, self.metrics, self.headers = app, metrics, [*HEADERS, *headers]

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
                message = {**message, "headers": [*message["headers"], *self.headers]}
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


class HostMiddleware:
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


class Access(Protocol):
    """Decides who is let in."""

    headers: ClassVar[Sequence[tuple[bytes, bytes]]]  # of every answer

    def admit(self, scope: Scope) -> None:
        """Let a request in.

        Raises:
            Refusal: if it is not let in.
        """


class KeyAccess:
    """Lets in who has an API key, no more often than agreed.

    Args:
        keys: None lets everybody in.
        open_paths: that need no key.
    """

    headers: ClassVar[Sequence[tuple[bytes, bytes]]] = ()

    def __init__(self, keys: Keys | None, rates: Rates | None, open_paths: Collection[str] = ()) -> None:
        self.keys, self.rates, self.open_paths = keys, rates, frozenset(open_paths)

    def admit(self, scope: Scope) -> None:
        """Let in who has a key."""
        if scope["path"] in self.open_paths:
            return
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


class TokenAccess:
    """Lets in who knows a token: of the page in its address, of all else in a header, which no other site can send.

    A cookie would go to whatever else listens on this machine, at any port. What lies under ``STATIC`` is the same for
    everybody and open. Browsers are told to fetch nothing from elsewhere.
    """

    headers: ClassVar[Sequence[tuple[bytes, bytes]]] = (
        (b"content-security-policy", POLICY.encode()),
        (b"referrer-policy", b"no-referrer"),  # the address has the token
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    )

    def __init__(self, token: str) -> None:
        self.token = token.encode()

    def admit(self, scope: Scope) -> None:
        """Let in who knows the token."""
        if not scope["path"].startswith(STATIC) and not hmac.compare_digest(self._given(scope), self.token):
            raise Refusal(401, "no_token")

    @staticmethod
    def _given(scope: Scope) -> bytes:
        if scope["path"] == PAGE:
            query = dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=None))
            return str(query.get("token", "")).encode()
        return Headers(scope=scope).get(TOKEN_HEADER, "").encode()


class AuthMiddleware:
    """Lets in whom ``access`` admits."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            self.access.admit(scope)
        await self.app(scope, receive, send)


class BodyLimitMiddleware:
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
            message = dict(await receive())
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.max_bytes:
                raise Refusal(413, "too_large")
            if not message.get("more_body", False):
                return b"".join(parts)


def add_gates(
    app: Starlette, access: Access, hosts: Sequence[str], limits: tuple[int, float], metrics: Metrics
) -> None:
    """Put before an application what every request passes.

    Args:
        hosts: names that a Host header may have.
        limits: bytes of a body, and seconds to wait for it.
    """
    max_bytes, seconds = limits
    # The last that is added stands outermost.
    app.add_middleware(BodyLimitMiddleware, max_bytes=max_bytes, seconds=seconds)
    app.add_middleware(AuthMiddleware, access=access)
    app.add_middleware(HostMiddleware, names=hosts)
    app.add_middleware(ErrorMiddleware, metrics=metrics, headers=access.headers)
