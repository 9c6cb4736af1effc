"""What an audit found, and what it is bound to: code, space, parameters, policy, version and
time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lexveil.accounting.record import ModelReference
from lexveil.auditing.exact import ExactResult
from lexveil.auditing.fit import FitResult
from lexveil.auditing.sampled import SampledResult

Verdict = Literal["violated", "no violation found", "inconclusive"]
Evidence = ExactResult | SampledResult | FitResult
COLUMNS = ["where", "method", "claimed ε", "audited ε or power", "verdict"]


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One place and method of an audit.

    Attributes:
        evidence: the figures of an exact or sampled audit; None of a plain fact, which ``detail``
            then states.
        inconclusive: that nothing could be said here.
    """

    place: str
    method: str
    violation: bool
    evidence: Evidence | None = None
    detail: str | None = None
    inconclusive: bool = False

    @classmethod
    def of(cls, place: str, evidence: Evidence) -> AuditFinding:
        """What an exact or sampled audit found."""
        return cls(place, evidence.method, evidence.violation, evidence, evidence.detail)

    @classmethod
    def fact(cls, place: str, method: str, wrong: list[str], right: str) -> AuditFinding:
        """A plain fact: what is wrong, else what was seen to be right."""
        return cls(place, method, bool(wrong), detail="; ".join(wrong[:3]) or right)

    @property
    def verdict(self) -> str:
        """VIOLATED, inconclusive, "holds" where nothing was sampled, else "no violation found"."""
        if self.violation:
            return "VIOLATED"
        if self.inconclusive:
            return "inconclusive"
        return "holds" if self.evidence is None or self.method == "exact" else "no violation found"

    def as_dict(self) -> dict[str, object]:
        """Plain values."""
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
        """Its row in a table for people."""
        verdict = self.verdict + (f": {self.detail}" if self.detail else "")
        figures = (
            ["-", "-"]
            if self.evidence is None
            else [f"{self.evidence.claimed:g}", self.evidence.shown]
        )
        return [self.place, self.method, *figures, verdict]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit of one mechanism found.

    Attributes:
        guarantee: the formula that was tested, or "none"; no_guarantee: why there is none.
        parameters: of the mechanism; policy: what becomes of each class of token.
        shares: of the budget, of classes of tokens; None if all have the same.
        epsilon: the claim that was asked for; epsilons: all that were audited, least first.
        seed: of the noise in mode experiment; None in mode release, whose noise comes from the
            operating system.
        confidence: that no bound is too high, over all findings together.
        factor: the smallest inflation of ε in whole releases that this audit sees with probability
            0.9; of the mechanism alone where nothing is released; None if it would see none up to
            8.
        lexveil, code: version, and hash of all code.
        model, space: what gave the words of the embedding, and hashes of the embedding,
            collocations and word orders.
        time: when it was made, UTC.
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
        """Whether the claim is violated anywhere."""
        return any(finding.violation for finding in self.audits)

    @property
    def verdict(self) -> Verdict:
        """The whole: violated; no violation found, with power to see ``factor``; or
        inconclusive.
        """
        if self.violation:
            return "violated"
        unclear = self.factor is None or any(finding.inconclusive for finding in self.audits)
        return "inconclusive" if unclear else "no violation found"

    def as_dict(self) -> dict[str, object]:
        """Plain values that JSON can carry: infinities as text."""
        values: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        values |= {
            "model": self.model.to_dict(),
            "audits": [finding.as_dict() for finding in self.audits],
        }
        values |= {"violation": self.violation, "verdict": self.verdict}
        finite: dict[str, object] = _finite(values)
        return finite

    def as_text(self) -> list[str]:
        """Lines for people."""
        rows = [COLUMNS, *(finding.cells for finding in self.audits)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        if self.no_guarantee is not None:
            lines.append(f"nothing is claimed: {self.no_guarantee}")
        said = {
            "violated": "a violation of the claim was found",
            "inconclusive": "inconclusive; give more samples",
            "no violation found": "no violation was found, with power to see a factor of "
            f"{self.factor or 0:g}",
        }[self.verdict]
        return [
            *lines,
            f"{self.mechanism} at ε = {self.epsilon:g}, {self.model}, {self.mode} mode: {said}",
        ]


def _finite(value: Any) -> Any:
    """The same value with infinities as text, which JSON can carry."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
