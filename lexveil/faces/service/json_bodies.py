"""JSON bodies of requests, in which no object may repeat a key."""

from __future__ import annotations

import email.message
import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from lexveil.faces.service.refusals import Refusal


class DuplicateKey(json.JSONDecodeError):
    """Error for a JSON object with a repeated key, of whose two values different parsers take
    different ones.

    Attributes:
        key: the key, with its escapes resolved.
    """

    def __init__(self, key: str) -> None:
        # the error must not have the document, which contains texts
        super().__init__("duplicate key", "", 0)
        self.key = key


class JsonRequest(Request):
    """HTTP request that refuses JSON in which an object repeats a key."""

    async def json(self) -> Any:
        """Parse the body as JSON.

        Raises:
            DuplicateKey: if an object at any depth has a repeated key.
            json.JSONDecodeError: if the body is not JSON.
        """
        return json.loads(await self.body(), object_pairs_hook=_object)


class JsonRoute(APIRoute):
    """HTTP route that accepts only bodies whose Content-Type is JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that handles a request of this route."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            _require_json(request)
            return await handle(JsonRequest(request.scope, request.receive))

        return handler


def _require_json(request: Request) -> None:
    # Without this header, or with text as the type, a page of another origin could send a body, and
    # the browser would not ask this service first.
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal("encoded")
    kind = email.message.Message()
    kind["content-type"] = request.headers.get("content-type", "")
    subtype = kind.get_content_subtype()
    if kind.get_content_maintype() != "application" or not (
        subtype == "json" or subtype.endswith("+json")
    ):
        raise Refusal("not_json")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = set[str]()
        for key, _ in pairs:
            if key in keys:
                raise DuplicateKey(key)
            keys.add(key)
    return values
