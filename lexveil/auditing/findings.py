"""Findings and results of an audit, with the audited code, vocabulary, parameters, policy, version
and time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lexveil.auditing.exact import ExactResult
from lexveil.auditing.fit import FitResult
from lexveil.auditing.sampled import SampledResult
from lexveil.core.accounting.record import ModelReference

Verdict = Literal["violated", "no violation found", "inconclusive"]
Evidence = ExactResult | SampledResult | FitResult
COLUMNS = ["where", "method", "claimed ε", "audited ε or power", "verdict"]


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """Result of one check of an audit.

    Attributes:
        place: the part of the audit, such as a toy project or a release.
        method: name of the check.
        violation: whether the check shows a violation of the claim.
        evidence: the figures of an exact or sampled audit; None for a finding that ``detail``
            states in words.
        detail: explanation for people.
        inconclusive: whether the check could not decide.
    """

    place: str
    method: str
    violation: bool
    evidence: Evidence | None = None
    detail: str | None = None
    inconclusive: bool = False

    @classmethod
    def of(cls, place: str, evidence: Evidence) -> AuditFinding:
        """Create a finding from the figures of an exact or sampled audit."""
        return cls(place, evidence.method, evidence.violation, evidence, evidence.detail)

    @classmethod
    def fact(cls, place: str, method: str, wrong: list[str], right: str) -> AuditFinding:
        """Create a finding that is stated in words, without figures.

        Args:
            wrong: the faults; if there are any, the finding is a violation.
            right: the text of the finding if there are no faults.
        """
        return cls(place, method, bool(wrong), detail="; ".join(wrong[:3]) or right)

    @property
    def verdict(self) -> str:
        """Verdict of the check as a text: "VIOLATED"; "inconclusive"; "holds" if nothing was
        sampled; otherwise "no violation found".
        """
        if self.violation:
            return "VIOLATED"
        if self.inconclusive:
            return "inconclusive"
        return "holds" if self.evidence is None or self.method == "exact" else "no violation found"

    def as_dict(self) -> dict[str, object]:
        """Return the finding as plain values."""
        figures = {} if self.evidence is None else self.evidence.as_dict()
        about = {"place": self.place, "method": self.method, "violation": self.violation}
        return (
            about
            | figures
            | ({"detail": self.detail} if self.detail else {})
            | {"verdict": self.verdict}
        )

    @property
    def cells(self) -> list[str]:
        """Cells of the finding's row in a table for people."""
        verdict = self.verdict + (f": {self.detail}" if self.detail else "")
        figures = (
            ["-", "-"]
            if self.evidence is None
            else [f"{self.evidence.claimed:g}", self.evidence.shown]
        )
        return [self.place, self.method, *figures, verdict]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Result of the audit of one mechanism.

    Attributes:
        guarantee: the formula that was tested, or "none"; no_guarantee: the reason if there is
            none.
        parameters: parameters of the mechanism; policy: the action on each class of token.
        shares: shares of the budget by class of token; None if all classes have the same share.
        epsilon: the claim in the request; epsilons: all ε that were audited, ascending.
        seed: seed of the noise in mode experiment; None in mode release, whose noise comes from the
            operating system.
        confidence: probability that no bound is too high, over all findings together.
        factor: the smallest inflation of ε in whole releases that this audit detects with
            probability 0.9; if nothing is released, the smallest inflation of the mechanism alone;
            None if the audit would detect no inflation up to 8.
        lexveil, code: version, and hash of all code.
        model, space: source of the embedding's words, and hashes of the embedding, collocations and
            word orders.
        time: time of the audit, UTC.
    """

    mechanism: str
    guarantee: str
    no_guarantee: str | None
    metric: str
    parameters: dict[str, object]
    policy: dict[str, str]
    shares: dict[str, Any] | None
    epsilon: float
    epsilons: tuple[float, ...]
    strategy: str
    mode: str
    seed: int | None
    confidence: float
    factor: float | None
    lexveil: str
    code: str
    model: ModelReference
    space: dict[str, str]
    time: str
    audits: tuple[AuditFinding, ...]

    @property
    def violation(self) -> bool:
        """Whether any finding shows a violation of the claim."""
        return any(finding.violation for finding in self.audits)

    @property
    def verdict(self) -> Verdict:
        """Verdict of the whole audit: "violated"; "no violation found", if the audit has the power
        to detect an inflation of ε by ``factor``; or "inconclusive".
        """
        if self.violation:
            return "violated"
        unclear = self.factor is None or any(finding.inconclusive for finding in self.audits)
        return "inconclusive" if unclear else "no violation found"

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values for JSON, with infinities as text."""
        values: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        values |= {
            "model": self.model.to_dict(),
            "audits": [finding.as_dict() for finding in self.audits],
        }
        values |= {"violation": self.violation, "verdict": self.verdict}
        finite: dict[str, object] = _finite(values)
        return finite

    def as_text(self) -> list[str]:
        """Return the audit as lines of text: a table of the findings and the verdict."""
        rows = [COLUMNS, *(finding.cells for finding in self.audits)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        if self.no_guarantee is not None:
            lines.append(f"nothing is claimed: {self.no_guarantee}")
        said = {
            "violated": "a violation of the claim was found",
            "inconclusive": "inconclusive; repeat the audit with more samples",
            "no violation found": "no violation was found, with power to detect a factor of "
            f"{self.factor or 0:g}",
        }[self.verdict]
        return [
            *lines,
            f"{self.mechanism} at ε = {self.epsilon:g}, {self.model}, {self.mode} mode: {said}",
        ]


def _finite(value: Any) -> Any:
    """Return a copy of a value in which every infinity is text, because JSON has no infinities."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
