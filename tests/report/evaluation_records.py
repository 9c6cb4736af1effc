"""Records of artifacts/evaluation with numbers that a test chooses."""

from typing import Any

from lexveil.report.evaluation_values import EvaluatedRun

SD = 0.0625
BACK_ENDS = {"classifier": "linear", "encoder": "tfidf_mean", "language_model": "kneser_ney", "shuffles": 3}


def spread(mean: float, sd: float | None) -> dict[str, Any]:
    return {"mean": mean, "sd": sd, "each": [mean] * 3}


def score(macro: float, micro: float, sd: float | None = SD) -> dict[str, Any]:
    """All scores of one setting; accuracy is micro F1."""
    return {"macro_f1": spread(macro, sd), "micro_f1": spread(micro, sd), "accuracy": spread(micro, sd)}


def scored(n_classes: int, n_test: int, majority: float, scores: dict[str, Any]) -> dict[str, Any]:
    """An entry utility or attack; the majority's micro F1 is 0.125 above its macro F1."""
    low = {"macro_f1": majority, "micro_f1": majority + 0.125, "accuracy": majority + 0.125}
    return {
        "left_out": None, "held_out": "dev", "n_train": 300, "n_learnt": 270, "n_left_out": 0, "n_test": n_test,
        "n_classes": n_classes, "majority": low, "scores": scores,
    }  # fmt: skip


def dataset(
    *,
    utility: float | None = None,
    on_clean: float | None = None,
    static: float | None = None,
    adaptive: float | None = None,
    cosine: float | None = None,
    perplexity: float | None = None,
    auc: float | None = None,
    sd: float | None = SD,
) -> dict[str, Any]:
    """The entries of one data set; micro F1 is 0.125 above macro F1, and what is not given is left out."""
    entries: dict[str, Any] = {}
    if utility is not None:
        on_clean = utility if on_clean is None else on_clean
        settings = {"private": utility, "clean": on_clean}
        entries["utility"] = scored(2, 100, 0.375, {k: score(v, v + 0.125, sd) for k, v in settings.items()})
    if adaptive is not None:
        settings = {"static": adaptive / 2 if static is None else static, "adaptive": adaptive}
        entries["attack"] = scored(10, 25, 0.125, {k: score(v, v + 0.125, sd) for k, v in settings.items()})
    if cosine is not None:
        entries["similarity"] = {
            "left_out": None, "n_texts": 110, "n_compared": 100, "n_original_unknown": 4, "n_private_unknown": 6,
            "mean": cosine, "sd": 0.25,
        }  # fmt: skip
    if perplexity is not None:
        entries["perplexity"] = {
            "left_out": None, "n_texts": 110, "n_tokens": 4321, "n_unknown": 21, "mean": perplexity, "corpus": 77.0,
        }  # fmt: skip
    if auc is not None:
        entries["membership"] = {
            "left_out": None, "n_in": 50, "n_out": 60, "n_classes": 2, "known_labels": False,
            "auc": spread(auc, 0.03), "standard_error": 0.04,
        }  # fmt: skip
    for part in ("utility", "attack", "similarity", "perplexity", "membership"):
        entries.setdefault(part, {"left_out": f"no {part} because of {part}"})
    return entries


def record(mechanism: str, strategy: str, epsilon: float, datasets: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """One file of artifacts/evaluation."""
    named = {"mechanism": mechanism, "strategy": strategy, "epsilon": epsilon, "datasets": datasets}
    return named | BACK_ENDS | changed


def evaluated(mechanism: str, strategy: str, epsilon: float, datasets: dict[str, Any], **changed: Any) -> EvaluatedRun:
    return EvaluatedRun(record(mechanism, strategy, epsilon, datasets, **changed))
