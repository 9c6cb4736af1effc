"""Parameters of an audit request."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lexveil.base.parameters import OneOf
from lexveil.core.mechanisms import mechanism_names
from lexveil.io.request import NUMBER, Count, Fraction, OptionHelp, Options, Positive

# confidence of a whole audit: a correct mechanism is flagged at most once in a thousand audits
CONFIDENCE = 0.999


class AuditRequest(Options):
    """Request for an audit of one mechanism. The audit also tests a second epsilon, at which it has
    the most power.
    """

    mechanism: Annotated[str, OneOf(mechanism_names), OptionHelp(metavar="M")] = Field(
        description="whose claim is tested"
    )
    epsilon: Annotated[Positive, OptionHelp(metavar=NUMBER)] = Field(
        description="the claim: per token, in 1 / units of the metric; in releases, base epsilon"
    )
    strategy: Literal["S1", "S2", "S3", "S4", "S5"] = Field(
        "S1",
        description="S1, S2, S3 or S4; says which embedding the words are of; S5: sentences of a "
        "bank",
    )
    bank: Annotated[str | None, OptionHelp(metavar="BANK")] = Field(
        None,
        description="the bank of S5, whose sentences are drawn (default: that of the project's "
        "run, else the packaged one)",
    )
    words: Annotated[Count, Field(ge=2), OptionHelp(metavar="N")] = Field(
        300,
        description="seeded words of the embedding to compare pair by pair; all if it has fewer",
    )
    samples: Annotated[Count, Field(ge=200), OptionHelp(metavar="N")] = Field(
        20_000,
        description="draws per word of a toy; a release has a tenth as many of each document",
    )
    mode: Literal["release", "experiment"] = Field(
        "release",
        description="where the noise comes from: the operating system, or the seed in params.yaml",
    )
    confidence: Annotated[Fraction, OptionHelp(metavar=NUMBER)] = Field(
        CONFIDENCE, description="the probability, over the whole audit, that no bound is too high"
    )
    workers: Annotated[Count, Field(ge=1, le=64), OptionHelp(metavar="N")] = Field(
        2,
        description="with more than one, releases by so many processes are audited, too; a "
        "script that asks for it "
        "must guard its main module",
    )
