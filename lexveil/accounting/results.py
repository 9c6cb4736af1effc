"""The base of typed results: frozen models with a JSON form and a JSON schema."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Number: TypeAlias = int | float  # as it was given: 5 stays 5


class Result(BaseModel):
    """A result that never changes. What was not set is not in its JSON form, which is not the same as null."""

    # Validators are made of the classes that a process uses, when it does: there are too many to wait for all.
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """What stands below a field describes it. It is read from the source here, so that no import reads it."""
        shown = handler(schema)
        properties = handler.resolve_ref_schema(shown).get("properties", {})
        for name, meaning in _meanings(cls).items():
            key = cls.model_fields[name].alias
            properties[key if key in properties else name].setdefault("description", meaning)
        return shown

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _meanings(model: type[Result]) -> dict[str, str]:
    """The strings below the fields of a result, by field."""
    meanings = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, Result):
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        for field, below in pairwise(getattr(body, "body", ())):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    meanings[name] = inspect.cleandoc(text)
    return meanings
