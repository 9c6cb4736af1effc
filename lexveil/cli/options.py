"""Types of options that several verbs share. What each means stands in the docstrings of the verbs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import App, Group, Parameter
from cyclopts.validators import LimitedChoice, Number

STRATEGIES = {"word": "S1", "gst-word-budget": "S2", "gst": "S3", "mst": "S4"}  # other names of them

Count = Annotated[int, Parameter(metavar="N", validator=Number(gte=1, lt=2**31))]
Rows = Annotated[int, Parameter(metavar="N", validator=Number(gte=1, lte=1000))]
Port = Annotated[int, Parameter(metavar="N", validator=Number(gte=1, lte=65535))]
Share = Annotated[float, Parameter(validator=Number(gte=0, lte=1))]
Json = Annotated[bool, Parameter(help="machine-readable output")]
Wait = Annotated[bool, Parameter(help="if a run is at work here, wait for its end")]
Files = Parameter(consume_multiple=(1, None), metavar="FILE …")
ModelName = Annotated[
    str | None,
    Parameter(
        metavar="NAME",
        help="what gives the words: own, made by a run of this project, or a model by its name (default: own where "
        "there has been a run, else en)",
    ),
]


def actions(name: str, about: str | None = None) -> App:
    """Return a verb that has actions; ``about`` is its help, if it does nothing itself."""
    return App(name=name, help=about)


def exclusive(*, required: bool = False) -> Group:
    """Return a group of options of which one at most can be given; exactly one where ``required``."""
    title = "one of" if required else "at most one of"
    return Group(title, validator=LimitedChoice(int(required), 1))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ChosenModel:
    """What gives the words, and the purposes that their metric keeps."""

    model: ModelName = None
    purpose: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="NAME=W",
            help="keep more use for a purpose, as of sentiment: a scale of `lexveil purpose list`, or a file, with a "
            "weight (default 1); can be given several times",
        ),
    ] = ()

    @property
    def name(self) -> str | None:
        """As ``Model.load`` takes it."""
        return "+".join([self.model or "", *self.purpose]) if self.purpose else self.model


CHOSEN = ChosenModel()
