"""What must hold before anything is released: one function, called by the files, the API, the service and the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lexveil.accounting.budgets import DocumentBudget
from lexveil.accounting.measurements import Measurement
from lexveil.accounting.record import AuditReference, ModelReference
from lexveil.artifacts.model import Model
from lexveil.config import LedgerParams
from lexveil.errors import RequestError, option
from lexveil.formats.registry import as_source
from lexveil.privatization.engine.engine import Engine
from lexveil.privatization.settings import Settings, require_uniform_shares
from lexveil.recovery.calibration import given_back, recovered, unchanged
from lexveil.runtime.hashes import code_hash, sha256, version

STAMP = "no-guarantee"


@dataclass(frozen=True, slots=True)
class Checked:
    """What may run, and what its record says beside the run.

    Attributes:
        budget: of each document; 0 where it follows from the texts.
        model: what the run is made with.
        made_with: the sha256 of the artifacts that decide what comes out.
        audit: that the record relies on; None without one.
        why_no_audit: why there is none.
    """

    engine: Engine
    budget: DocumentBudget
    model: ModelReference
    made_with: dict[str, str]
    audit: AuditReference | None
    why_no_audit: str


def check(settings: Settings, model: Model) -> Checked:
    """See that texts may be rewritten by these settings. No text is read, and no ledger is opened.

    Raises:
        MissingArtifact: if what an earlier stage makes is not there, or did not pass its checks.
        RequestError: of a release, if a purpose is not public, if nothing is proven of it, if it would give back more
            words than ``release.max_recovery``, or if the last audit of the mechanism found a violation.
    """
    model.require_checks(settings.strategy)
    _require_public_purposes(settings, model)
    engine = Engine(settings, model)
    _require_guarantee(settings, engine.measurement())
    budget = engine.budget() if engine.is_budget_public else DocumentBudget(0.0, 0.0)
    _require_little_recovery(settings, engine, budget)
    made_with, reference = engine.made_with(), model.reference(settings.strategy)
    average = budget.average_words
    if settings.epsilon is None and average is None:
        average = model.average_words()
    epsilon = settings.epsilon or (budget.total / average if average else 0.0)
    days = model.params.operation.audit_days
    criteria = AuditCriteria(settings, engine.prepared.parameters, reference, made_with, epsilon, days)
    audit, why = find_valid_audit(criteria, model.project.audits)
    return Checked(engine, budget, reference, made_with, audit, why)


def _require_public_purposes(settings: Settings, model: Model) -> None:
    private = [one.name for one in model.kept_purposes if not one.is_public]
    if private and settings.mode == "release":
        raise RequestError(
            f"nothing is released: the scale of purpose {private[0]} is not said to be public, and what follows from "
            f"private texts must not shape what comes out; make it of public ones by `lexveil purpose build --public`, "
            f"or say {option('mode')} experiment"
        )


def _require_guarantee(settings: Settings, measurement: Measurement) -> None:
    if settings.mode == "release" and measurement.refusals and not settings.without_guarantee:
        raise RequestError(
            f"nothing is released: no guarantee can be given, {'; '.join(measurement.refusals)}. Mend that; or say "
            f"{option('without_guarantee')} (params.yaml: release.without_guarantee: true), which names the output so; "
            f"or {option('mode')} experiment"
        )


def _require_little_recovery(settings: Settings, engine: Engine, budget: DocumentBudget) -> None:
    """Refuse to release what would give back more than ``release.max_recovery``.

    What counts is the largest epsilon that a token can get, and of the words of the limit's band the larger of what an
    adversary is expected to name and of what is expected to come out as it is.
    """
    limits = engine.model.params.release
    if settings.mode != "release" or limits.max_recovery is None:
        return
    require_uniform_shares(settings, "params.yaml: release.max_recovery")
    largest, band = min(budget.cap, budget.total), limits.max_recovery_band
    if not largest:
        return
    curve = engine.recovery_curve()
    expected = curve.at(largest)
    if given_back(expected, band) <= limits.max_recovery:
        return
    passes = curve.epsilon_for(limits.max_recovery, band, given_back).epsilon
    of = "words" if band == "all" else f"{band} words"
    raise RequestError(
        f"nothing is released: at epsilon {largest:.4g}, the largest of a token, a best-informed reader is expected to "
        f"name {recovered(expected, band):.1%} of the {of}, and {unchanged(expected, band):.1%} to come out unchanged; "
        f"params.yaml: release.max_recovery allows {limits.max_recovery:.1%}. {option('epsilon')} {passes:g} "
        f"{option('max_token_epsilon')} {passes:g} passes"
    )


def require_named_subjects(ledger: LedgerParams, has_subjects: bool) -> None:
    """See that a ledger that names subjects is told them: it would name texts by themselves.

    Raises:
        RequestError: if not.
    """
    if ledger.keys == "plain" and not has_subjects:
        raise RequestError(
            f"params.yaml: ledger.keys is plain, so the ledger would name texts by themselves; give "
            f"{option('subject_column')}, or keep keys hashed"
        )


def is_without_guarantee(settings: Settings, model: Model) -> bool:
    """Whether the output is to be named as one without a guarantee: it was asked for, and there is none."""
    if not settings.without_guarantee or settings.mode == "experiment":
        return False
    return settings.mode == "none" or bool(Engine(settings, model).measurement().refusals)


def stamped(target: Path) -> Path:
    """The name of an output without a guarantee: NAME.no-guarantee.EXT; as it is if it, or its folder, says so."""
    if STAMP in target.name or STAMP in target.parent.name:
        return target
    source = as_source(target)
    stem = source.stem if source else target.name
    return target.with_name(f"{stem}.{STAMP}{target.name[len(stem) :]}")


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
