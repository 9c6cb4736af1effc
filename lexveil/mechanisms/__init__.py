"""Mechanisms and noise: ids, distances and epsilons, never words.

A mechanism is the module of its name; modules that several share are listed here.
"""

from __future__ import annotations

import pkgutil

SHARED = frozenset(
    {
        "base",
        "base_measure",
        "causal_measure",
        "deniability",
        "rank_remap",
        "registry",
        "rejection",
        "variants",
        "word_lists",
    }
)


def mechanism_names() -> list[str]:
    """Return the names of all mechanisms, sorted, without loading any mechanism."""
    return sorted(
        module.name
        for module in pkgutil.iter_modules(__path__)
        if not module.ispkg and module.name not in SHARED
    )
