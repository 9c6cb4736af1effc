"""Parameters as models: type, default, range and meaning stand beside each field, and errors name the way out."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from lexveil.errors import ParameterError

S = TypeVar("S", bound="Section")
T = TypeVar("T", bound=Hashable)

MODEL_NAME = r"[a-z][a-z0-9_-]{0,62}"  # of a packaged model
LIST = r".+@[0-9a-f]{12}"  # a file of the user

INBOX = (  # keys that the section release had once
    "source sql attach id_column ids text_columns subject_column spans_column columns mechanism strategy epsilon "
    "document_budget recovery gate archive operator"
).split()

# Keys of earlier versions: what to do, where it is not renaming.
MOVED = {"grid.recovery": "write its levels into grid.epsilons, 0.2 as r0.2"}
RENAMED = {
    "lists": "word_orders",
    "embeddings.normalize": "embeddings.scale",
    "release.ledger": "ledger.folder",
    **{f"release.{key}": f"ledger.{key}" for key in ("cap", "anchor", "keys", "on_exhausted")},
    "release.publish": "inbox.archive",
    "release.recovery_band": "inbox.band",
    **{f"release.{key}": f"inbox.{key}" for key in INBOX},
}

TYPES = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
}
LIMITS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number")


class Section(BaseModel):
    """Parameters that belong together. They never change; an unknown key is an error; 1 is no text and true no number.

    ``defer_build``: the choices of some fields are names in a registry, which is loaded when a value is checked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True, allow_inf_nan=False)

    @classmethod
    def resolved(cls) -> type[Section]:
        """The section itself; of one whose fields come from a registry, the one with these fields."""
        return cls


class OneOf:
    """Marks a text as one of the names in a registry, which is not loaded before a value is checked."""

    def __init__(self, names: Callable[[], list[str]]) -> None:
        self.names = names

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.literal_schema(list(self.names()))


def refused(message: str) -> PydanticCustomError:
    """The error of a field's own validator: shown after "KEY is VALUE; "."""
    return PydanticCustomError("refused", "{message}", {"message": message})


def _hashed(name: str) -> str:
    if not re.fullmatch(LIST, name):
        raise refused(
            "it must be null or FILE@HASH, the first 12 digits of the file's sha256 (sha256sum FILE), so that a change "
            "of its content is seen"
        )
    return name


ListFile = Annotated[str, AfterValidator(_hashed)]  # a public list of the user, FILE@HASH


def _distinct(items: list[T]) -> list[T]:
    for i, item in enumerate(items):
        if item in items[:i]:
            raise PydanticCustomError("repeated", "{at}", {"at": i, "item": item})
    return items


Distinct = Annotated[list[T], AfterValidator(_distinct)]  # a list of different values, or an empty one
Several = Annotated[list[T], Field(min_length=1), AfterValidator(_distinct)]  # a list of different values


def validated(
    model: type[S],
    raw: object,
    source: str = "",
    prefix: str = "",
    by_name: bool = False,
    named: Callable[[str], str] = str,
    strict: bool = True,
    quotes: bool = True,
) -> S:
    """Build a section from plain values.

    Args:
        source: the file that messages begin with; empty for values that are in none.
        prefix: of the keys in messages.
        by_name: keys are names of fields, and not the aliases that a file has where Python reserves a name.
        named: what messages call a key of the section itself.
        strict: texts are no numbers.
        quotes: messages show the value; without, they hold nothing of it.

    Raises:
        ParameterError: naming the key, what was expected, and the nearest valid key or value.
    """
    try:
        by_alias = False if by_name else None
        return model.model_validate(raw, strict=strict, by_name=by_name or None, by_alias=by_alias)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        # A misspelt key is missing and unknown; the latter says more.
        worst = max(errors, key=lambda error: (error["type"] == "extra_forbidden", len(error["loc"])))
        message = _moved(errors, prefix) or _message(model, worst, prefix, named, quotes)
        raise ParameterError(f"{source}: {message}" if source else message) from None


def _moved(errors: Sequence[ErrorDetails], prefix: str) -> str:
    """What several keys of an earlier version are called now; empty if they are not several."""
    keys = [prefix + ".".join(map(str, error["loc"])) for error in errors if error["type"] == "extra_forbidden"]
    moved = [f"{key} is called {RENAMED[key]}" for key in keys if key in RENAMED]
    return f"keys have moved: {', '.join(moved)}; move them" if len(moved) > 1 else ""


