"""Verdict about a peer's output, from the words of the output alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lexveil.auditing.distributions import Distances, euclidean, mahalanobis, on_lists
from lexveil.auditing.sampled import SampledResult, sampled_audit
from lexveil.base.types import Floats, Ids, Vectors

Sentences = Sequence[Sequence[str]]
CONFIDENCE = 0.999  # confidence of each audit


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of words by what happened to them; None if input and output cannot be aligned.

    Attributes:
        clear: share of the words outside the vocabulary that stayed unchanged.
        unchanged: share of the words of the vocabulary that stayed unchanged.
        lost, added: missing and additional words, as shares of all input words.
    """

    clear: float | None
    unchanged: float | None
    lost: float
    added: float


def shares(sentences: Sentences, out: Sentences, vocabulary: Collection[str]) -> Shares:
    """Compare sentences with their outputs, word by word if they have the same length."""
    known = [0, 0]
    same = [0, 0]
    n = lost = added = 0
    for before, after in zip(sentences, out, strict=True):
        n += len(before)
        lost += max(0, len(before) - len(after))
        added += max(0, len(after) - len(before))
        if len(before) == len(after):
            for word, new in zip(before, after, strict=True):
                known[word in vocabulary] += 1
                same[word in vocabulary] += word == new
    clear, unchanged = (same[kind] / known[kind] if known[kind] else None for kind in (False, True))
    aligned = not (lost or added)
    return Shares(
        clear if aligned else None,
        unchanged if aligned else None,
        lost / max(n, 1),
        added / max(n, 1),
    )


def distances_of(
    mechanism: str, words: Sequence[str], vectors: Vectors, order: Sequence[str] | None
) -> Callable[[Ids, Ids], Floats]:
    """Return the metric of a mechanism's claim, computed as in the audit."""
    if mechanism.startswith("diffractor"):
        assert order is not None
        row = {word: number for number, word in enumerate(words)}
        found: Distances = on_lists(np.array([[row[word] for word in order]], dtype=np.int32))
        return found
    return mahalanobis(vectors, 0.2) if mechanism == "mahalanobis" else euclidean(vectors)


def black_box(
    drawn: Mapping[str, Sequence[str]],
    words: Sequence[str],
    distances: Callable[[Ids, Ids], Floats],
    epsilon: float,
) -> SampledResult:
    """Search for a loss above ε·d between the words of the audit; each word has the same number of
    draws.

    An output that is not one of the words, such as an error, is an output like any other.
    """
    row = {word: number for number, word in enumerate(words)}
    code = dict(row)
    codes = [np.array([code.setdefault(word, len(code)) for word in out]) for out in drawn.values()]
    ids = np.array([row[word] for word in drawn], dtype=np.int64)
    n = min(map(len, codes))
    return sampled_audit(
        [each[:n] for each in codes], epsilon * distances(ids, ids), epsilon, CONFIDENCE
    )


def verdict(results: Sequence[SampledResult], samples: int, repeats: bool) -> str:
    """Return in words whether a violation of the claim was found."""
    broken = [one for one in results if one.violation]
    tried = ", ".join(f"{one.claimed:g}" for one in results)
    said = f"no violation seen with {samples:,} samples of a word (ε = {tried})"
    if broken:
        worst = max(broken, key=lambda one: one.audited / one.claimed)
        said = f"VIOLATED: loss above {worst.audited:.3g}·d at ε = {worst.claimed:g}"
    return f"VIOLATED: every process draws the same noise; else {said}" if repeats else said
