"""Find the audit that a record relies on: the last one of its mechanism and strategy, with the same parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lexveil.accounting.record import AuditReference
from lexveil.errors import RequestError
from lexveil.privatization.settings import Settings
from lexveil.runtime.hashes import sha256


def audit_relied_on(settings: Settings, parameters: dict[str, Any], folder: Path) -> AuditReference | None:
    """The result of the audit whose epsilon is nearest, from `lexveil serve`'s weekly flow; None if there is none.

    Args:
        parameters: of the mechanism; an audit of others says nothing of this one.
        folder: with the results of audits.

    Raises:
        RequestError: if the audit found a violation and a release is asked for.
    """
    candidates: list[tuple[float, AuditReference]] = []
    for file in sorted(folder.glob(f"{settings.mechanism}-{settings.strategy}-*.json")):
        try:
            result = json.loads(file.read_text(encoding="utf-8"))
            if result["parameters"] != parameters:
                continue
            if result["violation"] and settings.mode == "release":
                raise RequestError(
                    f"{file}: the last audit of {settings.mechanism} {settings.strategy} found a violation of the "
                    "claimed epsilon; nothing is released on it. Mend the mechanism and audit again"
                )
            audit = AuditReference(
                epsilon=result["epsilon"],
                mode=result["mode"],
                result="violation found" if result["violation"] else "no violation found",
                sha256=sha256(file),
            )
        except (OSError, ValueError, KeyError, TypeError):
            continue  # truncated, or of an older version: no audit
        candidates.append((abs(result["epsilon"] - (settings.epsilon or result["epsilon"])), audit))
    return min(candidates, key=lambda pair: pair[0])[1] if candidates else None
