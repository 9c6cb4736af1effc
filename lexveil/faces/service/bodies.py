"""The fields of requests and answers, for validation and for the OpenAPI document."""

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

FIELDS = 10  # that an answer names at most
# What a request might ask for that no service gives.
NEVER = {
    "seed": "a service draws its noise from the operating system",
    "mode": "a service only makes releases",
}


def _text(text: str) -> str:
    try:
        text_value(text, "texts", "")
    except RequestError:
        raise refused("holds a NUL character or an unpaired surrogate") from None
    return text


def _subject(name: str) -> str:
    try:
        is_blank = not subject_key(plain_value(name, "subjects", "") or "")
    except RequestError:
        raise refused("must be one line without NUL characters") from None
    if is_blank:
        raise refused("must say whom the text is about")
    return name


Text = Annotated[str, AfterValidator(_text)]


ServedStrategy = Literal[StrategyName, "S5"]


class Body(BaseModel):
    """The body of a request: no value is converted, and no unknown field is passed over."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


# What no request of a client says: where the noise comes from, files of the operator's machine, and
# what is looked for.
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
    """How texts are rewritten. What is left out is as the operator fixed it, or else as the
    files of its project have it.
    """

    def given(self) -> dict[str, object]:
        """Return the settings that the request gives, by field of ``Request``."""
        return self.model_dump(exclude_none=True)  # type: ignore[no-any-return]


class InspectBody(Body):
    """Texts to look at."""

    texts: list[Text | None] = Field(min_length=1, description="null is no text")
    settings: SettingsBody = SettingsBody()


class PrivatizeBody(InspectBody):
    """Texts to rewrite."""

    subjects: list[Annotated[str, AfterValidator(_subject)]] | None = Field(
        None,
        description="whom each text is about: whose budget it spends. Left out: each text is "
        "a subject of its own, "
        "known again by its content",
    )
    on_exhausted: OnExhausted | None = Field(
        None,
        description="of a subject without budget: null in place of its texts, or nothing at all",
    )


class PrivatizeAnswer(BaseModel):
    """Rewritten texts and their privacy record."""

    texts: list[str | None] = Field(
        description="in the order asked for; null was null, or was withheld"
    )
    record: PrivacyRecord = Field(description="can be published with the texts")


class InspectAnswer(BaseModel):
    """The effects that rewriting the texts would have."""

    inspection: TextsInspection = Field(description="counts of the texts: as secret as they are")
    in_words: list[str] = Field(
        description="what would come of each text, as `lexveil inspect` says it; as secret"
    )


class HealthAnswer(BaseModel):
    """Whether the service can serve."""

    status: Literal["ok", "unavailable"]
    version: str
    ledger: Literal["ok", "failed"]


class ReadyAnswer(BaseModel):
    """Whether the worker that answers has loaded and compiled what requests of the fixed settings
    need.
    """

    status: Literal["ready", "starting"]
    version: str


class FieldError(BaseModel):
    """The fault of a field, in fixed words."""

    field: str
    message: str


class ErrorBody(BaseModel):
    """Why there are no texts. Nothing of the request is in it."""

    code: str
    message: str
    charged: bool = Field(description="whether the ledger was charged all the same")
    charge: str | None = Field(None, description="the ledger's transaction then")
    fields: list[FieldError] | None = None


class ErrorAnswer(BaseModel):
    """An answer without texts."""

    error: ErrorBody


_KNOWN = {name for model in (PrivatizeBody, SettingsBody) for name in model.model_fields} | {"body"}


def problems(errors: Sequence[Any]) -> dict[str, str]:
    """Return the problems that pydantic's errors name, by field: only known fields and positions
    are named, and no word holds a value.
    """
    said: dict[str, str] = {}
    for error in errors[:FIELDS]:
        steps = [str(part) for part in error["loc"] if isinstance(part, int) or part in _KNOWN]
        if error["type"] == "json_invalid":
            steps = []
        said.setdefault(".".join(steps[1:]) or "body", _words_of(error))
    return said


def _unknown(name: str, *, is_setting: bool) -> str:
    """Return the words about a field that an object does not have.

    They hold its name only where it is a word of ours, or nearly one: whatever a client has sent
    by mistake, no answer quotes it.
    """
    body = list(PrivatizeBody.model_fields)
    settings = list(SettingsBody.model_fields)
    if name in NEVER:
        return f"{name}: {NEVER[name]}"
    if name in settings:
        return f"{name}: belongs into settings"
    if name in body:
        where = "belongs beside settings, not into it" if is_setting else "is of /v1/privatize"
        return f"{name}: {where}"
    if name in Request.model_fields:
        return f"{name}: the operator chooses it, and no request does"
    here = settings if is_setting else body
    if near := nearest(name, here, ALIKE):
        return f"{name}: there is no such field; did you mean {near}?"
    return f"there is no such field; there are {', '.join(here)}"


def duplicate_problem(key: str) -> tuple[str, str]:
    """Return the problem of a key that stands twice in an object: only known keys are named."""
    return (key if key in _KNOWN else "body", "stands twice in an object; give it once")


def _words_of(error: Any) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        return _unknown(str(error["loc"][-1]), is_setting="settings" in error["loc"][:-1])
    if kind in ("missing", "json_invalid"):
        return "is required" if kind == "missing" else "must be JSON"
    return requirement(error)
