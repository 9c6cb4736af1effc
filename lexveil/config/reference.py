"""The reference of params.yaml, rendered from the models."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from lexveil.config import Params
from lexveil.parameters import OneOf, Section, fields_of, limits_of, section_of

HEAD = """# Parameters

Every key of `params.yaml`: type, default, range and meaning. Written by `python .ci/reference.py --write` from the
models in `lexveil/config/` and `lexveil/mechanisms/`; do not edit. A key may be left out if it has a default.
"""
NAMES = {int: "whole number", float: "number", str: "text", bool: "true or false", types.NoneType: "null"}


def parameter_reference() -> str:
    """All parameters as Markdown: a table for each section."""
    parts = [HEAD]
    for title, section in _sections(Params, ""):
        rows = [_row(key, field) for key, field in fields_of(section).items() if section_of(field) is None]
        if rows:
            about = " ".join((section.__doc__ or "").replace("``", "`").split())
            table = "\n".join(["| key | type | default | range | meaning |", "| --- | --- | --- | --- | --- |", *rows])
            parts.append(f"## {title or 'Top level'}\n\n{about}\n\n{table}\n")
    return "\n".join(parts)


def _sections(section: type[Section], prefix: str) -> Iterator[tuple[str, type[Section]]]:
    yield prefix, section
    for key, field in fields_of(section).items():
        if (inner := section_of(field)) is not None:
            yield from _sections(inner, f"{prefix}.{key}" if prefix else key)


def _row(key: str, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    shown = "required" if default is PydanticUndefined else f"`{json.dumps(default)}`"
    limits = limits_of(field).replace(" and ", " to ")
    cells = [f"`{key}`", _kind(field.annotation, field.metadata), shown, limits, field.description or ""]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _kind(annotation: Any, metadata: typing.Sequence[Any] = ()) -> str:
    """The type of a field in words, or what it must be one of."""
    for mark in metadata:
        if isinstance(mark, OneOf):
            return ", ".join(f"`{name}`" for name in mark.names())
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _kind(inner[0], inner[1:])
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in inner)
    if origin is list:
        return f"list of: {_kind(inner[0])}"
    if origin is dict:
        return f"names with: {_kind(inner[1])}"
    if inner:
        return " or ".join(_kind(kind) for kind in inner)
    return NAMES.get(annotation, str(annotation))
