"""The terms of a service: the limits, the fixed settings and the API keys that its operator
chooses.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from lexveil.base.errors import option
from lexveil.base.parameters import validated
from lexveil.io.request import (
    BUDGETS,
    NUMBER,
    SENTENCES,
    Count,
    OptionHelp,
    Options,
    Positive,
    Request,
    partly,
)

VARIABLE = "LEXVEIL_SERVICE"  # environment variable with the terms as JSON, for workers

LOCAL = ("127.0.0.1", "localhost", "[::1]")  # names of this machine in a Host header


def fixed_settings(written: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings that the operator fixes for all requests, parsed from command-line texts.

    Raises:
        RequestError: if a setting has a value that no request can have.
    """
    fixed = validated(partly(Request), written, named=option, strict=False)
    return fixed.model_dump(include=set(written))


Limit = Annotated[Count, Field(ge=1, lt=2**31), OptionHelp(metavar="N")]
Seconds = Annotated[Positive, OptionHelp(metavar=NUMBER)]


class Terms(Options):
    """The terms on which an operator lets a service answer requests."""

    model: str | None = None
    """name of the model; None for the default of ``Model.load``"""
    fixed: dict[str, object] = Field({})
    """fields of ``Request`` that requests cannot change"""
    host: Annotated[str, OptionHelp(metavar="ADDRESS")] = "127.0.0.1"
    """address to listen at; an address other than this machine's own needs --keys and
    --allowed-host"""
    port: Annotated[Count, Field(ge=0, le=65535), OptionHelp(metavar="N")] = 8750
    """port to listen at"""
    workers: Annotated[Count, Field(ge=1, le=256), OptionHelp(metavar="N")] = 1
    """number of worker processes"""
    stop_seconds: Limit = 60
    """seconds to wait for running requests at a stop"""
    keys: Annotated[str | None, OptionHelp(metavar="FILE")] = None
    """file of accepted API keys (default: every client that can reach the port is served)"""
    allowed_host: Annotated[tuple[str, ...], OptionHelp(metavar="NAME")] = ()
    """a host name by which requests address this service, besides localhost; * is any name,
    *.NAME any name below NAME; can be given several times"""
    subjects: Literal["shared", "by-key"] = "shared"
    """shared: equal subject names, or equal texts without a subject, are one subject for all
    clients, which can learn of each other by this; by-key: each API key has its own subjects,
    and a person known to two clients can spend the cap twice"""
    require_subjects: bool = False
    """refuse requests without subjects"""
    max_texts: Limit = 1000
    """largest number of texts in a request"""
    max_bytes: Limit = 2**20
    """largest size of a request's body, in bytes"""
    queue: Limit = 64
    """number of requests that may wait in one worker; further requests are refused"""
    queue_seconds: Seconds = 30.0
    """seconds that a request may wait in the queue"""
    ledger_seconds: Seconds = 20.0
    """seconds to wait for other processes that use the ledger"""
    wait_ready: bool = False
    """answer no request, not even GET /v1/health, before the first worker is ready"""

    @property
    def is_complete(self) -> bool:
        """Whether the operator fixed all settings, so that requests need none. For sentences this
        is always so, because they have a default epsilon.
        """
        if self.fixed.get("strategy") == SENTENCES:
            return True
        return {"mechanism", "strategy"} <= set(self.fixed) and any(
            name in self.fixed for name in BUDGETS
        )

    @property
    def is_open(self) -> bool:
        """Whether other machines can reach the service, by the address that it listens at."""
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host != "localhost"

    @model_validator(mode="after")
    def _names_hosts(self) -> Self:
        for name in self.allowed_host:
            if name != "*" and "*" in name.removeprefix("*."):
                raise ValueError(
                    f"{option('allowed_host')} {name}: write * alone, or *. before a name"
                )
        return self

    @model_validator(mode="after")
    def _asks_who(self) -> Self:
        if self.is_open and self.keys is None:
            raise ValueError(
                f"{option('host')} {self.host}: other machines could reach the service and "
                f"spend the ledger's budgets; give {option('keys')} FILE (`lexveil service "
                "key add NAME --keys FILE` makes the file)"
            )
        if self.is_open and not self.allowed_host:
            raise ValueError(
                f"{option('host')} {self.host}: give {option('allowed_host')} NAME, or * for "
                "any name"
            )
        if self.subjects == "by-key" and self.keys is None:
            raise ValueError(
                f"{option('subjects')} by-key needs API keys; give {option('keys')} FILE"
            )
        return self
