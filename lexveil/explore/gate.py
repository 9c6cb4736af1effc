"""Who is let in, and what answers say to browsers: the address has a token, and nothing comes from elsewhere."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE, STATIC = "/", "/static/"
HEADER = "x-lexveil-token"
NO_TOKEN = "No valid token: open the address that `lexveil explore` printed, all of it."
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
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),  # the address has the token
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Gate:
    """Lets in who knows the token: of the page in its address, of all else in a header, which no other site can send.

    A cookie would go to whatever else listens on this machine, at any port. What lies under ``STATIC`` is the same for
    everybody and open.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            await send(message)

        if not scope["path"].startswith(STATIC) and not hmac.compare_digest(self._given(scope), self.token):
            await PlainTextResponse(NO_TOKEN, 401)(scope, receive, sending)
            return
        await self.app(scope, receive, sending)

    @staticmethod
    def _given(scope: Scope) -> bytes:
        if scope["path"] == PAGE:
            given = dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=None)).get("token", "")
        else:
            given = Headers(scope=scope).get(HEADER, "")
        return str(given).encode()
