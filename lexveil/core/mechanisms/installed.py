"""Mechanisms of other packages: entry points of the group ``lexveil.mechanisms``.

    [project.entry-points."lexveil.mechanisms"]
    mine = "my_package.mine:Mine"

Such a class is used as those of this package are, but nobody here has reviewed its proof: whatever
it claims, nothing is claimed of its outputs.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from lexveil.base.errors import ParameterError

GROUP = "lexveil.mechanisms"


@cache
def entries() -> dict[str, EntryPoint]:
    """Return the sorted entry points of installed mechanisms by name, without loading any."""
    entry_list = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return {entry.name: entry for entry in entry_list}


def load(name: str, base: type[Any]) -> type[Any]:
    """Load the class of an installed mechanism, which claims nothing.

    Args:
        base: the class that the mechanism must be derived from.

    Raises:
        ParameterError: if it cannot be imported, or is no mechanism of that name.
    """
    entry = entries()[name]
    package = entry.dist.metadata["Name"] if entry.dist else entry.module
    version = entry.dist.version if entry.dist else "of no version"
    where = f"mechanism {name}, of the package {package}"
    try:
        own = entry.load()
    except Exception as error:  # whatever another package does when it is imported
        raise ParameterError(
            f"{where}: cannot be imported ({type(error).__name__}); mend or uninstall the package"
        ) from None
    is_mechanism = isinstance(own, type) and issubclass(own, base)
    if not is_mechanism or getattr(own, "name", None) != name:
        raise ParameterError(
            f"{where}: {entry.value} is no mechanism of that name; it must be a class derived from "
            f'lexveil.core.mechanisms.base.Mechanism with name = "{name}"'
        )
    return _without_claim(own, f"not proven: it is of the package {package} {version}")


def _without_claim(own: type[Any], why: str) -> type[Any]:
    """Return the class with the reason why nothing is claimed, which its code cannot undo."""

    def reason(_: Any) -> str:
        return why

    def unproven(_: Any) -> bool:
        return False

    def ignored(_: Any, value: object) -> None:
        del value

    body = {"no_guarantee": property(reason, ignored), "is_proven": property(unproven)}
    attributes = {"__doc__": own.__doc__, "__module__": own.__module__}
    return type(own.__name__, (own,), body | attributes)
