"""Registry of mechanisms: those of this package, and those of other installed packages."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from lexveil.base.errors import ParameterError
from lexveil.core.mechanisms import mechanism_names, own_names
from lexveil.core.mechanisms.base import REGISTERED, Mechanism, Space
from lexveil.core.mechanisms.installed import entries, load

__all__ = ["MECHANISMS", "Mechanism", "Space", "build_mechanism"]


class _Mechanisms(dict[str, Any]):
    """Mechanism classes by name. Access to a mechanism that could not be loaded raises an error
    with the reason.
    """

    def __missing__(self, name: str) -> Any:
        if name in entries() and name not in own_names():
            return load(name, Mechanism)
        raise KeyError(name)


def _found() -> _Mechanisms:
    """Find all mechanisms: those of this package sorted by name, then those of other packages
    sorted by name. A mechanism of another package that cannot be loaded is left out.
    """
    classes = _Mechanisms()
    for name in mechanism_names():
        if name in own_names():
            importlib.import_module(f"lexveil.core.mechanisms.{name}")
            classes[name] = REGISTERED[name]
            continue
        with suppress(ParameterError):
            classes[name] = load(name, Mechanism)
    return classes


# name -> class; a class states its properties, so they are known without building a mechanism
MECHANISMS: dict[str, Any] = _found()


def build_mechanism(
    name: str, space: Space, parameters: Mapping[str, Mapping[str, Any]] | None = None
) -> Mechanism:
    """Build the mechanism called ``name`` over the words of a space.

    Args:
        parameters: the parameters of each mechanism, by name; missing parameters have their
            defaults. ``rank_remap`` (enabled, c, ranks) applies to the mechanisms that add noise to
            a vector to choose their output.

    Raises:
        ParameterError: if there is no such mechanism, a parameter is out of range, or the space
            lacks data that the mechanism needs.
    """
    if name not in MECHANISMS and name not in entries():
        raise ParameterError(
            f"there is no mechanism {name!r}; choose from: none, {', '.join(MECHANISMS)}"
        )
    values = parameters or {}
    mechanism: Mechanism = MECHANISMS[name].build(space, values.get(name, {}))
    remap = dict(values.get("rank_remap", {}))
    return mechanism.remapped(space, remap) if remap.pop("enabled", False) else mechanism
