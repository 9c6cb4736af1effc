"""Parameters as pydantic models: each field has its type, default, range and meaning. Errors say
how to correct a value.
"""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from lexveil.base.errors import ParameterError

S = TypeVar("S", bound="Section")
T = TypeVar("T", bound=Hashable)

ALIKE = 0.85  # least similarity (difflib) of a name that is taken for a misspelt one
MODEL_NAME = r"[a-z][a-z0-9_-]{0,62}"  # name of a packaged model
LIST = r".+@[0-9a-f]{12}"  # a user's file with its hash


def with_purposes(model: str | None, purposes: str | Iterable[str]) -> str | None:
    """Return a model name with purposes appended, in the syntax of ``Model.load``. A purpose is a
    word scale, such as sentiment, that the rewriting preserves. The result is None for the default
    model without purposes.
    """
    named = [purposes] if isinstance(purposes, str) else list(purposes)
    return "+".join([model or "", *named]) if named else model


# Requirement by pydantic's error type, where we do not use pydantic's own message.
TYPES = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "be true or false"),
    "string_type": "be text",
    "finite_number": "be finite",
}
STRUCTURE = {
    **dict.fromkeys(("list_type", "too_short"), "a list with at least one entry"),
    "dict_type": "a mapping of names to values; {} is the empty mapping",
    **dict.fromkeys(("model_type", "model_attributes_type"), "a mapping of keys to values"),
}
LIMITS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number")


class Section(BaseModel):
    """Base class of a group of parameters, as a pydantic model. Instances are immutable. An unknown
    key is an error, and values are not converted: the number 1 is not accepted as a text, nor
    ``true`` as a number.

    The option ``defer_build`` is set because some fields accept the names in a registry, which is
    loaded only when a value is validated.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, defer_build=True, allow_inf_nan=False
    )

    @classmethod
    def resolved(cls) -> type[Section]:
        """Return the section class with all of its fields. A subclass whose fields come from a
        registry returns the class that has these fields.
        """
        return cls


# File name -> section that describes the whole file.
FILES = dict[str, type[Section]]()


def of_file(name: str) -> Callable[[type[S]], type[S]]:
    """Return a decorator that registers a section class as the model of a whole configuration file,
    by the file's name.
    """

    def register(section: type[S]) -> type[S]:
        FILES[name] = section
        return section

    return register


def places_of(key: str) -> list[str]:
    """Return the configuration files and sections in which a key occurs, for example "lexveil.toml
    [machine]".
    """
    return [
        _place(name, within) for name, section in FILES.items() for within in _within(section, key)
    ]


def _place(file: str, section: str) -> str:
    """Return a file and one of its sections as a text, such as "lexveil.toml [machine]"."""
    if not section:
        return file
    return f"{file} [{section}]" if file.endswith(".toml") else f"{file}, {section}"


def _within(section: type[Section], key: str, name: str = "") -> Iterator[str]:
    """Yield the names of the sections within a section that contain a key."""
    fields = fields_of(section)
    if key in fields:
        yield name
    for inner, field in fields.items():
        if (kind := section_of(field)) is not None:
            yield from _within(kind, key, f"{name}.{inner}" if name else inner)


class Documented(Section):
    """Section in which every field has a docstring. Help and reference show these docstrings as
    descriptions.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Join the lines of each field's description into one line."""
        for field in cls.model_fields.values():
            field.description = field.description and " ".join(field.description.split())


class OneOf:
    """Type annotation of a text field whose value must be a name in a registry. The registry is
    loaded only when a value is validated.
    """

    def __init__(self, names: Callable[[], list[str]]) -> None:
        self.names = names

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.literal_schema(list(self.names()))


def refused(message: str) -> PydanticCustomError:
    """Return the error with which a field's validator rejects a value. The message is a clause with
    its own subject; it is shown after "KEY is VALUE; ".
    """
    return PydanticCustomError("refused", "{message}", {"message": message})


def matching(pattern: str, message: str) -> AfterValidator:
    """Return a validator that requires a text to match a pattern; null is accepted."""

    def check(text: str | None) -> str | None:
        if text is not None and not re.fullmatch(pattern, text):
            raise refused(message)
        return text

    return AfterValidator(check)


# A user's public list.
ListFile = Annotated[
    str,
    matching(
        LIST,
        "it must be FILE@HASH, the first 12 digits of the file's sha256 (sha256sum FILE), so that "
        "a change of the file is detected",
    ),
]


def _distinct(items: list[T]) -> list[T]:
    for i, item in enumerate(items):
        if item in items[:i]:
            raise refused(f"it repeats {item}")
    return items


# a list of different values
Several = Annotated[list[T], Field(min_length=1), AfterValidator(_distinct)]


def validated(
    model: type[S],
    raw: object,
    source: str = "",
    *,
    named: Callable[[str], str] = str,
    by_name: bool = False,
    strict: bool = True,
    quotes: bool = True,
) -> S:
    """Validate plain values and return them as an instance of a section.

    Args:
        source: file name at the beginning of messages; empty for values that come from no file.
        named: function that returns the name of the section in messages.
        by_name: keys are names of fields. Otherwise they are aliases, which a file needs where
            Python reserves a name.
        strict: a number written as a text is an error.
        quotes: messages show the value. Otherwise they contain no part of it.

    Raises:
        ParameterError: naming the key, the requirement, and the nearest valid key or value.
    """
    try:
        by_alias = False if by_name else None
        return model.model_validate(raw, strict=strict, by_name=by_name or None, by_alias=by_alias)
    except ValidationError as error:
        # A misspelt key causes two errors, missing and unknown; the second one helps more.
        errors = error.errors(include_url=False)
        worst = max(
            errors, key=lambda error: (error["type"] == "extra_forbidden", len(error["loc"]))
        )
        message = _message(model, worst, named, quotes)
        if worst["type"] == "extra_forbidden":
            key = str(worst["loc"][-1])
            message = _placed(message, key, places_of(key) if model in FILES.values() else [])
        raise ParameterError(f"{source}: {message}" if source else message) from None


