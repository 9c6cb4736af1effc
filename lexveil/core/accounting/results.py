"""Base class of typed results: immutable models with a JSON form and a JSON schema."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# keeps the type of the input: the whole number 5 does not become 5.0
Number: TypeAlias = int | float

ATTRIBUTES = "\n\nAttributes:\n"
_LINE_BREAK = re.compile(r"(?<!\n)\n(?!\n)")  # line break within a paragraph
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


class Result(BaseModel):
    """Base class of immutable results. A field that was not set is missing from the JSON form; a
    missing field differs from null.
    """

    # Validators are built when a class is first used, because building all of them takes too long.
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Add to the JSON schema the field descriptions of the docstring's Attributes section."""
        shown = handler(schema)
        resolved = handler.resolve_ref_schema(shown)
        about = (inspect.getdoc(cls) or "").partition(ATTRIBUTES)[0]
        resolved["description"] = _LINE_BREAK.sub(" ", about)
        properties = resolved["properties"]
        for base in reversed(cls.__mro__):
            _, _, attributes = inspect.cleandoc(base.__dict__.get("__doc__") or "").partition(
                ATTRIBUTES
            )
            for name, meaning in _ATTRIBUTE.findall(attributes):
                if name in cls.model_fields:
                    key = cls.model_fields[name].alias
                    field = properties[key if key in properties else name]
                    field.setdefault("description", " ".join(meaning.split()))
        return shown

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
