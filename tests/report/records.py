"""Records of artifacts/evaluation and artifacts/recovery with numbers that a test chooses."""

from __future__ import annotations

from typing import Any

from lexveil.levels import Level
from lexveil.recovery.shares import Share
from lexveil.report.evaluation_values import EvaluatedRun

SD = 0.0625
BACK_ENDS = {"classifier": "linear", "encoder": "tfidf_mean", "language_model": "kneser_ney", "shuffles": 3}


def named(mechanism: str, strategy: str, epsilon: float) -> dict[str, Any]:
    """What names a run in its records; at a level of recovery the epsilon that was found for it."""
    level = {"level": epsilon.share} if isinstance(epsilon, Level) else {}
    return {
        "mechanism": mechanism,
        "strategy": strategy,
        "epsilon": epsilon.epsilon if isinstance(epsilon, Level) else epsilon,
        **level,
    }


def spread(mean: float, sd: float | None) -> dict[str, Any]:
    return {"mean": mean, "sd": sd, "each": [mean] * 3}


def scored(
    n_classes: int, n_test: int, majority: float, settings: dict[str, float], sd: float | None
) -> dict[str, Any]:
    """An entry utility or attack; micro F1 and accuracy are 0.125 above macro F1, those of the majority too."""
    shifts = {"macro_f1": 0.0, "micro_f1": 0.125, "accuracy": 0.125}
    scores = {
        setting: {name: spread(mean + shift, sd) for name, shift in shifts.items()}
        for setting, mean in settings.items()
    }
    return {
        "left_out": None, "held_out": "dev", "n_train": 300, "n_learnt": 270, "n_left_out": 0, "n_test": n_test,
        "n_classes": n_classes, "scores": scores,
        "majority": {name: majority + shift for name, shift in shifts.items()},
    }  # fmt: skip


def dataset(*, sd: float | None = SD, **measured: float | None) -> dict[str, Any]:
    """The entries of one data set; what is not given is left out.

    Args:
        measured: utility, on_clean (utility unless given), adaptive, static (half of it unless given), cosine,
            perplexity, auc.
    """
    entries: dict[str, Any] = {}
    if (utility := measured.get("utility")) is not None:
        settings = {"private": utility, "clean": measured.get("on_clean") or utility}
        entries["utility"] = scored(2, 100, 0.375, settings, sd)
    if (adaptive := measured.get("adaptive")) is not None:
        settings = {"static": measured.get("static") or adaptive / 2, "adaptive": adaptive}
        entries["attack"] = scored(10, 25, 0.125, settings, sd)
    if (cosine := measured.get("cosine")) is not None:
        entries["similarity"] = {
            "left_out": None, "n_texts": 110, "n_compared": 100, "n_original_unknown": 4, "n_private_unknown": 6,
            "mean": cosine, "sd": 0.25,
        }  # fmt: skip
    if (perplexity := measured.get("perplexity")) is not None:
        entries["perplexity"] = {
            "left_out": None, "n_texts": 110, "n_tokens": 4321, "n_unknown": 21, "mean": perplexity, "corpus": 77.0,
        }  # fmt: skip
    if (auc := measured.get("auc")) is not None:
        entries["membership"] = {
            "left_out": None, "n_in": 50, "n_out": 60, "n_classes": 2, "known_labels": False,
            "auc": spread(auc, 0.03), "standard_error": 0.04,
        }  # fmt: skip
    for part in ("utility", "attack", "similarity", "perplexity", "membership"):
        entries.setdefault(part, {"left_out": f"no {part} because of {part}"})
    return entries


def evaluated(mechanism: str, strategy: str, epsilon: float, datasets: dict[str, Any], **changed: Any) -> EvaluatedRun:
    """The evaluation of a run."""
    return EvaluatedRun(named(mechanism, strategy, epsilon) | {"datasets": datasets} | BACK_ENDS | changed)


def recovered(n_right: int, n: int) -> dict[str, Any]:
    """A share of n words with its interval, as recovery records have it; of no word there is no share."""
    share = Share.of(n_right, n)
    return {"share": share.share if n else None, "low": share.low, "high": share.high}
