"""What an operator lets a service do: limits, fixed settings, who may ask."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from lexveil.errors import option
from lexveil.parameters import validated
from lexveil.request import BUDGETS, Request, partly

VARIABLE = "LEXVEIL_SERVICE"  # environment variable by which workers are told the terms, as JSON

LOCAL = ("127.0.0.1", "localhost", "[::1]")  # names of this machine in a Host header


def fixed_settings(written: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that an operator fixes, from texts as they were written.

    Raises:
        RequestError: if one has no value that a request can have.
    """
    fixed = validated(partly(Request), written, named=option, strict=False)
    return fixed.model_dump(include=set(written))


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What an operator lets a service do.

    Attributes:
        model: its name; None as of ``Model.load``.
        fixed: fields of ``Request`` that requests cannot change.
        keys: the file of API keys; None asks for none.
        hosts: names that a request's Host header may have.
        subjects: whose budgets are one: ``shared``, a subject's name means the same person whoever asks; ``by-key``,
            each API key has subjects of its own.
        require_subjects: refuse requests that do not say whom texts are about.
        max_texts: of a request.
        max_bytes: of a request's body.
        per_minute: requests of a key; None for no limit.
        queue: requests that wait in one worker; more are refused.
        body_seconds: to wait for a request's body.
        queue_seconds: to wait for a turn.
        ledger_seconds: to wait for other processes that use the ledger.
        rates: the file in which workers count requests together; None counts in each by itself.
    """

    model: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    keys: str | None = None
    hosts: tuple[str, ...] = LOCAL
    subjects: Literal["shared", "by-key"] = "shared"
    require_subjects: bool = False
    max_texts: int = 1000
    max_bytes: int = 2**20
    per_minute: int | None = None
    queue: int = 64
    body_seconds: float = 30.0
    queue_seconds: float = 30.0
    ledger_seconds: float = 20.0
    rates: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether requests need no settings of their own."""
        return {"mechanism", "strategy"} <= set(self.fixed) and any(name in self.fixed for name in BUDGETS)

    def as_json(self) -> str:
        """For the environment of workers."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Self:
        """What ``as_json`` wrote."""
        values = json.loads(text)
        return cls(**values | {"hosts": tuple(values["hosts"])})
