"""What a client is told when it gets no texts: fixed words and numbers, never a part of what it sent."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import JSONResponse

MESSAGES = {
    "invalid_host": "the Host header is none of this service's names",
    "unauthorized": "give a valid API key: Authorization: Bearer KEY",
    "no_token": "no valid token: open the address that `lexveil explore` printed, all of it",
    "forbidden": "this API key is not for this address",
    "too_many_requests": "this API key has asked too often; ask again later",
    "too_large": "the request's body is larger than this service takes",
    "too_many_texts": "the request has more texts than this service takes at once",
    "slow": "the request's body did not arrive in time",
    "invalid": "the request is not valid; fields names what to change",
    "malformed": "the request cannot be read",
    "not_found": "there is nothing at this address",
    "not_allowed": "the address does not take this method",
    "fixed": "the operator has fixed this setting; leave it out",
    "incomplete": "name mechanism, strategy, and one of protection, epsilon, document_budget and recovery",
    "refused": "these settings cannot be used here; the operator finds the reason in the service's log",
    "exhausted": "the cap leaves nothing for at least one of the subjects; nothing was charged",
    "busy": "too many requests wait; ask again later",
    "unavailable": "the texts could not be rewritten; nothing was charged",
    "charged": "the texts were charged and could not be handed out: the epsilon stays spent",
    "failed": "the service failed",
}  # fmt: skip


class Refusal(Exception):
    """An answer without texts.

    Attributes:
        status: of HTTP.
        code: a key of ``MESSAGES``.
        charge: the ledger's transaction, if the texts were charged all the same.
        fields: what to change, as names of known fields and fixed words.
        retry_after: whole seconds.
    """

    def __init__(
        self,
        status: int,
        code: str,
        *,
        charge: str | None = None,
        fields: Sequence[tuple[str, str]] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code)
        self.status, self.code, self.charge, self.fields = status, code, charge, tuple(fields)
        self.retry_after = retry_after

    def response(self) -> JSONResponse:
        """The answer."""
        error: dict[str, object] = {
            "code": self.code, "message": MESSAGES[self.code], "charged": self.charge is not None
        }  # fmt: skip
        if self.charge is not None:
            error["charge"] = self.charge
        if self.fields:
            error["fields"] = [{"field": field, "message": message} for field, message in self.fields]
        headers = {}
        if self.retry_after is not None:
            headers["Retry-After"] = f"{max(1, self.retry_after):.0f}"
        if self.code == "unauthorized":
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse({"error": error}, self.status, headers)
