"""Membership inference: whether an attacker can tell which texts a classifier was trained on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.evaluation.membership import STREAM, attacked, membership_entry, parts_of
from lexveil.evaluation.metrics.base import DatasetTexts, Entry, Metric, PaperTable, Score
from lexveil.evaluation.utility import LeftOut

MEMBERSHIP = Score(
    name="membership_auc",
    metric="membership",
    words="AUC",
    path=("auc",),
    glance=("membership_auc", "Membership AUC"),
    headline="membership_auc",
)


class MembershipInference(Metric):
    """AUC of the attack of TEM, section 5.1."""

    name, title, only_back_end = "membership", "membership inference", "linear"
    limits = (0.0, 1.0)
    same = ("left_out", "n_in", "n_out", "n_classes", "known_labels")
    trained = True
    scores = (MEMBERSHIP,)
    tables = (PaperTable("membership", "membership inference, AUC", (MEMBERSHIP,), "TEM Figure 1b"),)
    explanation = (
        "<strong>membership inference</strong>, which asks a\nclassifier that learnt from rewritten texts whether a "
        "text was among them: an AUC of 0.5 is guessing"
    )

    def compute(self, texts: DatasetTexts) -> Entry:
        """Train classifiers on rewritten texts, and let the attackers ask them about clean ones."""
        parts = parts_of(texts.column("label"))
        if isinstance(parts, LeftOut):
            return {"left_out": parts.reason}
        assert texts.models.attackers is not None
        rngs = [texts.stream(STREAM, texts.dataset, str(number)) for number in range(texts.settings.shuffles)]
        clean, private = texts.classified
        results = attacked(clean.counts, private.counts, parts, rngs, texts.models.attackers)
        return membership_entry(results, parts.n_classes)

    def values(self, entry: Entry, setting: str | None) -> list[tuple[float | None, Sequence[float] | None]]:  # noqa: ARG002
        """The AUC."""
        return [(entry["auc"]["mean"], entry["auc"]["each"])]

    def summary(self, entry: Entry) -> str:
        """The AUC and its standard error."""
        auc, error = entry["auc"]["mean"], entry["standard_error"]
        return f"AUC {auc:.3f} ± {error:.3f}, {entry['n_in']:,} in and {entry['n_out']:,} out"

    def note(self, entry: Mapping[str, Any]) -> str:
        """How many texts."""
        return (
            f"{entry['n_in']:,} texts that were learnt from and {entry['n_out']:,} that were not; 0.5 is guessing. "
            "± is the standard deviation over trainings."
        )

    def standard_error(self, entry: Mapping[str, Any], mean: float, sd: float | None) -> float | None:  # noqa: ARG002
        """Trainings and texts both make an AUC uncertain."""
        return math.hypot(sd or 0.0, entry.get("standard_error") or 0.0)
