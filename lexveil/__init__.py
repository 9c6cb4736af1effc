"""Text rewriting under metric differential privacy, word by word or collocation by collocation.

    import lexveil

    done = lexveil.privatize(texts, protection="balanced")
    done.values                  # the rewritten texts
    done.record.guarantee        # what is protected, what is not, and the epsilon spent

The package works in any folder, with the model that ships. ``project`` is a folder that `lexveil
init` made, and for which `lexveil run` has trained a model. Modules are imported at their
first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lexveil.api import audit, inspect, privatize
    from lexveil.auditing.audit import AuditResult
    from lexveil.base.errors import (
        CheckFailedError,
        LexveilError,
        MissingArtifactError,
        ParameterError,
        RequestError,
    )
    from lexveil.core.accounting.record import PrivacyRecord
    from lexveil.core.mechanisms.registry import MECHANISMS
    from lexveil.io.artifacts.model import Model
    from lexveil.lab.data.own_vectors import add_model
    from lexveil.release.adapters.memory import Privatized
    from lexveil.release.ledger.ledger import Ledger
    from lexveil.release.looking.inspect import Inspection

    __version__: str

__all__ = [
    "MECHANISMS",
    "AuditResult",
    "CheckFailedError",
    "Inspection",
    "Ledger",
    "LexveilError",
    "MissingArtifactError",
    "Model",
    "ParameterError",
    "PrivacyRecord",
    "Privatized",
    "RequestError",
    "__version__",
    "add_model",
    "audit",
    "inspect",
    "privatize",
]

_ERRORS = (
    "CheckFailedError",
    "LexveilError",
    "MissingArtifactError",
    "ParameterError",
    "RequestError",
)
_MODULES = {
    "AuditResult": "lexveil.auditing.audit",
    "add_model": "lexveil.lab.data.own_vectors",
    "MECHANISMS": "lexveil.core.mechanisms.registry",
    "Inspection": "lexveil.release.looking.inspect",
    "Ledger": "lexveil.release.ledger.ledger",
    "Model": "lexveil.io.artifacts.model",
    "PrivacyRecord": "lexveil.core.accounting.record",
    "Privatized": "lexveil.release.adapters.memory",
} | dict.fromkeys(_ERRORS, "lexveil.base.errors")


def __getattr__(name: str) -> Any:
    """Import the module that defines a public name of the package, and keep the value for the next
    access.
    """
    if name not in __all__:
        raise AttributeError(f"module 'lexveil' has no attribute {name!r}")
    value: Any
    if name == "__version__":
        from importlib.metadata import version

        value = version("lexveil")
    else:
        value = getattr(import_module(_MODULES.get(name, "lexveil.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of everything that the package offers, imported yet or not."""
    return sorted(__all__)
