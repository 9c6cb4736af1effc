"""Options of an audit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lexveil.base.parameters import OneOf
from lexveil.core.mechanisms import mechanism_names
from lexveil.io.request import NUMBER, Count, Fraction, OptionHelp, Options, Positive

# confidence of a whole audit: a correct mechanism is flagged at most once in a thousand audits
CONFIDENCE = 0.999


class AuditRequest(Options):
    """Options of the audit of one mechanism. The audit also tests a second epsilon, at which it has
    the most power.
    """

    mechanism: Annotated[str, OneOf(mechanism_names), OptionHelp(metavar="M")] = Field(
        description="the mechanism whose claim is tested"
    )
    epsilon: Annotated[Positive, OptionHelp(metavar=NUMBER)] = Field(
        description="the claim: per token, in 1 / units of the metric; in releases, base epsilon"
    )
    strategy: Literal["S1", "S2", "S3", "S4", "S5"] = Field(
        "S1",
        description="strategy: S1 to S4 select the embedding of the words; S5 selects the "
        "sentences of a bank",
    )
    bank: Annotated[str | None, OptionHelp(metavar="BANK")] = Field(
        None,
        description="the bank whose sentences S5 draws (default: the bank of the project's run, "
        "otherwise the packaged bank)",
    )
    words: Annotated[Count, Field(ge=2), OptionHelp(metavar="N")] = Field(
        300,
        description="number of embedding words, drawn with a seed, that are compared pair by pair",
    )
    samples: Annotated[Count, Field(ge=200), OptionHelp(metavar="N")] = Field(
        20_000,
        description="draws per word of a toy vocabulary; a release contains each document a "
        "tenth as often",
    )
    mode: Literal["release", "experiment"] = Field(
        "release",
        description="source of the noise: the operating system (release), or the seed in "
        "params.yaml (experiment)",
    )
    confidence: Annotated[Fraction, OptionHelp(metavar=NUMBER)] = Field(
        CONFIDENCE, description="the probability that no bound of the whole audit is too high"
    )
    workers: Annotated[Count, Field(ge=1, le=64), OptionHelp(metavar="N")] = Field(
        2,
        description="with more than one, the audit also tests releases with this number of "
        "processes; a script that uses this must guard its main module",
    )
