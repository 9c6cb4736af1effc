"""What an operator lets a service do: limits, fixed settings, who may ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from lexveil.errors import option
from lexveil.parameters import validated
from lexveil.request import BUDGETS, Count, Options, Positive, Request, Shown, partly

VARIABLE = "LEXVEIL_SERVICE"  # environment variable by which workers are told the terms, as JSON

LOCAL = ("127.0.0.1", "localhost", "[::1]")  # names of this machine in a Host header


def fixed_settings(written: Mapping[str, Any]) -> dict[str, object]:
    """Settings that an operator fixes, from texts as they were written.

    Raises:
        RequestError: if one has no value that a request can have.
    """
    fixed = validated(partly(Request), written, named=option, strict=False)
    return fixed.model_dump(include=set(written))


Limit = Annotated[Count, Field(ge=1, lt=2**31), Shown(metavar="N")]
Seconds = Annotated[Positive, Shown(metavar="S")]


class Listening(Options):
    """Where a service listens, and by how many processes."""

    host: Annotated[str, Shown(metavar="ADDRESS")] = Field(
        "127.0.0.1", description="address to listen at; any but this machine's own takes --keys and --allowed-host"
    )
    port: Annotated[Count, Field(ge=0, le=65535), Shown(metavar="N")] = Field(8750, description="to listen at")
    workers: Annotated[Count, Field(ge=1, le=256), Shown(metavar="N")] = Field(1, description="processes that answer")
    stop_seconds: Limit = Field(60, description="to wait for running requests when it is stopped")


class Terms(Options):
    """What an operator lets a service do."""

    model: str | None = Field(None, description="its name; None as of ``Model.load``")
    fixed: dict[str, object] = Field({}, description="fields of ``Request`` that requests cannot change")
    keys: str | None = Field(None, description="file of API keys; None asks for none")
    hosts: tuple[str, ...] = Field(LOCAL, description="names that a request's Host header may have")
    rates: str | None = Field(
        None, description="file in which workers count requests together; None counts in each by itself"
    )
    subjects: Literal["shared", "by-key"] = Field(
        "shared",
        description="shared: a subject's name is one person, whoever asks; by-key: each API key has subjects of its "
        "own, and a person known to two can spend the cap twice",
    )
    require_subjects: bool = Field(False, description="refuse requests that do not say whom texts are about")
    max_texts: Limit = Field(1000, description="texts of a request")
    max_bytes: Limit = Field(2**20, description="bytes of a request's body")
    per_minute: Annotated[Limit | None, Shown(metavar="N")] = Field(
        None, description="requests of an API key in a minute (default: no limit)"
    )
    queue: Limit = Field(64, description="requests that wait in one worker; more are refused")
    queue_seconds: Seconds = Field(30.0, description="to wait for a turn")
    ledger_seconds: Seconds = Field(20.0, description="to wait for other processes that use the ledger")
    wait_ready: bool = Field(
        False, description="answer nothing, GET /v1/health either, before the first worker is ready"
    )
    body_seconds: Seconds = Field(30.0, description="to wait for a request's body")

    @property
    def is_complete(self) -> bool:
        """Whether requests need no settings of their own."""
        return {"mechanism", "strategy"} <= set(self.fixed) and any(name in self.fixed for name in BUDGETS)
