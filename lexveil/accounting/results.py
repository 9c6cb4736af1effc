"""The base of typed results: frozen models with a JSON form and a JSON schema."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, StringConstraints

Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Number: TypeAlias = int | float  # as it was given: 5 stays 5


class Result(BaseModel):
    """A result that never changes. What was not set is not in its JSON form, which is not the same as null."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, use_attribute_docstrings=True)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
