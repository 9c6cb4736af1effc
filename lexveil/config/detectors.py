"""Parameters of detectors, and of what happens to what they find: part of the section ``policy``."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from lexveil.parameters import Section, refused
from lexveil.request import FoundAction


class PresidioParams(Section):
    """Presidio as a detector: its pattern recognizers, which need no model, and NER by a model of spaCy of yours."""

    language: str = Field("en", description="of the texts, by its code")
    entities: list[str] = Field([], description="what is looked for, by Presidio's names; []: all that there is")
    countries: list[str] = Field(
        [], description="codes of the countries whose numbers are looked for, such as us; []: of all"
    )
    threshold: float = Field(
        0.3, ge=0, le=1, description="least score of a finding; below 0.3 many a number is taken for something"
    )
    spacy_model: str | None = Field(
        None, description="installed model of spaCy, or its folder, that finds names; null: patterns alone"
    )


class DetectionParams(Section):
    """What detectors look for in releases and previews, and what happens to it; runs of the graph look for nothing."""

    detector: Literal["presidio"] | None = Field(
        None, description="finds names, numbers and the like (docs/how-to/detectors.md); null: none"
    )
    types: dict[str, FoundAction] = Field(
        {}, description="what happens to what is found, by its type: {PHONE_NUMBER: digits}; others get a placeholder"
    )
    protect: str | None = Field(
        None, description="file of words and phrases that are found: one a line, below a heading [TYPE]; null: none"
    )
    allow: str | None = Field(None, description="file of words and phrases that nobody may claim; null: none")
    pseudonyms: str | None = Field(
        None,
        description="file of public names that pseudonyms are drawn from, in the form of protect; null: of PERSON, "
        "names of a census, where the package names is installed",
    )
    presidio: PresidioParams = Field(default_factory=PresidioParams)

    @field_validator("types")
    @classmethod
    def _are_names(cls, types: dict[str, FoundAction]) -> dict[str, FoundAction]:
        if not all(re.fullmatch(r"[A-Z][A-Z0-9_]{0,63}", name) for name in types):
            raise refused("types are names in capitals, such as PHONE_NUMBER")
        return types
