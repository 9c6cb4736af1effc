"""Keys of params.yaml that have moved to lexveil.toml. Lexveil rejects a params.yaml that still has
them, and `lexveil init --upgrade` moves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SECTIONS = ("machine", "operation", "ledger", "release", "inbox")
POLICY = "policy"
DETECTION = "detection"
# This key was in the section policy, and is now in the section detection.
DETECTION_KEYS = ("detector", "types", "protect", "allow", "pseudonyms", "presidio")


def moved_keys(raw: object) -> list[str]:
    """Return the keys that have moved to lexveil.toml, from the plain values of a params.yaml."""
    if not isinstance(raw, Mapping):
        return []
    policy = raw.get(POLICY)
    detection = DETECTION_KEYS if isinstance(policy, Mapping) else ()
    return [
        *(name for name in SECTIONS if name in raw),
        *(f"{POLICY}.{name}" for name in detection if policy and name in policy),
    ]


def split(raw: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the plain values of a params.yaml into the values that stay, and the sections for
    lexveil.toml.
    """
    remains = {name: value for name, value in raw.items() if name not in SECTIONS}
    sections = {name: value for name, value in raw.items() if name in SECTIONS}
    policy = raw.get(POLICY)
    if not isinstance(policy, Mapping):
        return remains, sections
    remains[POLICY] = {name: value for name, value in policy.items() if name not in DETECTION_KEYS}
    sections[DETECTION] = {name: policy[name] for name in DETECTION_KEYS if name in policy}
    return remains, sections