def _message(
    model: type[Section], error: ErrorDetails, named: Callable[[str], str], quotes: bool
) -> str:
    location = error["loc"]
    kind = error["type"]
    raw = error["input"]
    section, field, key = _resolve(model, location, named)
    if kind == "value_error":  # raised for a whole section; its message names the keys
        return str(error["ctx"]["error"])
    if kind == "missing":
        return f"{key} is missing"
    if kind == "extra_forbidden":
        near = nearest(str(location[-1]), fields_of(section))
        hint = _resolve(model, (*location[:-1], near), named)[2] if near else ""
        return f"unknown key {key}" + (
            f"; did you mean {hint}?" if hint else "; no key is valid here"
        )
    must = requirement(error, field)
    if kind == "literal_error" and quotes and isinstance(raw, str):
        must += f" (nearest: {nearest(raw, _choices(error))})"
    # A field without ``repr`` may hold a password.
    if not quotes or kind in STRUCTURE or (field and not field.repr):
        return f"{key or 'the file'} {must.removeprefix('it ')}"
    return (
        f"{key} is {raw if kind in LIMITS else repr(raw)}; "
        f"{f'it {must}' if must.startswith('must ') else must}"
    )


def _placed(message: str, key: str, places: list[str]) -> str:
    """Return the message about an unknown key, with the files and sections where this key is valid.
    In that case a differently named key is proposed only if the two names are very similar.
    """
    if not places:
        return message
    unknown, _, hint = message.partition("; did you mean ")
    proposed = hint.rstrip("?")
    listed = " and in ".join(places)
    if nearest(key, [proposed.rpartition(".")[2]], ALIKE):
        return f"{message} The key {key} stands in {listed}"
    return f"{unknown}; this key stands in {listed}"


def nearest(written: str, names: Iterable[str], least: float = 0.0) -> str:
    """Return the name that is most similar to a text, ignoring case; return an empty text if no
    name is similar enough.

    Args:
        least: the least similarity, from 0 to 1.
    """
    cased = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(written.casefold(), cased, n=1, cutoff=least)
    return cased[near[0]] if near else ""


def requirement(error: ErrorDetails, field: FieldInfo | None = None) -> str:
    """Return the requirement that a rejected value fails, in words that reveal nothing of the
    value.
    """
    kind = error["type"]
    if kind == "refused":
        return str(error["ctx"]["message"])
    if kind in STRUCTURE:
        return f"must be {STRUCTURE[kind]}"
    if kind == "literal_error":
        return f"must be one of {', '.join(_choices(error))}"
    words = (
        [word for kind in typing.get_args(field.annotation) for word in _words(kind)]
        if field
        else []
    )
    other = "".join(f", or be {word}" for word in words)
    limits = limits_of(field) if field else ""
    if kind in LIMITS and limits:
        return f"must {f'lie between {limits}' if ' and ' in limits else f'be {limits}'}{other}"
    return f"must {TYPES.get(kind) or error['msg'].removeprefix('Input should ')}{other}"


def _choices(error: ErrorDetails) -> list[str]:
    return re.findall(r"'([^']*)'", error["ctx"]["expected"])


def _words(kind: Any) -> tuple[Any, ...]:
    """Return the texts that a field accepts in place of a number, such as "none"."""
    return typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()


def _resolve(
    model: type[Section], location: tuple[int | str, ...], named: Callable[[str], str]
) -> tuple[type[Section], FieldInfo | None, str]:
    """Return the section and the field in which pydantic found an error, and the key in the
    notation of a file, for example a.b[2].
    """
    section: type[Section] | None = model
    last = model
    field = None
    key = ""
    for step in location:
        if isinstance(step, int):
            key += f"[{step}]"
        elif step == "[key]":
            key += ", a name"
        elif section is not None or field is None or not _is_union(field.annotation):
            key = f"{key}.{step}" if key else named(step)
            if section is not None and (field := fields_of(section).get(step)):
                section = section_of(field)
                last = section or last
    return last, field, key


def fields_of(section: type[Section]) -> dict[str, FieldInfo]:
    """Return the fields of a section by their keys in a file."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


def section_of(field: FieldInfo) -> type[Section] | None:
    """Return the section class of a field; None if the field holds a plain value."""
    kind = field.annotation
    return kind.resolved() if isinstance(kind, type) and issubclass(kind, Section) else None


def _is_union(annotation: Any) -> bool:
    """Return whether an annotation is a union of several types besides null. Pydantic adds a step
    for each of these types to the location of an error.
    """
    kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
    return typing.get_origin(annotation) in (types.UnionType, typing.Union) and len(kinds) > 1


def limits_of(field: FieldInfo) -> str:
    """Return the range of a field in words, such as "1 and 1000" or "at least 1"; empty if the
    field has no range.
    """
    bounds = {
        name: f"{value:g}" if isinstance(value, float) else str(value)
        for mark in _metadata(field)
        for name in ("ge", "gt", "le", "lt")
        if (value := getattr(mark, name, None)) is not None
    }
    low = bounds.get("ge") or ("gt" in bounds and f"{bounds['gt']} (excluded)")
    high = bounds.get("le") or ("lt" in bounds and f"{bounds['lt']} (excluded)")
    return f"{low} and {high}" if low and high else f"at least {low}" if low else ""


def _metadata(kind: Any) -> Iterator[Any]:
    """Yield the constraint objects in the annotation of a field, including those of nested
    types.
    """
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
