"""Privacy mechanisms and their noise. Mechanisms handle token ids, distances and epsilons, never
words.

Each mechanism is a module that has the mechanism's name. Modules that several mechanisms share are
listed here. Further mechanisms come from installed packages (lexveil/core/mechanisms/installed.py).
"""

from __future__ import annotations

import pkgutil

SHARED = frozenset(
    {
        "base",
        "base_measure",
        "causal_measure",
        "deniability",
        "installed",
        "rank_remap",
        "registry",
        "rejection",
        "over_sentences",
        "sentence_draws",
        "truncated_exponential",
        "variants",
        "word_lists",
    }
)


def mechanism_names() -> list[str]:
    """Return the names of all mechanisms: first the sorted names of this package, then the sorted
    names of other installed packages. No mechanism is loaded.
    """
    from lexveil.core.mechanisms.installed import entries

    shipped = own_names()
    return [*shipped, *(name for name in entries() if name not in shipped)]


def own_names() -> list[str]:
    """Return the names of the mechanisms of this package, sorted."""
    return sorted(
        module.name
        for module in pkgutil.iter_modules(__path__)
        if not module.ispkg and module.name not in SHARED
    )
