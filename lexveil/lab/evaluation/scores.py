"""Classification scores, and the relative gain of a rewriting."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

DECIMALS = 9  # decimals of written numbers: the last bits of a float carry no information


@dataclass(frozen=True, slots=True)
class ClassificationScores:
    """Accuracy and F1 of one set of predictions, each in [0, 1], as scikit-learn computes them.

    Attributes:
        accuracy: share of right predictions.
        micro_f1: F1 over all decisions; equals accuracy if each text has one class.
        macro_f1: mean of the F1 of each class that is true or predicted; a class that is never
            predicted correctly has F1 0.
    """

    accuracy: float
    micro_f1: float
    macro_f1: float


NAMES = tuple(field.name for field in fields(ClassificationScores))


def score(truth: Sequence[str], predicted: Sequence[str]) -> ClassificationScores:
    """Compute accuracy and F1 of n predictions, given the n true classes, n > 0.

    This function counts by itself, since scikit-learn's functions take 60 ms for a few hundred
    predictions.
    """
    n = len(truth)
    names, numbers = np.unique(np.array([*truth, *predicted], dtype=object), return_inverse=True)
    right = numbers[:n][numbers[:n] == numbers[n:]]
    share = len(right) / n
    # F1 of each class is 2·tp / (2·tp + fp + fn); the denominator is the number of texts of the
    # class plus the number of predictions of the class.
    f1 = 2 * np.bincount(right, minlength=len(names)) / np.bincount(numbers)
    return ClassificationScores(share, share, float(f1.mean()))


def majority(learnt: Sequence[str], truth: Sequence[str]) -> ClassificationScores:
    """Return the scores of the majority-class baseline, which always predicts the most frequent
    class of ``learnt``, ties by name.

    A classifier that does not beat this baseline has learnt nothing from the texts.
    """
    counts = Counter(learnt)
    best = min(counts, key=lambda name: (-counts[name], name))
    return score(truth, [best] * len(truth))


def spread(scores: Sequence[ClassificationScores]) -> dict[str, dict[str, object]]:
    """Summarize each score over repeated trainings as JSON values: mean, sample standard deviation
    (None for a single value), and all values.
    """
    return {name: mean_sd([getattr(one, name) for one in scores]) for name in NAMES}


def mean_sd(values: Sequence[float]) -> dict[str, object]:
    """Summarize the values of one score as JSON values: mean, sample standard deviation (None for a
    single value), and all values.
    """
    each = [round(value, DECIMALS) for value in values]
    return {
        "mean": round(statistics.fmean(each), DECIMALS),
        "sd": round(statistics.stdev(each), DECIMALS) if len(each) > 1 else None,
        "each": each,
    }


def rounded(value: float) -> float | None:
    """Round a value for output; return None for NaN, such as the deviation of a single value."""
    return None if math.isnan(value) else round(value, DECIMALS)


def half_width(n: int) -> float:
    """Return half of the width of the 95% interval of a share of 0.5 that was observed in n
    documents: 1.96·√(1/4n).
    """
    return 1.96 * math.sqrt(0.25 / n)


def relative_gain(
    utility_private: float, utility_clean: float, attack_private: float, attack_clean: float
) -> float | None:
    """Return the relative gain RG = U_p/U_o − P_p/P_o, which is above 0 if the attacker loses a
    larger share of its score than the task does (CLMLDP Table 4).

    Args:
        utility_private: U_p, score of the task on rewritten texts.
        utility_clean: U_o, score of the task on clean texts.
        attack_private: P_p, score of the adaptive attacker on rewritten texts.
        attack_clean: P_o, score of an attacker on clean texts.

    Returns:
        RG in [−P_p/P_o, U_p/U_o]; None if a score on clean texts is 0.
    """
    if not utility_clean or not attack_clean:
        return None
    return utility_private / utility_clean - attack_private / attack_clean
