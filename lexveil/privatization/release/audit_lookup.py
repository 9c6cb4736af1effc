"""Find the audit that a record relies on: of the same code, space, parameters, policy and version, and recent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lexveil.accounting.record import AuditReference, ModelReference
from lexveil.errors import RequestError
from lexveil.privatization.settings import Settings
from lexveil.runtime.hashes import code_hash, sha256, version


@dataclass(frozen=True, slots=True)
class AuditCriteria:
    """What an audit must be of.

    Attributes:
        parameters: of the mechanism.
        model: what the run is made with.
        space: the sha256 of what the run is made with.
        epsilon: base epsilon per word.
        days: an audit older than this is relied on no more.
    """

    settings: Settings
    parameters: Mapping[str, Any]
    model: ModelReference
    space: Mapping[str, str]
    epsilon: float
    days: int

    def mismatch(self, result: Mapping[str, Any]) -> str | None:
        """Why an audit's result cannot be relied on; None if it can.

        Raises:
            KeyError, TypeError, ValueError: if it is no result of this version's audit.
        """
        if result["parameters"] != self.parameters:
            return "it is of other parameters of the mechanism"
        if result["policy"] != asdict(self.settings.policy):
            return "it is of another policy"
        if result["shares"] != (None if self.settings.shares is None else self.settings.shares.as_dict()):
            return "it is of other shares of the budget"
        if self.settings.detection is not None:
            return "no audit is of releases with detectors"
        if result["model"] != self.model.to_dict():
            return "it is of another model, or of another version of it"
        if result["space"] != self.space:
            return "it is of another embedding, other collocations or word orders"
        if (result["lexveil"], result["code"]) != (version(), code_hash()):
            return "it is of another version of the code"
        if result["mode"] != "release":
            return "it is of an experiment's noise"
        if result["verdict"] not in ("no violation found", "violated"):
            return "it is inconclusive"
        if not min(result["epsilons"]) <= self.epsilon <= max(result["epsilons"]):
            return f"it is of a base epsilon from {min(result['epsilons']):g} to {max(result['epsilons']):g}"
        if datetime.now(UTC) - datetime.fromisoformat(result["time"]) > timedelta(days=self.days):
            return f"it is older than {self.days} days (params.yaml: operation.audit_days)"
        return None


def find_valid_audit(sought: AuditCriteria, folder: Path) -> tuple[AuditReference | None, str]:
    """The result of an audit that matches, of the nearest epsilon; or None, and why.

    Args:
        folder: with the results of audits, as `lexveil schedule` makes them every week.

    Raises:
        RequestError: if an audit of this mechanism with these parameters found a violation, however old it is and
            whatever else it was of, and a release is asked for.
    """
    settings = sought.settings
    name = f"{settings.mechanism} {settings.strategy}"
    why, found = f"there is none of {name} in {folder}", list[tuple[float, AuditReference]]()
    for file in sorted(folder.glob(f"{settings.mechanism}-{settings.strategy}-*.json")):
        try:
            result = json.loads(file.read_text(encoding="utf-8"))
            if result["violation"] and result["parameters"] == sought.parameters and settings.mode == "release":
                raise RequestError(
                    f"{file}: the last audit of {name} found a violation of the claimed epsilon; nothing is released "
                    "on it. Mend the mechanism and audit again"
                )
            mismatch = sought.mismatch(result)
            if mismatch is None:
                reference = AuditReference(
                    epsilon=result["epsilon"],
                    mode=result["mode"],
                    result="violation found" if result["violation"] else "no violation found",
                    factor=result["factor"],
                    time=result["time"],
                    sha256=sha256(file),
                )
                found.append((abs(result["epsilon"] - sought.epsilon), reference))
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            mismatch = "it is truncated, or of an older version"
        why = f"{file.name}: {mismatch}"
    return (min(found, key=lambda pair: pair[0])[1], "") if found else (None, why)
