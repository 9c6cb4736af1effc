"""Parameters of the model that a project can hand on: what its card says, and what is left out of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lexveil.parameters import MODEL_NAME, Section

Name = Annotated[str, Field(pattern=rf"^{MODEL_NAME}$")]
Screen = Literal["patterns", "slurs", "names"]


class SourceParams(Section):
    """Where the text of one source of the corpus came from."""

    license: str = Field(min_length=1, description="its licence, and who states it")
    origin: str = Field("", description="where the text came from")


class ModelParams(Section):
    """The model of stage ``package_model``, which ``lexveil model export own`` hands on."""

    name: Name = Field("own", description="of the model: a-z, 0-9, _ and -")
    version: str = Field("1", pattern=r"^[0-9]+(\.[0-9]+){0,2}$", description="of the model: 1, 1.0 or 1.0.0")
    language: str = Field(
        "en",
        min_length=2,
        description="of the corpus, by whose rules all texts are cut: de, en, es, fr, it, nl, pt; of another one no "
        "function words and abbreviations are known",
    )
    license: str = Field(
        "none stated", min_length=1, description="under which the model may be used; it follows from its sources"
    )
    description: str = Field("", description="what it is, in a sentence")
    built: str = Field("none stated", description="date, as YYYY-MM-DD; no clock is asked, so that the bytes repeat")
    sources: dict[str, SourceParams] = Field({}, description="of the corpus, by their names in data/corpus")
    cleaning: list[str] = Field([], description="sentences on how the corpus was cleaned, for the card")
    known_faults: list[str] = Field([], description="sentences for the card")
    neighbours_of: list[str] = Field([], description="tokens whose nearest tokens the card shows")
    scale: Literal["none", "unit", "frequency"] = Field(
        "none",
        description="lengths of its vectors, by a rule of embeddings.scale; those of the embedding stay beside them, "
        "for trainings that begin with it; none: those of the embedding, which embeddings.scale has given",
    )
    min_documents: int = Field(
        5, ge=1, le=2**31, description="a token of fewer documents is left out, if the base does not have it"
    )
    max_tokens: int = Field(
        20_000,
        ge=2,
        le=2**31,
        description="what is beyond it is left out: rare collocations, then rare words",
    )
    screens: list[Screen] = Field(
        ["patterns"],
        description="what else is left out: patterns, whatever looks like a number, an address or a user name; slurs; "
        "names, full names of persons that are not public",
    )
