"""What a reader is told of words on a public scale: their side of it, and which word they are."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from lexveil.types import Flags, Floats, Ids


@dataclass(frozen=True, slots=True)
class Told:
    """Shares of 1, of the perturbed words on a scale: those whose score is not 0.

    Attributes:
        share: of all perturbed words, those on the scale.
        side: of them, those whose side a reader tells.
        auc: how often a reader puts a word of the upper side above one of the lower side; 0.5 is chance, ties count
            half.
        named: of them, those that a reader names.
    """

    share: float
    side: float
    auc: float
    named: float

    def towards(self, other: Told, part: float) -> Told:
        """What lies a part of the way to another."""
        return Told(
            *((1 - part) * one + part * of_other for one, of_other in zip(astuple(self), astuple(other), strict=True))
        )


def told(scores: Floats, words: Ids, weights: Floats, outputs: Ids, guesses: Ids) -> Told:
    """What the better of two readers tells: one who takes the word put out, one who takes the word she guesses.

    Args:
        scores: (W,) of the words.
        words, weights: (n,) the words that were rewritten, and how much each counts.
        outputs, guesses: (n,) what came out, and what the reader by the word says was meant.
    """
    on = scores[words] != 0
    counted, true = weights[on], np.sign(scores[words[on]])
    if not (total := float(counted.sum())):
        return Told(0.0, 0.0, 0.5, 0.0)
    found = [scores[given[on]] for given in (outputs, guesses)]
    side = max(float(counted[np.sign(one) == true].sum()) for one in found) / total
    named = float(counted[guesses[on] == words[on]].sum()) / total
    return Told(total / float(weights.sum()), side, max(_auc(one, true > 0, counted) for one in found), named)


def _auc(found: Floats, is_upper: Flags, weights: Floats) -> float:
    """The area under the curve of n weighted words (Mann & Whitney 1947); 0.5 of one side alone."""
    values, place = np.unique(found, return_inverse=True)
    upper, lower = (np.bincount(place, weights * side, len(values)) for side in (is_upper, ~is_upper))
    pairs = float(upper.sum() * lower.sum())
    return float((upper * (np.cumsum(lower) - lower / 2)).sum()) / pairs if pairs else 0.5
