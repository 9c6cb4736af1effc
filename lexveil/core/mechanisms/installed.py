"""Mechanisms of other installed packages: entry points of the group ``lexveil.mechanisms``.

    [project.entry-points."lexveil.mechanisms"]
    mine = "my_package.mine:Mine"

Such a class is used in the same way as the mechanisms of this package. But its proof was not
reviewed for Lexveil, so no guarantee is stated for its outputs, whatever the class claims.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from lexveil.base.errors import ParameterError

GROUP = "lexveil.mechanisms"


@cache
def entries() -> dict[str, EntryPoint]:
    """Return the entry points of the mechanisms in other packages, sorted by name, without loading
    any.
    """
    entry_list = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return {entry.name: entry for entry in entry_list}


def load(name: str, base: type[Any]) -> type[Any]:
    """Load the mechanism class of another installed package, without its privacy claims.

    Args:
        base: the class from which the mechanism must be derived.

    Raises:
        ParameterError: if the class cannot be imported, or is not a mechanism of that name.
    """
    entry = entries()[name]
    package = entry.dist.metadata["Name"] if entry.dist else entry.module
    version = entry.dist.version if entry.dist else "of no version"
    where = f"mechanism {name}, of the package {package}"
    try:
        own = entry.load()
    except Exception as error:  # another package may raise any error on import
        raise ParameterError(
            f"{where}: cannot be imported ({type(error).__name__}); repair or uninstall the package"
        ) from None
    is_mechanism = isinstance(own, type) and issubclass(own, base)
    if not is_mechanism or getattr(own, "name", None) != name:
        raise ParameterError(
            f"{where}: {entry.value} is not a mechanism of that name; it must be a class derived "
            "from "
            f'lexveil.core.mechanisms.base.Mechanism with name = "{name}"'
        )
    return _without_claim(
        own, f"not proven: the mechanism comes from the package {package} {version}"
    )


def _without_claim(own: type[Any], why: str) -> type[Any]:
    """Return a derived class of a mechanism that states no guarantee, and the reason. The
    mechanism's own code cannot override this.
    """

    def reason(_: Any) -> str:
        return why

    def unproven(_: Any) -> bool:
        return False

    def ignored(_: Any, value: object) -> None:
        del value

    body = {"no_guarantee": property(reason, ignored), "is_proven": property(unproven)}
    attributes = {"__doc__": own.__doc__, "__module__": own.__module__}
    return type(own.__name__, (own,), body | attributes)
