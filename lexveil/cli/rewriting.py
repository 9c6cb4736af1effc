"""The options of a request on the command line, derived from its fields."""

from __future__ import annotations

import shlex
import typing
from collections.abc import Iterator
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import Parameter
from pydantic.fields import FieldInfo

from lexveil.cli.options import option
from lexveil.errors import RequestError
from lexveil.errors import option as named
from lexveil.parameters import OneOf
from lexveil.request import FileRequest, Options, Request, Shown, shown_of

R = TypeVar("R", bound=Options)

NAMES = {"spans_column": "spans", "types": "type", "shares": "share", "form": "format"}  # that are no field's
STRATEGIES = {"word": "S1", "gst-word-budget": "S2", "gst": "S3", "mst": "S4"}  # other names of them


def option_name(name: str) -> str:
    """What the command line calls a field of a request."""
    return f"--{NAMES.get(name, name).replace('_', '-')}"


def options_of(model: type[Options], leave_out: tuple[str, ...] = (), optional: bool = False) -> Any:
    """A group of options, each a text as it was written or a flag, for the signature of a command.

    Args:
        leave_out: fields that the command does not take.
        optional: what is left out is None, and not the default of the request.
    """
    taken = {name: about for name, about in model.model_fields.items() if name not in leave_out}
    fields = [_option(name, about, shown_of(name, model), optional) for name, about in taken.items()]
    return Parameter(name="*")(
        make_dataclass("Options", fields, frozen=True, kw_only=True, namespace={"__module__": __name__})
    )


def _option(name: str, about: FieldInfo, shown: Shown, optional: bool) -> tuple[str, Any, Any]:
    choices = _choices(about.annotation)
    names = next((mark.names() for mark in about.metadata if isinstance(mark, OneOf)), [])
    meaning = f"{about.description or ''}{': ' if names else ''}{', '.join(names)}"
    metavar = "{" + ",".join(choices) + "}" if choices else shown.metavar
    more = {} if shown.group == "options" else {"group": shown.group}
    help_text = option(meaning, metavar, name=option_name(name), allow_leading_hyphen=True, **more)
    if about.annotation is bool:
        return name, Annotated[bool, option(meaning, name=option_name(name), **more)], field(default=False)
    kind: Any = tuple[str, ...] if isinstance(about.default, tuple) else str
    if about.is_required() and not optional:
        return name, Annotated[kind, help_text], field()
    default = None if optional or about.is_required() else about.get_default() or None
    default = str(default) if isinstance(default, int | float) else default
    return name, Annotated[kind | None, help_text], field(default=default)


def _choices(annotation: Any) -> list[str]:
    """The names that a field can have, if it can have no other value."""
    parts = typing.get_args(annotation) if typing.get_origin(annotation) is not Literal else (annotation,)
    literals = [part for part in parts if typing.get_origin(part) is Literal]
    if len(literals) != len([part for part in parts if part is not type(None)]):
        return []
    return [str(name) for literal in literals for name in typing.get_args(literal)]


def command_of(request: Request, file: str, column: str | None, model: str | None) -> str:
    """The command that releases a file by a request; it names also what is a default of today."""
    parts, always = ["lexveil", "privatize", file, "-o", "OUT"], ("protection", "mechanism", "strategy")
    for name, value in request.model_copy(update={"protection": request.level}):
        if value is True:
            parts.append(option_name(name))
        elif value is not None and (name in always or value != type(request).model_fields[name].default):
            parts += [option_name(name), _shortest(value) if isinstance(value, float) else str(value)]
    parts += ["--text-column", column] if column not in (None, "text") else []
    return shlex.join([*parts, *(["--model", model] if model else [])])


def _shortest(number: float) -> str:
    """The shortest decimal that is this number and no other, so that the command does the same."""
    return repr(number).removesuffix(".0")


def requested(options: Any, model: type[R], /, **fixed: Any) -> R:
    """The request that options make.

    Args:
        fixed: fields that the command itself says.

    Raises:
        RequestError: as ``Request.of``.
    """
    return model.of(written(options) | fixed, written=True)


def written(options: Any) -> dict[str, object]:
    """The options that were written, or have a default of the request, by field."""
    return dict(_written(options))


def _written(options: Any) -> Iterator[tuple[str, Any]]:
    for name in type(options).__dataclass_fields__:
        value = getattr(options, name)
        if value is None or value is False:
            continue
        if name == "strategy":
            value = STRATEGIES.get(value, value)
        yield name, _pairs(name, value) if name in ("types", "shares") else value


def _pairs(name: str, text: str) -> dict[str, str]:
    pairs = [part.strip().partition("=") for part in text.split(",")]
    if not all(key and value for key, _, value in pairs):
        raise RequestError(f"{named(name)} {text!r}: write it as {shown_of(name).metavar}")
    return {key: value for key, _, value in pairs}


if TYPE_CHECKING:

    class Rewriting: ...  # noqa: D101

    class Looking: ...  # noqa: D101

    class Fixed: ...  # noqa: D101
else:
    OF_OUTPUT = ("table", "if_exists", "formulas", "on_exhausted")
    OF_REQUESTS = ("mode", "seed", "without_guarantee", "spans_column", "on_exhausted", "workers")
    Rewriting = options_of(FileRequest)
    Looking = options_of(FileRequest, OF_OUTPUT)
    Fixed = options_of(Request, OF_REQUESTS, optional=True)
