"""Error responses of the service. They consist of fixed words and numbers, and never contain a part
of the request.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import JSONResponse

# HTTP status and message, by code.
REFUSALS = {
    "malformed": (400, "the request cannot be read"),
    "unauthorized": (401, "give a valid API key: Authorization: Bearer KEY"),
    "no_token": (
        401,
        "the token is missing or not valid; open the whole address that `lexveil explore` printed",
    ),
    "forbidden": (403, "this API key has no permission for this address"),
    "not_found": (404, "there is no such address"),
    "not_allowed": (405, "the address does not accept this method"),
    "exhausted": (
        409,
        "the cap is too small for at least one of the subjects; nothing was charged",
    ),
    "too_large": (413, "the request's body is larger than this service accepts"),
    "too_many_texts": (413, "the request has more texts than this service accepts at once"),
    "encoded": (415, "the request's body is compressed; send it without Content-Encoding"),
    "not_json": (415, "send the body as JSON, with Content-Type: application/json"),
    "invalid": (422, "the request is not valid; `fields` names what to change"),
    "fixed": (422, "the operator has fixed this setting; omit it"),
    "incomplete": (
        422,
        "name mechanism, strategy, and one of protection, epsilon, document_budget and recovery",
    ),
    "refused": (
        422,
        "these settings cannot be used with this service; the service's log tells the "
        "operator the reason",
    ),
    "failed": (500, "the service failed; its log tells the operator the reason"),
    "charged": (500, "the texts were charged and could not be returned; the epsilon stays spent"),
    "busy": (503, "too many requests wait; ask again later"),
    "no_keys": (
        503,
        "the service cannot read its file of API keys, so it admits no request; its log "
        "names the file and the remedy for the operator",
    ),
    "unavailable": (503, "the texts could not be rewritten; nothing was charged"),
}


class Refusal(Exception):  # noqa: N818 - an answer
    """Refusal of a request: an error response, which contains no texts.

    Attributes:
        code: a key of ``REFUSALS``.
        charge: the ledger's transaction, if the texts were charged nevertheless.
        fields: the request's invalid fields, as pairs of the field's name and a fixed description
            of the error.
        retry_after: seconds until the client may try again.
    """

    def __init__(
        self,
        code: str,
        *,
        charge: str | None = None,
        fields: Sequence[tuple[str, str]] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.charge = charge
        self.fields = fields
        self.retry_after = retry_after

    def response(self) -> JSONResponse:
        """Return the refusal as an HTTP response with a JSON body."""
        status, message = REFUSALS[self.code]
        error: dict[str, object] = {
            "code": self.code,
            "message": message,
            "charged": self.charge is not None,
        }
        if self.charge is not None:
            error["charge"] = self.charge
        if self.fields:
            error["fields"] = [
                {"field": field, "message": message} for field, message in self.fields
            ]
        headers = {"WWW-Authenticate": "Bearer"} if self.code == "unauthorized" else {}
        if self.code == "malformed":  # the time when the next request can start is unknown
            headers["Connection"] = "close"
        if self.retry_after is not None:
            headers["Retry-After"] = f"{max(1, self.retry_after):.0f}"
        return JSONResponse({"error": error}, status, headers)
