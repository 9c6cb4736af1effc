"""The form of the explore page: the settings of a request, the text, and the number of experiments
to draw.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import parse_qsl

from lexveil.base.errors import RequestError, option
from lexveil.core.protection import DEFAULT as DEFAULT_LEVEL
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.user_lists import installed_purposes
from lexveil.io.request import SENTENCES, Request
from lexveil.release.settings import Settings, of_every_token, settings_of

MOST = 10_000  # maximum characters of a text: a longer one would take too long
FIELDS = 40  # maximum number of fields of a form
DEFAULTS = {"protection": DEFAULT_LEVEL, "epsilon": "5", "recovery": "0.1"}
LARGEST = {"draws": 6, "seed": 2**53, "token": MOST}
# Texts with which the page opens. They were invented for the page, or have long been in the public
# domain. They refer to no real person.
SAMPLES: dict[str, str] = json.loads(
    Path(__file__).with_name("samples.json").read_text(encoding="utf-8")
)
PUBLIC = frozenset(SAMPLES.values())


class Row(NamedTuple):
    """A text and its position in a file, which is named as in `lexveil privatize`.

    Attributes:
        text: the text.
        file: name of the file, if there are several.
        number: number of the row, from 1.
        column: name of the column.
    """

    text: str
    file: str = ""
    number: int = 1
    column: str = "text"

    @property
    def name(self) -> str:
        """The name of the row on the page: the file, if there are several, and the row number."""
        return f"{self.file} row {self.number:,}".lstrip()


@dataclass(frozen=True, slots=True)
class Form:
    """The values of the explore page's form.

    Attributes:
        text: the text to rewrite.
        model: name of the model; empty for the default. A purpose (a scale such as sentiment that
            the metric preserves) follows after a +.
        request: options of the rewriting.
        draws: number of experiments to draw.
        seed: seed of the experiments.
        token: number of the selected token; None if none is selected.
    """

    text: str
    model: str
    request: Request
    draws: int = 3
    seed: int = 1
    token: int | None = None

    @classmethod
    def of(cls, **fields: str) -> Self:
        """Create a form from the values of its fields. Missing fields have the page's initial
        values.

        Raises:
            RequestError: if a field has an invalid value; the message contains nothing of the text.
        """
        text = fields.pop("text", "").replace("\r\n", "\n")  # forms send \r\n
        if len(text) > MOST:
            raise RequestError(
                f"the text is longer than {MOST:,} characters; take a part of it, or `lexveil "
                "privatize --preview`"
            )
        budget = fields.pop(
            "budget",
            next((name for name in ("epsilon", "recovery") if name in fields), "protection"),
        )
        fields = DEFAULTS | fields
        given = {
            name: value for name, value in fields.items() if value and name in Request.model_fields
        }
        given = {
            name: value for name, value in given.items() if name == budget or name not in DEFAULTS
        }
        if budget not in given:
            raise RequestError(f"{option(budget)} is empty; give a number")
        if given.get("strategy") == SENTENCES and given.get("protection") == DEFAULT_LEVEL:
            del given["protection"]  # as without a request, because some banks have no levels
        given.pop("seed", None)
        numbers = {name: _whole(name, fields[name]) for name in LARGEST if fields.get(name)}
        model = fields.get("model", "")
        purpose = fields.get("purpose", "")
        # Accept only names that the page offers, because another name could be the name of a file.
        if "+" in model or purpose not in ("", *installed_purposes()):
            raise RequestError(
                "there is no model or purpose of this name; choose one that the page offers"
            )
        model += f"+{purpose}=1" if purpose else ""
        return cls(text, model, Request.of(given, written=True, quotes=False), **numbers)

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Parse the body of a submitted form.

        Raises:
            RequestError: if the body cannot be parsed, or a field has an invalid value.
        """
        try:
            fields = parse_qsl(
                body.decode("utf-8"), keep_blank_values=True, max_num_fields=FIELDS, errors="strict"
            )
        except ValueError:
            raise RequestError("the form cannot be read; load the page again") from None
        return cls.of(**dict(fields))

    def of_all_tokens(self) -> Self:
        """Return a copy of the form without a selected token."""
        return replace(self, token=None)

    @property
    def looks_up_epsilon(self) -> bool:
        """Whether epsilon must be computed from a protection level or from a recovery (the share of
        words that an adversary may guess).
        """
        return self.request.recovery is not None or self.request.level is not None

    def settings(
        self, model: Model, found: float | None = None, *, is_release: bool = False
    ) -> Settings:
        """Return the settings of an experiment, or of the release that the page's suggested command
        would make.

        Args:
            model: the model whose project's files complete the form.
            found: epsilon of the protection level or of the recovery, if the request has one. No
                token gets a larger epsilon unless the request allows it, as in `lexveil privatize`.
            is_release: whether the settings are for a release.

        Raises:
            RequestError: if ``settings_of`` refuses the request.
        """
        update: dict[str, object] = {} if is_release else {"mode": "experiment", "seed": self.seed}
        level = self.request.level
        if found is not None and level is not None:
            update |= {"epsilon": found, "protection": None}
            request = self.request.model_copy(update=update)
            return of_every_token(settings_of(request, model.project), model, found)
        if found is not None:
            default = model.project.configuration.release.max_token_epsilon
            most = self.request.max_token_epsilon or default or found
            update |= {"epsilon": found, "recovery": None, "max_token_epsilon": most}
        return settings_of(self.request.model_copy(update=update), model.project)


def _whole(name: str, text: str) -> int:
    least = 1 if name == "draws" else 0
    if not text.isdigit() or not least <= int(text) <= LARGEST[name]:
        raise RequestError(f"{name}: must be a whole number from {least} to {LARGEST[name]:,}")
    return int(text)