def _message(model: type[Section], error: ErrorDetails, prefix: str, named: Callable[[str], str], quotes: bool) -> str:
    location, kind, raw = error["loc"], error["type"], error["input"]
    section, field, key = _resolve(model, location, prefix, named)
    context: Mapping[str, Any] = error.get("ctx", {})
    it = f"{key} is {raw!r}; it" if quotes else key
    if kind == "missing":
        return f"{key} is missing"
    if kind == "extra_forbidden":
        return f"{_unknown(section, key)}"
    if kind == "value_error":  # of a whole section: names its keys
        return f"{context['error']}"
    if kind == "repeated":
        return f"{key}[{context['at']}] repeats {context['item']}"
    if kind in ("list_type", "too_short"):
        return f"{key} must be a list with at least one entry"
    if kind == "dict_type":
        return f"{key} must be a mapping of names to values; {{}} is one without any"
    if kind in ("model_type", "model_attributes_type"):
        return f"{key or 'the file'} must be a mapping of keys to values"
    if kind == "refused":
        return f"{key} is {raw!r}; {context['message']}" if quotes else f"{key}: {context['message']}"
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"])
        near = difflib.get_close_matches(str(raw), allowed, n=1, cutoff=0.0)
        nearest = f" (nearest: {near[0]})" if quotes else ""
        return f"{it} must be one of {', '.join(allowed)}{nearest}"
    other = "".join(f", or be {word}" for word in _words(field))
    if kind in LIMITS:
        limits = f"lie between {span}" if " and " in (span := limits_of(field)) else span and f"be {span}"
        it = f"{key} is {raw}; it" if quotes else key
        return f"{it} must {limits or 'be finite'}{other}"
    return f"{it} must be {TYPES.get(kind, error['msg'])}{other}"


def _resolve(
    model: type[Section], location: tuple[int | str, ...], prefix: str, name_of: Callable[[str], str] = str
) -> tuple[type[Section], Any, str]:
    """The section and the field that a location in an error leads to, and its key as a file has it: a.b[2]."""
    section, field, key = model, None, prefix.rstrip(".")
    is_section = True
    for step in location:
        named = fields_of(section) if is_section else {}
        if isinstance(step, int):
            key += f"[{step}]"
        elif step in named:
            field = named[step]
            key = f"{key}.{step}" if key else name_of(step)
            inner = section_of(field)
            section, is_section = inner or section, inner is not None
        elif field is None or not _is_union(field.annotation):
            key = f"{key}, a name" if step == "[key]" else f"{key}.{step}" if key else step
    return section, field, key


def _words(field: Any) -> Iterator[str]:
    """The words that a field takes in place of a number."""
    if isinstance(field, FieldInfo):
        for kind in typing.get_args(field.annotation):
            if typing.get_origin(kind) is typing.Literal:
                yield from typing.get_args(kind)


def _unknown(section: type[Section], key: str) -> str:
    if key in MOVED:
        return f"there is no {key} any more: {MOVED[key]}"
    if key in RENAMED:
        return f"{key} is called {RENAMED[key]} now; rename it"
    group, _, name = key.rpartition(".")
    near = difflib.get_close_matches(name, list(fields_of(section)), n=1, cutoff=0.0)
    dotted = f"{group}." if group else ""
    return f"unknown key {key}; did you mean {dotted}{near[0]}?" if near else f"unknown key {key}; there is none here"


def fields_of(section: type[Section]) -> dict[str, FieldInfo]:
    """The fields of a section by their keys in a file."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


def section_of(field: FieldInfo) -> type[Section] | None:
    """The section that a field holds, if it does."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, Section):
        return kind.resolved()
    return None


def _is_union(annotation: Any) -> bool:
    """Whether an annotation is one of several kinds of value, beside null, each a step of an error's location."""
    kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
    return typing.get_origin(annotation) in (types.UnionType, typing.Union) and len(kinds) > 1


def limits_of(field: FieldInfo) -> str:
    """The range of a field in words, "1 and 1000" or "at least 1"; empty without one."""
    low = high = ""
    for limit in _metadata(field):
        if (least := getattr(limit, "ge", None)) is not None:
            low = f"{_number(least)}"
        elif (least := getattr(limit, "gt", None)) is not None:
            low = f"{_number(least)} (excluded)"
        elif (most := getattr(limit, "le", None)) is not None:
            high = f"{_number(most)}"
        elif (most := getattr(limit, "lt", None)) is not None:
            high = f"{_number(most)} (excluded)"
    return f"{low} and {high}" if low and high else low and f"at least {low}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _metadata(kind: Any) -> Iterator[Any]:
    """What constrains a field or the values in it."""
    if isinstance(kind, FieldInfo):
        yield from kind.metadata
        yield from _metadata(kind.annotation)
        return
    for item in typing.get_args(kind):
        if isinstance(item, FieldInfo):
            yield from item.metadata
        elif typing.get_origin(kind) is Annotated:
            yield item
        yield from _metadata(item)
