"""Options that several verbs share, and command-line options that are derived from the fields of a
request.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import App, Group, Parameter
from cyclopts.validators import LimitedChoice, Number
from pydantic.fields import FieldInfo

from lexveil.base.errors import RequestError, option
from lexveil.base.parameters import OneOf, with_purposes
from lexveil.io.request import (
    NUMBER,
    SENTENCES,
    FileRequest,
    Options,
    Request,
    choices_of,
    shown_of,
)

# other option names for fields of a request
STRATEGIES = {"word": "S1", "gst-word-budget": "S2", "gst": "S3", "mst": "S4", "sentence": "S5"}


def _no_option(_: Any, text: str | None) -> None:
    if text and text.startswith("-") and text != "-":
        raise ValueError(f"there is no option {text}; for a file of this name, write ./{text}")


# a path, or - for a stream
Stream = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_no_option)]
Count = Annotated[int, Parameter(metavar="N", validator=Number(gte=1, lt=2**31))]
Rows = Annotated[int, Parameter(metavar="N", validator=Number(gte=1, lte=1000))]
Port = Annotated[int, Parameter(metavar="N", validator=Number(gte=1, lte=65535))]
Share = Annotated[float, Parameter(metavar=NUMBER, validator=Number(gte=0, lte=1))]
Json = Annotated[bool, Parameter(help="machine-readable output")]
Wait = Annotated[
    bool, Parameter(help="if a run is in progress in this project, wait until it ends")
]
Files = Parameter(consume_multiple=(1, None), metavar="FILE …")
ModelName = Annotated[
    str | None,
    Parameter(
        metavar="NAME",
        help="the model: own, which a run of this project made, or the name of another "
        "model (default: own after a run, else en)",
    ),
]


def actions(name: str, about: str | None = None) -> App:
    """Create a verb that has actions (subcommands). ``about`` is its help; ``about`` is None if the
    verb does something without an action.
    """
    return App(name=name, help=about, default_parameter=Parameter(negative=""))


def exclusive(*, required: bool = False) -> Group:
    """Create a group of options that exclude each other. With ``required``, exactly one of them
    must be given.
    """
    title = "one of" if required else "at most one of"
    return Group(title, validator=LimitedChoice(int(required), 1))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ChosenModel:
    """Options that choose the model that provides the words, and the purposes (scales such as
    sentiment) that its metric preserves.
    """

    model: ModelName = None
    purpose: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="NAME=W",
            help="keep more utility for a purpose, such as sentiment: a scale of `lexveil "
            "purpose list`, or a file, "
            "with a weight (default 1); can be given several times",
        ),
    ] = ()

    @property
    def name(self) -> str | None:
        """The name of the model with its purposes, in the form that ``Model.load`` takes, or None
        for the default model.
        """
        return with_purposes(self.model, self.purpose)


CHOSEN = ChosenModel()


R = TypeVar("R", bound=Options)

# options that belong to no field of a request
NAMES = {"spans_column": "spans", "types": "type", "shares": "share", "form": "format"}


_TEXT_COLUMN = "--text-column"


def option_name(name: str) -> str:
    """Return the name of the command-line option that sets a field of a request."""
    return f"--{NAMES.get(name, name).replace('_', '-')}"


def options_of(
    model: type[Options], leave_out: tuple[str, ...] = (), optional: bool = False
) -> Any:
    """Create a dataclass of command-line options from the fields of a request. Each option is a
    flag, or a text as the user wrote it.

    Args:
        leave_out: fields of the request that get no option.
        optional: whether an omitted option is None; otherwise it has the default of the request.
    """
    fields = [
        _option(name, about, optional)
        for name, about in model.model_fields.items()
        if name not in leave_out
    ]
    return Parameter(name="*")(
        make_dataclass(
            "Options", fields, frozen=True, kw_only=True, namespace={"__module__": __name__}
        )
    )


def _option(name: str, about: FieldInfo, optional: bool) -> tuple[str, Any, Any]:
    shown = shown_of(about)
    if about.annotation is bool:
        flag = Parameter(name=option_name(name), help=about.description, group=shown.group)
        return name, Annotated[bool, flag], field(default=False)
    choices = choices_of(about)
    names = next(
        (f": {', '.join(mark.names())}" for mark in about.metadata if isinstance(mark, OneOf)), ""
    )
    written = Parameter(
        name=option_name(name),
        help=f"{about.description}{names}",
        metavar="{" + ",".join(choices) + "}" if choices else shown.metavar,
        allow_leading_hyphen=True,
        group=shown.group,
    )
    kind: Any = tuple[str, ...] if isinstance(about.default, tuple) else str
    if about.is_required():
        return name, Annotated[kind, written], field()
    default = None if optional or shown.follows_strategy else about.default or None
    if isinstance(default, int | float):
        default = str(default)
    return name, Annotated[kind | None, written], field(default=default)


def command_of(request: Request, file: str, columns: Sequence[str], model: str | None) -> str:
    """Return the command line that releases a file by a request. It also states the current
    defaults, so that a later change of a default does not change its meaning.
    """
    parts = ["lexveil", "privatize", file, "-o", "OUT"]
    always = ("protection", "mechanism", "strategy")
    # omit a default level of sentences, because the bank may lack it
    level = request.protection if request.strategy == SENTENCES else request.level
    for name, value in request.model_copy(update={"protection": level}):
        if value is True:
            parts.append(option_name(name))
        elif value is not None and (
            name in always or value != type(request).model_fields[name].default
        ):
            parts += [option_name(name), _written(value)]
    parts += _naming(columns) if [*columns] != ["text"] else []
    return shlex.join([*parts, *(["--model", model] if model else [])])


def named_columns(columns: Sequence[str]) -> str:
    """Return the command-line options that name the text columns."""
    return shlex.join(_naming(columns))


def _naming(columns: Sequence[str]) -> list[str]:
    return [part for column in columns for part in (_TEXT_COLUMN, column)]


def _written(value: Any) -> str:
    """Return a value as text for the command line. A number is written as the shortest decimal that
    represents it exactly.
    """
    if isinstance(value, dict):
        return ",".join(f"{key}={_written(part)}" for key, part in value.items())
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def requested(options: Any, model: type[R], /, **fixed: Any) -> R:
    """Create the request that the given command-line options describe.

    Args:
        fixed: fields that the command itself sets.

    Raises:
        RequestError: if ``Request.of`` rejects the options.
    """
    return model.of(written(options) | fixed, written=True)


def written(options: Any) -> dict[str, object]:
    """Return the options that the user gave or that have a default, as a mapping from the field of
    the request.
    """
    values = {name: getattr(options, name) for name in type(options).__dataclass_fields__}
    values = {
        name: value for name, value in values.items() if value is not None and value is not False
    }
    if "strategy" in values:
        values["strategy"] = STRATEGIES.get(values["strategy"], values["strategy"])
    return values | {
        name: _pairs(name, values[name]) for name in ("types", "shares") if name in values
    }


def _pairs(name: str, text: str) -> dict[str, str]:
    pairs = [part.strip().partition("=") for part in text.split(",")]
    if not all(key and value for key, _, value in pairs):
        raise RequestError(f"{option(name)} {text!r}: write it as NAME=VALUE,NAME=VALUE")
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
