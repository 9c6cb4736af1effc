"""Records of artifacts/evaluation and artifacts/recovery with numbers that a test chooses."""

from typing import Any

from lexveil.base.levels import NoiseSetting
from lexveil.lab.report.evaluation_values import EvaluatedRun
from lexveil.readers.shares import Share

BACK_ENDS = {
    "classifier": "linear",
    "encoder": "tfidf_mean",
    "language_model": "kneser_ney",
    "shuffles": 3,
}
SHIFTS = {"macro_f1": 0.0, "micro_f1": 0.125, "accuracy": 0.125}  # of the scores, from macro F1
PREDICTED: dict[str, Any] = {
    "left_out": None,
    "held_out": "dev",
    "n_train": 300,
    "n_learnt": 270,
    "n_left_out": 0,
}
COMPARED: dict[str, Any] = {
    "n_texts": 110,
    "n_compared": 100,
    "n_original_unknown": 4,
    "n_private_unknown": 6,
}
JUDGED: dict[str, Any] = {
    "n_in": 50,
    "n_out": 60,
    "n_classes": 2,
    "known_labels": False,
    "standard_error": 0.04,
}


def named(mechanism: str, strategy: str, noise: NoiseSetting) -> dict[str, Any]:
    """Return the keys that identify a run in its records; a run at a level of recovery has the
    epsilon computed for it.
    """
    identity = {"mechanism": mechanism, "strategy": strategy, "epsilon": noise.epsilon}
    return identity | noise.level_entry


def scored(
    n_classes: int, n_test: int, majority: float, sd: float | None, **settings: float | None
) -> dict[str, Any]:
    """An entry utility or attack; left out without scores."""
    scores = {
        setting: {name: {"mean": mean + shift, "sd": sd} for name, shift in SHIFTS.items()}
        for setting, mean in settings.items()
        if mean is not None
    }
    counts = {"n_classes": n_classes, "n_test": n_test, "scores": scores}
    lowest = {name: majority + shift for name, shift in SHIFTS.items()}
    return PREDICTED | counts | {"majority": lowest} if scores else {"left_out": "there is none"}


def dataset(*, sd: float | None = 0.0625, **measured: float | None) -> dict[str, Any]:
    """The entries of one data set; what is not given is left out.

    Args:
        measured: utility, on_clean (utility unless given), adaptive (the static attack has half of
            it), cosine, perplexity, auc.
    """
    utility, adaptive, cosine, perplexity, auc = map(
        measured.get, ("utility", "adaptive", "cosine", "perplexity", "auc")
    )
    static = None if adaptive is None else adaptive / 2
    read = {"n_texts": 110, "n_tokens": 4321, "n_unknown": 21, "mean": perplexity, "corpus": 77.0}
    others = {
        "similarity": COMPARED | {"mean": cosine, "sd": 0.25} if cosine is not None else None,
        "perplexity": read if perplexity is not None else None,
        "membership": JUDGED | {"auc": {"mean": auc, "sd": 0.03}} if auc is not None else None,
    }
    return {
        "utility": scored(
            2, 100, 0.375, sd, private=utility, clean=measured.get("on_clean", utility)
        ),
        "attack": scored(10, 25, 0.125, sd, static=static, adaptive=adaptive),
        **{
            name: {"left_out": None, **(entry or {"left_out": "there is none"})}
            for name, entry in others.items()
        },
    }


def evaluated(
    mechanism: str, strategy: str, noise: NoiseSetting, datasets: dict[str, Any], **changed: Any
) -> EvaluatedRun:
    """The evaluation of a run."""
    return EvaluatedRun(
        named(mechanism, strategy, noise) | {"datasets": datasets} | BACK_ENDS | changed
    )


def recovered(n_right: int, n: int) -> dict[str, Any]:
    """A share of n words with its interval, as recovery records have it; of no word there is no
    share."""
    share = Share.of(n_right, n)
    return {"share": share.share if n else None, "low": share.low, "high": share.high}
