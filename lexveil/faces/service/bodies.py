"""Schemas of the bodies of requests and responses, for validation and for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lexveil.base.errors import RequestError
from lexveil.base.parameters import ALIKE, nearest, refused, requirement
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.core.accounting.subject_keys import subject_key
from lexveil.io.formats.values import plain_value, text_value
from lexveil.io.request import (
    OF_SENTENCES,
    MechanismName,
    OnExhausted,
    Request,
    StrategyName,
    partly,
)
from lexveil.release.looking.inspect import TextsInspection

FIELDS = 10  # largest number of fields that an answer names
# Options that no service accepts from a request, with the reason.
NEVER = {
    "seed": "a service draws its noise from the operating system",
    "mode": "a service only makes releases",
}


def _text(text: str) -> str:
    try:
        text_value(text, "texts", "")
    except RequestError:
        raise refused("contains a NUL character or an unpaired surrogate") from None
    return text


def _subject(name: str) -> str:
    try:
        is_blank = not subject_key(plain_value(name, "subjects", "") or "")
    except RequestError:
        raise refused("must be one line without NUL characters") from None
    if is_blank:
        raise refused("must name the subject of the text")
    return name


Text = Annotated[str, AfterValidator(_text)]


ServedStrategy = Literal[StrategyName, "S5"]


class Body(BaseModel):
    """The body of a request. No value is converted, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


# Options that requests cannot set: the source of the noise, files of the operator's machine, and
# the detectors.
LEFT_OUT = frozenset(
    {
        *("mode", "seed", "without_guarantee", "on_exhausted", "workers", "spans_column"),
        *(
            "shares",
            "share_list",
            "detector",
            "spacy_model",
            "protect",
            "allow",
            "types",
            "pseudonyms",
        ),
        *OF_SENTENCES,
    }
)
_Settings: Any = partly(Request, LEFT_OUT, mechanism=MechanismName, strategy=ServedStrategy)


class SettingsBody(_Settings):  # type: ignore[misc]
    """Settings of the rewriting. An omitted setting has the value that the operator fixed, or else
    the value in the files of the operator's project.
    """

    def given(self) -> dict[str, object]:
        """Return the settings that the request sets, by their field names in ``Request``."""
        return self.model_dump(exclude_none=True)  # type: ignore[no-any-return]


class InspectBody(Body):
    """Texts to inspect."""

    texts: list[Text | None] = Field(min_length=1, description="null is not a text")
    settings: SettingsBody = SettingsBody()


class PrivatizeBody(InspectBody):
    """Texts to rewrite."""

    subjects: list[Annotated[str, AfterValidator(_subject)]] | None = Field(
        None,
        description="the subject of each text, whose budget the text spends. If it is "
        "omitted, each text is its own subject, which is recognized by its "
        "content",
    )
    on_exhausted: OnExhausted | None = Field(
        None,
        description="treatment of a subject without budget: its texts become null, or the "
        "whole request is refused",
    )


class PrivatizeAnswer(BaseModel):
    """Rewritten texts and their privacy record."""

    texts: list[str | None] = Field(
        description="in the order of the request; null if the text was null or was withheld"
    )
    record: PrivacyRecord = Field(description="can be published with the texts")


class InspectAnswer(BaseModel):
    """The effects that rewriting the texts would have."""

    inspection: TextsInspection = Field(
        description="counts of the texts, which are as secret as the texts"
    )
    in_words: list[str] = Field(
        description="the effect on each text, in the words of `lexveil inspect`, which are "
        "as secret as the texts"
    )


class HealthAnswer(BaseModel):
    """Whether the service can serve."""

    status: Literal["ok", "unavailable"]
    version: str
    ledger: Literal["ok", "failed"]


class ReadyAnswer(BaseModel):
    """Whether the worker that answers has loaded and compiled everything that requests with the
    fixed settings need.
    """

    status: Literal["ready", "starting"]
    version: str


class FieldError(BaseModel):
    """The fault of a field, in fixed words."""

    field: str
    message: str


class ErrorBody(BaseModel):
    """The reason why a request got no texts. It contains nothing of the request."""

    code: str
    message: str
    charged: bool = Field(description="whether the ledger was charged although there are no texts")
    charge: str | None = Field(None, description="the transaction of the ledger, if it was charged")
    fields: list[FieldError] | None = None


class ErrorAnswer(BaseModel):
    """An answer without texts."""

    error: ErrorBody


_KNOWN = {name for model in (PrivatizeBody, SettingsBody) for name in model.model_fields} | {"body"}


def problems(errors: Sequence[Any]) -> dict[str, str]:
    """Describe pydantic's validation errors in words, by field. The descriptions name only known
    fields and positions, and contain no value of the request.
    """
    said: dict[str, str] = {}
    for error in errors[:FIELDS]:
        steps = [str(part) for part in error["loc"] if isinstance(part, int) or part in _KNOWN]
        if error["type"] == "json_invalid":
            steps = []
        said.setdefault(".".join(steps[1:]) or "body", _words_of(error))
    return said


def _unknown(name: str, *, is_setting: bool) -> str:
    """Describe the error of an unknown field in an object.

    The description contains the field's name only if it is a name of the service, or similar to
    one, because a response must not quote a text that a client has sent by mistake.
    """
    body = list(PrivatizeBody.model_fields)
    settings = list(SettingsBody.model_fields)
    if name in NEVER:
        return f"{name}: {NEVER[name]}"
    if name in settings:
        return f"{name}: this field belongs into settings"
    if name in body:
        where = (
            "this field belongs outside of settings"
            if is_setting
            else "this field belongs to /v1/privatize"
        )
        return f"{name}: {where}"
    if name in Request.model_fields:
        return f"{name}: the operator chooses this setting, and no request can"
    here = settings if is_setting else body
    if near := nearest(name, here, ALIKE):
        return f"{name}: there is no such field; did you mean {near}?"
    return f"there is no such field; the fields are {', '.join(here)}"


def duplicate_problem(key: str) -> tuple[str, str]:
    """Return the name and the description of the error for a key that occurs twice in an object.
    The key is named only if it is a known field.
    """
    return (key if key in _KNOWN else "body", "is repeated in an object; give it once")


def _words_of(error: Any) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        return _unknown(str(error["loc"][-1]), is_setting="settings" in error["loc"][:-1])
    if kind in ("missing", "json_invalid"):
        return "is required" if kind == "missing" else "must be JSON"
    return requirement(error)
