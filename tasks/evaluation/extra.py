"""Libraries that are not installed by default, because they bring a deep-learning framework with them."""

from __future__ import annotations

import importlib
from typing import Any

from tasks.errors import ParameterError

EXTRA = "neural"  # its name in pyproject.toml


def load(module: str, what: str) -> Any:
    """Import ``module``, which ``what`` needs.

    Raises:
        ParameterError: naming the extra, if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"{what} needs the package of {error.name}, which is not installed; run `uv sync --extra {EXTRA}`"
        ) from None
