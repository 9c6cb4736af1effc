"""What the page asks for, as its fields say it."""

from __future__ import annotations

import shlex
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qsl

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lexveil.config import Params
from lexveil.errors import RequestError
from lexveil.mechanisms import mechanism_names
from lexveil.privatization.settings import RewriteOptions, Settings, make_settings

MOST = 10_000  # characters of a text: of more, every answer would take too long
FIELDS = 40  # of a form, at most
EMPTY = ("average_words", "max_token_epsilon")  # fields that may be: then it is as `lexveil privatize` has it
WORDS = {
    "text": f"the text is longer than {MOST:,} characters; take a part of it, or `lexveil privatize --preview`",
    "epsilon": "epsilon must be a number greater than 0",
    "recovery": "the recovery must lie between 0 and 1, both excluded",
    "average_words": "average words must be a number from 0.001 to 1,000,000,000, or empty",
    "max_token_epsilon": "the largest epsilon of a token must be a number from 1e-9 to 1e9, or empty",
}


def _mechanism(name: str) -> str:
    if name not in mechanism_names():
        raise ValueError
    return name


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n")  # forms send these


class Form(BaseModel):
    """The fields of the page; text by which values are given is converted."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: Annotated[str, AfterValidator(_line_ends), Field(max_length=MOST)] = ""
    model: Annotated[str, Field(max_length=200)] = ""
    mechanism: Annotated[str, AfterValidator(_mechanism)] = "tem"
    strategy: Literal["S1", "S2", "S3", "S4"] = "S3"
    budget: Literal["epsilon", "recovery"] = "epsilon"
    epsilon: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 5.0
    recovery: Annotated[float, Field(gt=0, lt=1)] = 0.1
    average_words: Annotated[float, Field(ge=1e-3, le=1e9, allow_inf_nan=False)] | None = None  # as of RewriteOptions
    max_token_epsilon: Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)] | None = None
    draws: Annotated[int, Field(ge=1, le=6)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 1
    stopwords: Literal["", "paper", "perturb", "keep", "drop", "sample"] = ""
    punctuation: Literal["", "perturb", "keep", "drop", "sample"] = ""
    oov: Literal["", "keep", "drop", "sample"] = ""
    keep_layout: bool = False
    consistent: bool = False
    token: Annotated[int, Field(ge=0, le=MOST)] | None = None

    @classmethod
    def read(cls, body: bytes) -> Self:
        """The fields of a form that was sent.

        Raises:
            RequestError: in words that hold nothing of what was sent.
        """
        try:
            text = body.decode("utf-8", "strict")
            given = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS, errors="strict"))
            return cls(**{name: value for name, value in given.items() if value or name not in EMPTY})
        except ValidationError as error:
            name = str(error.errors(include_input=False)[0]["loc"][0])
            raise RequestError(WORDS.get(name, f"{name} has a value that it cannot have")) from None
        except ValueError:
            raise RequestError("the form cannot be read") from None

    @property
    def policy(self) -> dict[str, Any]:
        """The fields of ``RewriteOptions`` beside the budget and the noise."""
        return {
            "mechanism": self.mechanism,
            "strategy": self.strategy,
            "stopwords": self.stopwords or None,
            "punctuation": self.punctuation or None,
            "oov": self.oov or None,
            "keep_layout": self.keep_layout,
            "consistent": self.consistent,
        }

    def settings(self, params: Params, found: float | None = None, *, is_release: bool = False) -> Settings:
        """What is asked for: an experiment, or the release that the command makes.

        Args:
            found: epsilon of the recovery, if one is asked for; no token gets more then unless the request says so, as
                in `lexveil privatize`.

        Raises:
            RequestError: as ``make_settings``.
        """
        options = RewriteOptions(
            **self.policy,
            epsilon=found or self.epsilon,
            average_words=self.average_words,
            max_token_epsilon=self.max_token_epsilon or (found and params.release.max_token_epsilon) or found,
            mode="release" if is_release else "experiment",
            seed=None if is_release else self.seed,
        )
        return make_settings(options, params)

    def command(self, file: str, column: str | None, model: str | None = None) -> str:
        """The command that does the same to a file, as a release.

        Args:
            model: where the form names none.
        """
        name = self.budget
        parts = ["lexveil", "privatize", file, "-o", "OUT", "--mechanism", self.mechanism, "--strategy", self.strategy]
        parts += [f"--{name}", shortest(getattr(self, name))]
        for field in ("average_words", "max_token_epsilon"):
            if value := getattr(self, field):
                parts += [f"--{field.replace('_', '-')}", shortest(value)]
        if column not in (None, "text"):
            parts += ["--text-column", str(column)]
        for field in ("stopwords", "punctuation", "oov"):
            if value := getattr(self, field):
                parts += [f"--{field}", value]
        parts += ["--keep-layout"] * self.keep_layout + ["--consistent", "document"] * self.consistent
        if named := self.model or model:
            parts += ["--model", named]
        return shlex.join(parts)


def shortest(number: float) -> str:
    """The shortest decimal that is this number and no other: what a command says, so that it does the same."""
    return repr(number).removesuffix(".0")
