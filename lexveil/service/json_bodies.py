"""Bodies of requests as JSON: plain JSON, of which every key stands once in its object."""

from __future__ import annotations

import email.message
import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from lexveil.service.refusals import Refusal


class DuplicateKey(json.JSONDecodeError):
    """An object has a key twice: readers differ in which of the two values they take.

    Attributes:
        key: the key, as it is after its escapes are resolved.
    """

    def __init__(self, key: str) -> None:
        super().__init__("duplicate key", "", 0)  # without the document: it holds texts
        self.key = key


class JsonRequest(Request):
    """A request whose JSON is refused where a key stands twice in an object."""

    async def json(self) -> Any:
        """The body as values.

        Raises:
            DuplicateKey: if an object, however deep, has a key twice.
            json.JSONDecodeError: if the body is no JSON.
        """
        return json.loads(await self.body(), object_pairs_hook=_object)


class JsonRoute(APIRoute):
    """A route whose body is JSON and said to be."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            _require_json(request)
            return await handle(JsonRequest(request.scope, request.receive))

        return handler


def _require_json(request: Request) -> None:
    # A page of another origin can send a body without this header, or as text, and its browser
    # would not ask first.
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
