"""Types of option values that several verbs share: how a value is read, and what is said of one that makes no sense."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import App, ArgumentCollection, Group, Parameter, Token

STRATEGIES = {"none": "none", "word": "S1", "gst-word-budget": "S2", "gst": "S3", "mst": "S4"} | {
    name: name for name in ("S1", "S2", "S3", "S4")
}


def reads(read: Callable[[str], Any]) -> Callable[[Any, Sequence[Token]], Any]:
    """Make a function of one written value the converter of a parameter."""
    return lambda _type, tokens: read(tokens[-1].value)


def a_number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def positive(text: str) -> float:
    """Read a finite number greater than 0."""
    value = a_number(text)
    if not 0 < value < math.inf:
        raise ValueError(f"{text} is not a finite number greater than 0")
    return value


def positive_or(word: str) -> Callable[[str], float | str]:
    """Return the reader of such a number, or of one word."""
    return lambda text: word if text == word else positive(text)


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    value = a_number(text)
    if not 0 <= value <= 1:
        raise ValueError(f"{text} does not lie between 0 and 1")
    return value


def whole(smallest: int, largest: int, noun: str) -> Callable[[str], int]:
    """Return the reader of a whole number within limits; ``noun`` is what the message calls it."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not smallest <= int(text) <= largest:
            raise ValueError(f"{text!r} is not {noun}")
        return int(text)

    return read


def strategy(text: str) -> str:
    """Read a strategy by either of its names; return the short one."""
    if text not in STRATEGIES:
        raise ValueError(f"there is no strategy {text!r}; there are none, S1, S2, S3, S4")
    return STRATEGIES[text]


def file_or_stream(text: str) -> str:
    """Read a path, or - for a standard stream."""
    if text.startswith("-") and text != "-":
        raise ValueError(f"there is no option {text}; a file of this name is ./{text}")
    return text


def several(read: Callable[[str], Any]) -> Callable[[Any, Sequence[Token]], Any]:
    """Make a converter of values with commas between them."""
    return lambda _type, tokens: tuple(read(part.strip()) for token in tokens for part in token.value.split(","))


def option(about: str, metavar: str | None = None, **more: Any) -> Parameter:
    """Return what the help says of a parameter, and how it calls its value."""
    return Parameter(help=about, **more) if metavar is None else Parameter(help=about, metavar=metavar, **more)


def actions(name: str, about: str) -> App:
    """Return a verb that has actions; ``about`` is its help."""
    return App(name=name, help=about, help_flags=[], version_flags=[])


def exclusive(name: str, *, required: bool = False) -> Group:
    """Return a group of options of which one at most can be given; exactly one where ``required``."""

    def check(arguments: ArgumentCollection) -> None:
        given = [
            next((token.keyword for token in each.tokens if token.keyword), each.name)
            for each in arguments
            if each.tokens
        ]
        if len(given) > 1:
            raise ValueError(f"argument {given[1]}: not allowed with argument {given[0]}")
        if required and not given:
            raise ValueError(f"one of the arguments {' '.join(each.name for each in arguments)} is required")

    return Group(name, validator=check, show=False)


ModelName = Annotated[
    str | None,
    option(
        "what gives the words: own, made by a run of this project, or a model by its name (default: own where there "
        "has been a run, else en)",
        "NAME",
    ),
]
Purposes = Annotated[
    tuple[str, ...],
    option(
        "keep more use for a purpose, as of sentiment: a scale of `lexveil purpose list`, or a file, with a weight "
        "(default 1); can be given several times",
        "NAME=W",
        name="--purpose",
    ),
]
Positive = Annotated[float, Parameter(converter=reads(positive))]
Share = Annotated[float, Parameter(converter=reads(share))]
Count = Annotated[
    int, Parameter(metavar="N", converter=reads(whole(1, 2**31 - 1, "a whole number from 1 to 2**31 - 1")))
]
Seed = Annotated[
    int, Parameter(metavar="N", converter=reads(whole(0, 2**63 - 1, "a whole number from 0 to 2**63 - 1")))
]
Port = Annotated[int, Parameter(metavar="N", converter=reads(whole(1, 65535, "a port (1 to 65535)")))]
Strategy = Annotated[str, Parameter(metavar="S", converter=reads(strategy))]
Stream = Annotated[str, Parameter(converter=reads(file_or_stream), allow_leading_hyphen=True)]
Json = Annotated[bool, Parameter(help="machine-readable output")]
Wait = Annotated[bool, Parameter(help="if a run is at work here, wait for its end")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ChosenModel:
    """What gives the words, and the purposes that their metric keeps."""

    model: ModelName = None
    purpose: Purposes = ()

    @property
    def name(self) -> str | None:
        """As ``Model.load`` takes it."""
        return "+".join([self.model or "", *self.purpose]) if self.purpose else self.model
