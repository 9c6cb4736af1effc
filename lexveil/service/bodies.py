"""What requests and answers hold, for validation and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from lexveil.accounting.record import PrivacyRecord
from lexveil.accounting.subject_keys import subject_key
from lexveil.errors import RequestError
from lexveil.formats.values import plain_value, text_value
from lexveil.mechanisms import mechanism_names
from lexveil.privatization.looking.inspect import TextsInspection

FIELDS = 10  # that an answer names at most
UNKNOWN = "(unknown)"  # a field by a name that the client made up, which may be a text
# What a request might ask for that no service gives.
NEVER = {"seed": "a service draws its noise from the operating system", "mode": "a service only makes releases"}
# By pydantic's name of the error; of any other one, that it is not valid.
WORDS = {
    "missing": "is required",
    "string_type": "must be a string",
    "string_unicode": "must be valid Unicode",
    "list_type": "must be a list",
    "bool_type": "must be true or false",
    "float_type": "must be a number",
    "finite_number": "must be finite",
    "greater_than": "is too small",
    "less_than": "is too large",
    "less_than_equal": "is too large",
    "too_short": "is too short",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "json_invalid": "must be JSON",
    "extra_forbidden": "there is no such field",
}


def _mechanism(name: str) -> str:
    names = mechanism_names()
    if name not in names:
        raise PydanticCustomError("choice", "must be one of {names}", {"names": ", ".join(names)})
    return name


def _text(text: str) -> str:
    try:
        text_value(text, "texts", "")
    except RequestError:
        raise PydanticCustomError("text", "holds a NUL character or an unpaired surrogate") from None
    return text


def _subject(name: str) -> str:
    try:
        is_blank = not subject_key(plain_value(name, "subjects", "") or "")
    except RequestError:
        raise PydanticCustomError("subject", "must be one line without NUL characters") from None
    if is_blank:
        raise PydanticCustomError("blank", "must say whom the text is about")
    return name


Text = Annotated[str, AfterValidator(_text)]
Positive = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]


class Body(BaseModel):
    """Of a request: nothing is converted, and nothing unknown is passed over."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SettingsBody(Body):
    """How texts are rewritten. What is left out is as the operator fixed it, or else as params.yaml has it."""

    mechanism: (
        Annotated[str, AfterValidator(_mechanism), Field(json_schema_extra={"enum": list(mechanism_names())})] | None
    ) = None
    strategy: Literal["S1", "S2", "S3", "S4"] | None = Field(
        None, description="S1: words; S2: collocations on the budget of words; S3: greedy; S4: by score"
    )
    epsilon: Positive | None = Field(None, description="base epsilon per word; or document_budget, or recovery")
    document_budget: Positive | None = Field(None, description="the budget of each text")
    recovery: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="the share of words that a best-informed reader is to name, if it was computed here before"
    )
    band: Literal["all", "function", "frequent", "middle", "rare"] | None = Field(
        None, description="of which words recovery is, by their public frequency"
    )
    average_words: Positive | None = Field(None, description="public number of words by which epsilon becomes a budget")
    max_token_epsilon: Positive | None = Field(None, description="the largest epsilon of a token")
    keep_layout: bool | None = Field(None, description="copy spacing and capitals; recorded as unprotected")
    consistent: bool | None = Field(None, description="replace equal words of a text alike, on one payment")
    stopwords: Literal["paper", "perturb", "keep", "drop", "sample"] | None = None
    punctuation: Literal["perturb", "keep", "drop", "sample"] | None = None
    oov: Literal["keep", "drop", "sample"] | None = Field(None, description="what happens to unknown words")

    def given(self) -> dict[str, Any]:
        """What the request asks for, by field of ``RewriteOptions``."""
        return self.model_dump(exclude_none=True)


class InspectBody(Body):
    """Texts to look at."""

    texts: list[Text | None] = Field(min_length=1, description="null is no text")
    settings: SettingsBody = SettingsBody()


class PrivatizeBody(InspectBody):
    """Texts to rewrite."""

    subjects: list[Annotated[str, AfterValidator(_subject)]] | None = Field(
        None,
        description="whom each text is about: whose budget it spends. Left out: each text is a subject of its own, "
        "known again by its content",
    )
    on_exhausted: Literal["withhold", "refuse"] | None = Field(
        None, description="of a subject without budget: null in place of its texts, or nothing at all"
    )


class PrivatizeAnswer(BaseModel):
    """Rewritten texts and their privacy record."""

    texts: list[str | None] = Field(description="in the order asked for; null was null, or was withheld")
    record: PrivacyRecord = Field(description="can be published with the texts")


class InspectAnswer(BaseModel):
    """What rewriting would do."""

    inspection: TextsInspection = Field(description="counts of the texts: as secret as they are")


class HealthAnswer(BaseModel):
    """Whether the service can serve."""

    status: Literal["ok", "unavailable"]
    version: str
    ledger: Literal["ok", "none yet", "failed"]


class FieldError(BaseModel):
    """What is wrong with a field, in fixed words."""

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


def problems(errors: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """What to say of pydantic's errors: known fields and positions, and fixed words; never a value."""
    for error in errors[:FIELDS]:
        place = [str(part) for part in error["loc"] if isinstance(part, int) or part in _KNOWN]
        if error["type"] == "json_invalid":
            place = []
        yield ".".join(place[1:]) or "body", _said(error)


def _said(error: Mapping[str, Any]) -> str:
    kind, last = error["type"], error["loc"][-1] if error["loc"] else ""
    if kind == "extra_forbidden":
        return f"{last}: {NEVER[last]}" if last in NEVER else WORDS[kind]
    if kind == "literal_error":
        return f"must be {error['ctx']['expected']}"
    if kind in ("choice", "text", "subject", "blank"):  # ours, made of our own words
        return str(error["msg"])
    return WORDS.get(kind, "is not valid")
