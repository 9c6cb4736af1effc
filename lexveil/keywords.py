"""Messages of the Python API: what the command line calls an option is a keyword argument there.

Requests are checked where the command line and the API meet, and messages name what to change by its option. Here, and
nowhere else, they are put into the words of who calls a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from lexveil.errors import RequestError

P = ParamSpec("P")
T = TypeVar("T")

# Commands in back quotes stay as they are: they are to be typed.
_OPTION = re.compile(r"`[^`]*`|(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")
OTHER_NAMES = {"type": "types", "share": "shares", "format": "form"}


def in_keywords(message: str, names: Mapping[str, str] = OTHER_NAMES) -> str:
    """A message with keyword arguments in place of options: ``--document-budget`` is ``document_budget``.

    Args:
        names: of arguments that are not called as their options are.
    """

    def keyword(match: re.Match[str]) -> str:
        option = match[1]
        return match[0] if option is None else names.get(option, option.replace("-", "_"))

    return _OPTION.sub(keyword, message)


def speaks_in_keywords(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let the errors of a function name its keyword arguments.

    Args:
        names: further arguments that are not called as their options are, option by option with _ for -.
    """
    other = OTHER_NAMES | {option.replace("_", "-"): name for option, name in names.items()}

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except RequestError as error:
                error.args = tuple(in_keywords(part, other) if isinstance(part, str) else part for part in error.args)
                raise

        return call

    return decorate
